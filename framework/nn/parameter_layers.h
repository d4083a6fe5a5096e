// Parameters that lie by layer. All numbers of one kind that a layer's parameters have (gradients, compute copies, masters, moments) are
// one piece of memory, each parameter at the same element of every piece, so that ranks sum a layer at once and share it out without a look
// at what is in it. What lies between parameters, and behind the columns of a row, is zero.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "framework/nn/parameter.h"
#include "framework/tensor/context.h"
#include "kernels/core/communicator.h"

namespace tilewave {

// Where a parameter lies in its layer, in elements.
struct ParameterPlace {
  const Parameter* parameter = nullptr;
  std::size_t index = 0;  // of it among all
  std::int64_t first = 0;
  std::int64_t pitch = 0;     // of its rows
  std::int64_t elements = 0;  // rows and their pitch
};

struct ParameterLayer {
  std::string name;  // "decoder.3"
  std::vector<ParameterPlace> places;
  std::int64_t elements = 0;  // of the ranks' shares, which are alike
  Tensor gradients;           // [1, elements]; where ranks have shares of them, memory that layers like this one take turns in
  // Where ranks have shares: all compute copies, [1, elements], and this rank's part of the rest, [1, elements / ranks].
  Tensor compute, gradient_share, master_share;
};

// The elements [first, first + count) of a rank's share.
struct ShareRange {
  std::int64_t first = 0, count = 0;
};
ShareRange share_of(const ParameterLayer& layer, const Communicator& ranks, int rank);

// A parameter's rows in memory of its layer.
Tensor rows_in(const Tensor& flat, const ParameterPlace& place);

// A part of one parameter that lies in one rank's share.
struct ShareRun {
  const Parameter* parameter = nullptr;
  std::int64_t first = 0, count = 0;  // elements, counted from the share's begin
};
std::vector<ShareRun> runs_of(const ParameterLayer& layer, const ShareRange& share);

// The parameters by layer, in order, with nothing allocated. A row's pitch suits every one of the types, each share begins at a multiple of
// kAlignment bytes.
std::vector<ParameterLayer> layers_of(Context& context, const std::deque<Parameter>& parameters, const std::vector<DType>& types);

}  // namespace tilewave
