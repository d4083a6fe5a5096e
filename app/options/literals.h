// What a person writes for a layer, a GEMM, a tile or a range, read in one place. Each reader throws an InputError that names the option
// and shows how such a thing is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/convolution.h"
#include "kernels/core/error.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {

// A fully-connected layer on a number of tokens, written out<-in@tokens.
struct Layer {
  std::int64_t out = 0, in = 0, tokens = 0;

  std::string text() const { return concat(out, "<-", in, "@", tokens); }
};

struct Matrix {
  std::int64_t rows = 0, cols = 0;
};

// A convolution of so many channels out.
struct ConvolutionLayer {
  Images images;
  ConvolutionFilter filter;
  std::int64_t outputs = 0;
};

struct Literal {
  std::string_view option;  // "--layer"
  std::string_view text;
};

Layer layer_of(const Literal& literal);    // "512<-128@1536"
Layer gemm_of(const Literal& literal);     // "MxNxK", as the layer whose forward GEMM it is
Tile tile_of(const Literal& literal);      // "256x128", M by N
Matrix matrix_of(const Literal& literal);  // "65536x1024", rows by columns
// "NxHxWxC->K,RxS", and in any order ",stride=2", ",pad=1" or ",pad=same", ",dilation=2"; "2x1" is a number down and another one across.
ConvolutionLayer convolution_of(const Literal& literal);     // "256x56x56x64->128,3x3,pad=same"
std::vector<std::int64_t> range_of(const Literal& literal);  // "first:last:step", at most 10,000 numbers

// A layer or a GEMM, one of whose sizes is a range: "2304x8:6400:8x4096" has a size for N from 8 to 6400.
struct SweptLayer {
  std::string_view axis;         // "out", "in" or "tokens"; "M", "N" or "K"
  std::vector<std::int64_t> at;  // along it
  std::vector<Layer> layers;     // as many
};
SweptLayer swept_layer_of(const Literal& literal);  // "4096<-1024@256:8192:256"
SweptLayer swept_gemm_of(const Literal& literal);   // "MxNxK"

}  // namespace tilewave
