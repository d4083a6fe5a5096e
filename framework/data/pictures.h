// Sets of pictures with labels, and batches of them: what a model that sees is trained and judged on.
//   set      pictures of one shape in memory (an IDX file's, or files' of one's own), or drawn when they are asked for (drawn_digits.h)
//   split    where nothing is named for validation, a tenth is held out, 10,000 at most: the least seeded hashes of pixels
//   batch    the shades of up to N pictures, a byte for each value [H, W, C] of each, with N labels
// Training goes over the set for ever, each pass in an order of its own, and fills every batch: one that a pass ends in goes on with the
// next pass. Validation is one pass in order, whose last batch has fewer pictures: a label that counts nothing stands for each other one.
// What a shade becomes, (shade / 255 - mean) / deviation of its channel, is looked up where the model runs
// (kernels/ops/normalize_pixels.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/data/batches.h"
#include "framework/io/picture.h"
#include "kernels/core/images.h"

namespace tilewave {

inline constexpr std::int32_t kNoLabel = kPaddingId;  // of padding, and of pictures that are to be classified

struct PictureSet {
  PictureShape shape;
  std::int64_t count = 0, classes = 0;
  std::uint64_t fingerprint = 0;  // of every picture and label, or of all that they are drawn from
  // Writes the pixels of picture `index`, [height, width, channels], and returns its label. Any threads may ask at a time.
  std::function<std::int32_t(std::int64_t index, std::span<std::uint8_t> pixels)> read;
};

struct StoredPictures {
  PictureShape shape;
  std::vector<std::uint8_t> pixels;  // [count, height, width, channels]
  std::vector<std::int32_t> labels;  // [count]; empty: none is known
  std::int64_t classes = 0;          // 0: one more than the largest label
  std::string name = "the labels";   // for sentences: the file that they come from
};

// InputError for a label that no class has.
PictureSet picture_set(StoredPictures stored);

struct PictureSplit {
  PictureSet training, held_out;
};

// Reads every picture once. InputError where all pictures are copies of one.
PictureSplit split_pictures(const PictureSet& set, std::uint64_t seed);

// In units of the whole range of a pixel: 0 is black, 1 is white. One number for all channels, or one for each.
struct PictureNormalization {
  std::vector<double> mean = {0.0}, deviation = {1.0};
};

// InputError where a list is as long as neither 1 nor the channels, or a deviation is not positive.
void check(const PictureNormalization& normalization, std::int64_t channels);

// What each shade of each channel becomes, [channels, 256].
std::vector<float> shade_table(const PictureNormalization& normalization, std::int64_t channels);

// What a model sees: pictures of one shape, and what their shades become.
struct SeenPictures {
  PictureShape shape;
  PictureNormalization normalization;
};

// Of each channel, over the set's first pictures; the deviation is 1 where they are all of one shade.
PictureNormalization measured_normalization(const PictureSet& set, std::int64_t most_pictures = 10'000);

struct PictureBatch {
  Images images;                     // nhwc, N of them
  std::vector<std::uint8_t> pixels;  // [real H W, C]
  std::vector<std::int32_t> labels;  // [N]
  std::int64_t real = 0;             // pictures; what a batch has room for behind them is padding
};

class PictureBatches {
 public:
  // Of `pictures` each.
  PictureBatches(PictureSet set, std::int64_t pictures, Pass pass);

  // Training never ends; a pass in order ends behind the last picture. Large batches are read by several threads, to the same bytes.
  std::optional<PictureBatch> next();

  // By how many threads at most; 0, which it is before, for as many as a batch's bytes are worth.
  void read_by(std::int64_t threads) { threads_ = threads; }

  // What comes next, of the pass `epoch`; rows_before counts nothing here.
  DataPosition position() const { return position_; }
  void restore(DataPosition position) { position_ = position; }

  const PictureSet& set() const { return set_; }

 private:
  std::vector<std::int64_t> next_indices();  // of the pictures of the next batch, which the position moves behind

  PictureSet set_;
  std::int64_t pictures_, threads_ = 0;
  Pass pass_;
  EpochOrder order_;
  DataPosition position_;
};

}  // namespace tilewave
