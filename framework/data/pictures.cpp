#include "framework/data/pictures.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>
#include <utility>

#include "framework/data/fingerprint.h"
#include "framework/data/held_out.h"
#include "framework/data/host_threads.h"
#include "kernels/core/error.h"
#include "kernels/ops/normalize_pixels.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxHeldOutPictures = 10'000;

std::string_view as_text(std::span<const std::uint8_t> pixels) { return {reinterpret_cast<const char*>(pixels.data()), pixels.size()}; }

std::uint64_t fingerprint_of(const StoredPictures& stored) {
  Fingerprint fingerprint;
  for (const std::int64_t size : {stored.shape.height, stored.shape.width, stored.shape.channels, stored.classes}) {
    fingerprint.add(static_cast<std::uint64_t>(size));
  }
  fingerprint.add(as_text(stored.pixels));
  fingerprint.add(std::span<const std::int32_t>(stored.labels));
  return fingerprint.value();
}

// Some of a set's pictures, as a set.
PictureSet part_of(const PictureSet& set, std::vector<std::int64_t> indices, std::uint64_t fingerprint) {
  PictureSet part = set;
  part.count = std::ssize(indices);
  part.fingerprint = fingerprint;
  part.read = [read = set.read, indices = std::make_shared<const std::vector<std::int64_t>>(std::move(indices))](
                  std::int64_t index, std::span<std::uint8_t> pixels) { return read((*indices)[static_cast<std::size_t>(index)], pixels); };
  return part;
}

double of_channel(const std::vector<double>& numbers, std::size_t channel) { return numbers[numbers.size() == 1 ? 0 : channel]; }

}  // namespace

PictureSet picture_set(StoredPictures stored) {
  const std::int64_t each = stored.shape.values();
  TW_CHECK(stored.shape.height > 0 && stored.shape.width > 0 && stored.shape.channels > 0 && !stored.pixels.empty() &&
               std::ssize(stored.pixels) % each == 0,
           stored.pixels.size(), " bytes are no set of pictures of ", stored.shape.height, "x", stored.shape.width, "x",
           stored.shape.channels, ".");
  const std::int64_t count = std::ssize(stored.pixels) / each;
  if (stored.labels.empty()) {
    stored.labels.assign(static_cast<std::size_t>(count), kNoLabel);
  } else {
    TW_CHECK(std::ssize(stored.labels) == count, count, " pictures take as many labels, not ", stored.labels.size(), ".");
    if (stored.classes == 0) stored.classes = std::max(0, *std::max_element(stored.labels.begin(), stored.labels.end())) + std::int64_t{1};
    const auto wrong =
        std::find_if(stored.labels.begin(), stored.labels.end(), [&](std::int32_t label) { return label < 0 || label >= stored.classes; });
    TW_CHECK_INPUT(wrong == stored.labels.end(), stored.name, ": picture ", wrong - stored.labels.begin(), " has the label ", *wrong,
                   ", and classes are numbered from 0 to ", stored.classes - 1,
                   "; raise model.classes, or name the labels that belong to it.");
  }
  PictureSet set{.shape = stored.shape, .count = count, .classes = stored.classes, .fingerprint = fingerprint_of(stored), .read = {}};
  set.read = [all = std::make_shared<const StoredPictures>(std::move(stored)), each](std::int64_t index, std::span<std::uint8_t> pixels) {
    std::copy_n(all->pixels.begin() + index * each, each, pixels.begin());
    return all->labels[static_cast<std::size_t>(index)];
  };
  return set;
}

PictureSplit split_pictures(const PictureSet& set, std::uint64_t seed) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(set.shape.values()));
  std::vector<std::uint64_t> hashes;
  hashes.reserve(static_cast<std::size_t>(set.count));
  for (std::int64_t index = 0; index < set.count; ++index) {
    set.read(index, pixels);
    Fingerprint hash;
    hash.add(seed);
    hash.add(as_text(pixels));
    hashes.push_back(hash.value());
  }
  const std::vector<std::uint64_t> least = least_hashes(hashes, std::clamp<std::int64_t>(set.count / 10, 1, kMaxHeldOutPictures));
  std::vector<std::int64_t> training, held_out;
  for (std::int64_t index = 0; index < set.count; ++index) {
    (std::ranges::binary_search(least, hashes[static_cast<std::size_t>(index)]) ? held_out : training).push_back(index);
  }
  TW_CHECK_INPUT(!training.empty(),
                 "the pictures are one alone, or copies of one, which leaves none to train on beside those held out; add "
                 "another, or name pictures to validate on.");
  Fingerprint split;
  split.add(set.fingerprint);
  split.add(seed);
  return {.training = part_of(set, std::move(training), mix64(split.value() ^ 't')),
          .held_out = part_of(set, std::move(held_out), mix64(split.value() ^ 'v'))};
}

void check(const PictureNormalization& normalization, std::int64_t channels) {
  const auto [mean, deviation] = normalization;
  for (const auto& [numbers, name] : {std::pair(&mean, "means"), std::pair(&deviation, "deviations")}) {
    TW_CHECK_INPUT(numbers->size() == 1 || std::ssize(*numbers) == channels, "pictures of ", channels, " channels have 1 or ", channels,
                   " ", name, ", not ", numbers->size(), ".");
    TW_CHECK_INPUT(std::all_of(numbers->begin(), numbers->end(), [](double number) { return std::isfinite(number); }), "pictures have ",
                   name, " that are finite numbers.");
  }
  TW_CHECK_INPUT(std::all_of(deviation.begin(), deviation.end(), [](double number) { return number > 0; }),
                 "pictures have deviations above 0, which pixels are divided by; leave out a channel that has but one shade.");
}

PictureNormalization measured_normalization(const PictureSet& set, std::int64_t most_pictures) {
  const auto channels = static_cast<std::size_t>(set.shape.channels);
  const std::int64_t pictures = std::min(set.count, most_pictures);
  TW_CHECK(pictures > 0, "a mean takes a picture at least.");
  std::vector<std::int64_t> sums(channels), squares(channels);  // whole numbers: the same in any order
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(set.shape.values()));
  for (std::int64_t index = 0; index < pictures; ++index) {
    set.read(index, pixels);
    for (std::size_t at = 0; at < pixels.size(); ++at) {
      const std::int64_t pixel = pixels[at];
      sums[at % channels] += pixel;
      squares[at % channels] += pixel * pixel;
    }
  }
  const auto count = static_cast<double>(pictures * set.shape.height * set.shape.width);
  PictureNormalization measured{.mean = {}, .deviation = {}};
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = static_cast<double>(sums[c]) / count, variance = static_cast<double>(squares[c]) / count - mean * mean;
    measured.mean.push_back(mean / 255);
    measured.deviation.push_back(variance > 1e-6 ? std::sqrt(variance) / 255 : 1.0);
  }
  return measured;
}

std::vector<float> shade_table(const PictureNormalization& normalization, std::int64_t channels) {
  check(normalization, channels);
  std::vector<float> table;
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    for (std::int64_t shade = 0; shade < kShades; ++shade) {
      const double value = static_cast<double>(shade) / 255;
      table.push_back(static_cast<float>((value - of_channel(normalization.mean, c)) / of_channel(normalization.deviation, c)));
    }
  }
  return table;
}

PictureBatches::PictureBatches(PictureSet set, std::int64_t pictures, Pass pass)
    : set_(std::move(set)), pictures_(pictures), pass_(pass), order_(pass) {
  TW_CHECK(set_.count > 0, "a set without a picture gives no batch.");
  TW_CHECK(pictures > 0, "a batch of ", pictures, " pictures cannot be filled; it has one at least.");
}

std::vector<std::int64_t> PictureBatches::next_indices() {
  const auto count = static_cast<std::uint64_t>(set_.count);
  std::vector<std::int64_t> indices;
  while (std::ssize(indices) < pictures_) {
    if (position_.next >= count) {
      if (pass_.kind == Pass::Kind::once_in_order) break;
      position_ = {.epoch = position_.epoch + 1, .next = 0};
    }
    indices.push_back(static_cast<std::int64_t>(order_.at(position_.epoch, static_cast<std::size_t>(count), position_.next)));
    ++position_.next;
  }
  return indices;
}

std::optional<PictureBatch> PictureBatches::next() {
  constexpr std::int64_t kBytesOfAThread = 1 << 19;  // some milliseconds of drawing, and more than a thread's start of copying
  const std::vector<std::int64_t> indices = next_indices();
  if (indices.empty()) return std::nullopt;
  const PictureShape& shape = set_.shape;
  const std::int64_t real = std::ssize(indices), each = shape.values();
  PictureBatch batch{.images = {.count = pictures_, .channels = shape.channels, .height = shape.height, .width = shape.width},
                     .pixels = std::vector<std::uint8_t>(static_cast<std::size_t>(real * each)),
                     .labels = std::vector<std::int32_t>(static_cast<std::size_t>(pictures_), kNoLabel),
                     .real = real};
  share_out(real, threads_ > 0 ? threads_ : threads_for(real * each, kBytesOfAThread), [&](std::int64_t at) {
    const std::span<std::uint8_t> own =
        std::span(batch.pixels).subspan(static_cast<std::size_t>(at * each), static_cast<std::size_t>(each));
    batch.labels[static_cast<std::size_t>(at)] = set_.read(indices[static_cast<std::size_t>(at)], own);
  });
  return batch;
}

}  // namespace tilewave
