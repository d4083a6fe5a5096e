// Sets of pictures, their split, and batches: values by the formula, passes that show each picture once, positions to go on from, the same
// bytes whatever the number of threads.
#include "framework/data/pictures.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <vector>

#include "framework/data/drawn_digits.h"
#include "framework/tensor/random.h"
#include "tests/framework/data/scratch.h"

namespace tilewave {
namespace {

constexpr Pass kTrainingPass{.kind = Pass::Kind::shuffled_epochs, .seed = 3};
constexpr PictureShape kColor{.height = 2, .width = 3, .channels = 3};

StoredPictures random_pictures(std::int64_t count, const PictureShape& shape = kColor) {
  Random random(random_key(11, count));
  StoredPictures stored{.shape = shape, .pixels = {}, .labels = {}, .classes = 7};
  for (std::int64_t i = 0; i < count * shape.values(); ++i) stored.pixels.push_back(static_cast<std::uint8_t>(random.below(256)));
  for (std::int64_t i = 0; i < count; ++i) stored.labels.push_back(static_cast<std::int32_t>(random.below(7)));
  return stored;
}

// Pictures of one pixel whose label is their number.
PictureSet numbered_pictures(std::int64_t count) {
  StoredPictures stored{.shape = {.height = 1, .width = 1, .channels = 1}, .pixels = {}, .labels = {}};
  for (std::int64_t i = 0; i < count; ++i) {
    stored.pixels.push_back(static_cast<std::uint8_t>(i % 256));
    stored.labels.push_back(static_cast<std::int32_t>(i));
  }
  return picture_set(std::move(stored));
}

TEST(Pictures, HoldWhatTheyWereGiven) {
  const StoredPictures stored = random_pictures(13);
  const PictureSet set = picture_set(stored);
  EXPECT_EQ(set.count, 13);
  EXPECT_EQ(set.classes, 7);
  std::vector<std::uint8_t> pixels(18);
  for (std::int64_t index = 12; index >= 0; --index) {
    EXPECT_EQ(set.read(index, pixels), stored.labels[static_cast<std::size_t>(index)]);
    EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), stored.pixels.begin() + index * 18));
  }
}

TEST(Pictures, FingerprintsTellThemApart) {
  const StoredPictures stored = random_pictures(13);
  std::set<std::uint64_t> fingerprints = {picture_set(stored).fingerprint};
  EXPECT_EQ(picture_set(stored).fingerprint, *fingerprints.begin());
  StoredPictures changed = stored;
  changed.pixels[100] ^= 1;
  fingerprints.insert(picture_set(changed).fingerprint);
  changed = stored;
  changed.labels[5] = (changed.labels[5] + 1) % 7;
  fingerprints.insert(picture_set(changed).fingerprint);
  changed = stored;
  changed.shape = {.height = 3, .width = 2, .channels = 3};
  fingerprints.insert(picture_set(changed).fingerprint);
  changed = stored;
  changed.classes = 8;
  fingerprints.insert(picture_set(changed).fingerprint);
  EXPECT_EQ(fingerprints.size(), 5u);
}

TEST(Pictures, LabelsBelongToClasses) {
  StoredPictures stored = random_pictures(13);
  stored.labels[4] = 7;
  stored.name = "train-labels";
  EXPECT_TRUE(says(input_error([&] { picture_set(stored); }),
                   {"train-labels: picture 4 has the label 7", "numbered from 0 to 6", "model.classes"}));
  stored.labels[4] = -1;
  EXPECT_TRUE(says(input_error([&] { picture_set(stored); }), {"picture 4 has the label -1"}));
  stored.labels[4] = 9;
  stored.classes = 0;
  EXPECT_EQ(picture_set(stored).classes, 10) << "one more than the largest";
  const StoredPictures negative{.shape = {1, 1, 1}, .pixels = {1}, .labels = {-2}};
  EXPECT_TRUE(says(input_error([&] { picture_set(negative); }), {"the label -2", "from 0 to 0"}));
  stored.labels.clear();
  std::vector<std::uint8_t> pixels(18);
  EXPECT_EQ(picture_set(stored).read(3, pixels), kNoLabel) << "pictures that are to be classified have none";
  stored.labels = {1, 2};
  EXPECT_THROW(picture_set(stored), Error);
  stored.pixels.pop_back();
  EXPECT_THROW(picture_set(stored), Error);
}

TEST(Pictures, ASplitHoldsOutATenth) {
  const PictureSet set = numbered_pictures(250);
  const PictureSplit split = split_pictures(set, 5), again = split_pictures(set, 5), other = split_pictures(set, 6);
  EXPECT_EQ(split.held_out.count, 25);
  EXPECT_EQ(split.training.count, 225);
  const auto labels = [](const PictureSet& part) {
    std::set<std::int32_t> found;
    std::uint8_t pixel = 0;
    for (std::int64_t i = 0; i < part.count; ++i) {
      const std::int32_t label = part.read(i, {&pixel, 1});
      EXPECT_EQ(pixel, label % 256);
      found.insert(label);
    }
    return found;
  };
  std::set<std::int32_t> all = labels(split.training);
  EXPECT_EQ(all.size(), 225u);
  all.merge(labels(split.held_out));
  EXPECT_EQ(all.size(), 250u) << "every picture is on one side";
  EXPECT_EQ(labels(split.held_out), labels(again.held_out));
  EXPECT_NE(labels(split.held_out), labels(other.held_out));
  EXPECT_EQ(split.training.fingerprint, again.training.fingerprint);
  EXPECT_EQ(
      (std::set<std::uint64_t>{set.fingerprint, split.training.fingerprint, split.held_out.fingerprint, other.training.fingerprint}).size(),
      4u);
}

TEST(Pictures, CopiesStayOnOneSideOfASplit) {
  const PictureSet set = numbered_pictures(1'000);  // of 256 shades, each of three or four pictures
  const PictureSplit split = split_pictures(set, 5);
  std::set<std::uint8_t> training, held_out;
  std::uint8_t pixel = 0;
  for (std::int64_t i = 0; i < split.training.count; ++i) training.insert((split.training.read(i, {&pixel, 1}), pixel));
  for (std::int64_t i = 0; i < split.held_out.count; ++i) held_out.insert((split.held_out.read(i, {&pixel, 1}), pixel));
  EXPECT_EQ(training.size() + held_out.size(), 256u);
  EXPECT_GE(split.held_out.count, 97);
  EXPECT_LE(split.held_out.count, 100);
  StoredPictures copies{.shape = {.height = 1, .width = 1, .channels = 1}, .pixels = {9, 9, 9}, .labels = {0, 1, 0}};
  EXPECT_TRUE(says(input_error([&] { split_pictures(picture_set(copies), 1); }), {"copies of one", "none to train on"}));
}

TEST(PictureBatches, HoldTheShadesOfTheirPictures) {
  const StoredPictures stored = random_pictures(3);
  PictureBatches batches(picture_set(stored), 3, {});
  const PictureBatch batch = batches.next().value();
  EXPECT_EQ(batch.images, (Images{.count = 3, .channels = 3, .height = 2, .width = 3}));
  EXPECT_EQ(batch.labels, stored.labels);
  EXPECT_EQ(batch.pixels, stored.pixels);
}

TEST(PictureBatches, AreTheSameWhateverTheNumberOfThreads) {
  const PictureSet drawn = drawn_digits({.count = 700, .shape = {.height = 60, .width = 60, .channels = 1}, .seed = 3});
  const auto batches_by = [&](std::int64_t threads, std::int64_t pictures, Pass pass) {
    PictureBatches batches(drawn, pictures, pass);
    batches.read_by(threads);
    std::vector<PictureBatch> all;
    for (int i = 0; i < 3; ++i) all.push_back(batches.next().value());
    return all;
  };
  struct Case {
    std::int64_t pictures;
    Pass pass;
  };
  // The last one's batches are worth several threads by their bytes, and its last batch is not full.
  for (const Case& one : {Case{1, kTrainingPass}, {40, kTrainingPass}, {300, {}}}) {
    const std::vector<PictureBatch> alone = batches_by(1, one.pictures, one.pass);
    for (const std::int64_t threads : {0, 2, 3, 16}) {
      const std::vector<PictureBatch> shared = batches_by(threads, one.pictures, one.pass);
      for (std::size_t i = 0; i < alone.size(); ++i) {
        EXPECT_TRUE(shared[i].pixels == alone[i].pixels) << threads << " threads, batch " << i << " of " << one.pictures;
        EXPECT_EQ(shared[i].labels, alone[i].labels);
        EXPECT_EQ(shared[i].real, alone[i].real);
      }
    }
  }
}

TEST(PictureBatches, AShadeBecomesWhatTheFormulaSays) {
  const PictureNormalization each{.mean = {0.1, 0.5, 0.9}, .deviation = {0.25, 0.5, 2.0}}, one{.mean = {0.5}, .deviation = {0.25}};
  for (const PictureNormalization& normalization : {each, one}) {
    const std::vector<float> table = shade_table(normalization, 3);
    ASSERT_EQ(table.size(), 3U * 256U);
    for (std::size_t i = 0; i < table.size(); ++i) {
      const std::size_t c = normalization.mean.size() == 1 ? 0 : i / 256;
      EXPECT_EQ(table[i], static_cast<float>((static_cast<double>(i % 256) / 255.0 - normalization.mean[c]) / normalization.deviation[c]));
    }
  }
}

TEST(PictureBatches, MeasuredNormalizationHasMeanZeroAndDeviationOne) {
  StoredPictures stored = random_pictures(200);
  for (std::size_t i = 2; i < stored.pixels.size(); i += 3) stored.pixels[i] = 51;  // the third channel is even
  const PictureSet set = picture_set(stored);
  const PictureNormalization measured = measured_normalization(set);
  EXPECT_EQ(measured.deviation[2], 1.0);
  EXPECT_NEAR(measured.mean[2], 0.2, 1e-12);
  const std::vector<float> table = shade_table(measured, 3);
  for (std::size_t c = 0; c < 3; ++c) {
    double sum = 0, squares = 0;
    for (std::size_t i = c; i < stored.pixels.size(); i += 3) {
      const double value = table[c * 256 + stored.pixels[i]];
      sum += value;
      squares += value * value;
    }
    EXPECT_NEAR(sum / 1200, 0, 1e-5);
    EXPECT_NEAR(squares / 1200, c == 2 ? 0 : 1, 1e-5);
  }
  const PictureNormalization of_ten = measured_normalization(set, 10);
  EXPECT_NE(of_ten.mean[0], measured.mean[0]);
}

TEST(PictureBatches, APassShowsEachPictureOnce) {
  for (const std::int64_t pictures : {1, 3, 7, 10, 25}) {
    PictureBatches batches(numbered_pictures(10), pictures, kTrainingPass);
    std::vector<std::int32_t> labels;
    while (labels.size() < 50) {
      const PictureBatch batch = batches.next().value();
      EXPECT_EQ(batch.real, pictures);
      labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
    }
    std::set<std::vector<std::int32_t>> orders;
    for (std::size_t pass = 0; pass < 5; ++pass) {
      const std::vector<std::int32_t> order(labels.begin() + static_cast<std::int64_t>(pass) * 10,
                                            labels.begin() + static_cast<std::int64_t>(pass + 1) * 10);
      EXPECT_EQ((std::set<std::int32_t>(order.begin(), order.end()).size()), 10u) << "batches of " << pictures << ", pass " << pass;
      orders.insert(order);
    }
    EXPECT_EQ(orders.size(), 5u) << "each pass has an order of its own";
  }
}

TEST(PictureBatches, GoOnFromEveryPosition) {
  const auto fresh = [] { return PictureBatches(numbered_pictures(10), 4, kTrainingPass); };
  PictureBatches whole = fresh(), back_and_forth = fresh();
  std::vector<DataPosition> positions;
  std::vector<PictureBatch> all;
  for (int i = 0; i < 12; ++i) {
    positions.push_back(whole.position());
    all.push_back(whole.next().value());
  }
  for (const std::size_t at : {11u, 0u, 5u, 2u, 3u, 10u}) {
    PictureBatches resumed = fresh();
    for (PictureBatches* batches : {&resumed, &back_and_forth}) {
      batches->restore(positions[at]);
      const PictureBatch batch = batches->next().value();
      EXPECT_EQ(batch.labels, all[at].labels) << at;
      EXPECT_EQ(batch.pixels, all[at].pixels) << at;
    }
  }
  EXPECT_EQ(positions[5], (DataPosition{.epoch = 1, .next = 10}));
  back_and_forth.restore({.epoch = 2, .next = std::uint64_t{1} << 60});
  EXPECT_EQ(back_and_forth.next()->real, 4);
  EXPECT_EQ(back_and_forth.position().epoch, 3u) << "a position past a pass begins the next";
}

TEST(PictureBatches, ValidationIsOnePassInOrder) {
  PictureBatches batches(numbered_pictures(10), 4, {});
  EXPECT_EQ(batches.next()->labels, (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(batches.next()->labels, (std::vector<std::int32_t>{4, 5, 6, 7}));
  const PictureBatch last = batches.next().value();
  EXPECT_EQ(last.labels, (std::vector<std::int32_t>{8, 9, kNoLabel, kNoLabel}));
  EXPECT_EQ(last.real, 2);
  EXPECT_EQ(last.images.count, 4);
  EXPECT_EQ(last.pixels, (std::vector<std::uint8_t>{8, 9}));
  EXPECT_FALSE(batches.next());
  batches.restore({});
  EXPECT_EQ(batches.next()->labels.front(), 0);
}

TEST(PictureBatches, WrongNormalizationIsRefused) {
  const auto refusal = [](const PictureNormalization& normalization) { return input_error([&] { shade_table(normalization, 3); }); };
  EXPECT_TRUE(says(refusal({.mean = {0, 0}}), {"3 channels have 1 or 3 means, not 2"}));
  EXPECT_TRUE(says(refusal({.deviation = {}}), {"1 or 3 deviations, not 0"}));
  EXPECT_TRUE(says(refusal({.deviation = {1, 0, 1}}), {"deviations above 0"}));
  EXPECT_TRUE(says(refusal({.mean = {std::numeric_limits<double>::infinity()}}), {"means that are finite"}));
  EXPECT_THROW(PictureBatches(picture_set(random_pictures(2)), 0, {}), Error);
}

}  // namespace
}  // namespace tilewave
