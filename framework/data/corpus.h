// What is trained on: one of six kinds of data, read or generated, split, tokenised, and handed out as batches.
//   number_names  English to German names of numbers; 500 validation and 1,000 test numbers, all others train
//   parallel      two aligned text files, one sentence a line; pairs with a blank side are left out and counted. Validation: two
//                 more files, or at most a fiftieth of the pairs (1 to 2,000), those whose texts have the smallest seeded hashes:
//                 equal pairs stay on one side
//   text          one file of any bytes (bpe: UTF-8). Validation: another file, or the last tenth of the bytes, at most 2^18
//   tokens        one token file, or several behind each other. Validation: another, or the last tenth of the tokens, at most 2^17
//   synthetic     made-up ids of the whole vocabulary; validation is a batch of its own
//   pictures      digits drawn by rule, 60,000 to train on and 2,000 others to validate on, or IDX files with labels. Validation: two more
//                 files, or what framework/data/pictures.h holds out. Shades are handed out as they are
// number_names and parallel feed an encoder and a decoder, text and tokens a decoder alone, synthetic either, pictures a classifier. Text
// is prepared as framework/data/prepared_text.h says; a bpe tokenizer is trained on training text alone. What is wrong with a file or a
// setting is an InputError.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/batches.h"
#include "framework/data/number_names.h"
#include "framework/data/pairs.h"
#include "framework/data/pictures.h"
#include "framework/data/tokenizer.h"
#include "framework/data/unknown_characters.h"
#include "framework/data/windows.h"
#include "framework/recipe/describe.h"

namespace tilewave {

enum class DataKind : std::uint8_t { number_names, text, parallel, tokens, synthetic, pictures, captions };
template <>
inline constexpr std::array kNames<DataKind> = {Named{DataKind::number_names, "number_names"}, Named{DataKind::text, "text"},
                                                Named{DataKind::parallel, "parallel"},         Named{DataKind::tokens, "tokens"},
                                                Named{DataKind::synthetic, "synthetic"},       Named{DataKind::pictures, "pictures"},
                                                Named{DataKind::captions, "captions"}};

// Of pictures: where they come from, and what they must be.
struct PictureSource {
  std::filesystem::path pictures, labels, validation_pictures, validation_labels;  // IDX files; empty: digits are drawn
  PictureShape shape = {.height = 28, .width = 28, .channels = 1};
  std::int64_t classes = 10;  // of pictures; 0: as many as labels have
  std::int64_t noise = 40;    // of drawn ones
  std::int64_t patches = 0;   // of captions: rows of an encoder that a picture is
};

struct CorpusConfig {
  DataKind kind = DataKind::number_names;
  std::filesystem::path source, target, validation_source, validation_target;
  TokenizerKind tokenizer = TokenizerKind::bytes;
  std::int64_t tokenizer_vocabulary = 0;  // bpe
  std::int64_t vocabulary = 0;            // the model's, which no id may reach; 0: the tokenizer's
  std::uint64_t seed = 0;                 // of splits, orders and draws
  PictureSource pictures = {};
};

struct TextPair {
  std::string source, target;
};

// In pairs or pictures, with captions or without, or for text and tokens in tokens; synthetic data has none to count.
struct CorpusFacts {
  std::int64_t training = 0, validation = 0, test = 0;
  std::int64_t blank = 0, blank_validation = 0;  // pairs left out of either, which it does not count
};

class Corpus {
 public:
  // A tokenizer given is used as it is (a resumed run's, or one's own); else one is made as the configuration says.
  explicit Corpus(CorpusConfig config, std::optional<Tokenizer> tokenizer = std::nullopt);

  const CorpusConfig& config() const { return config_; }
  const CorpusFacts& facts() const { return facts_; }
  const std::optional<Tokenizer>& tokenizer() const { return tokenizer_; }  // none for tokens, synthetic and pictures without captions
  std::int64_t vocabulary() const { return config_.vocabulary; }            // ids are below it
  std::uint64_t fingerprint() const { return fingerprint_; }                // of every id, the split and the tokenizer
  const std::vector<std::string>& notes() const { return notes_; }          // sentences a person should read: of unknown ids

  BatchStream training(const BatchShape& shape) const;    // never ends
  BatchStream validation(const BatchShape& shape) const;  // ends after one pass

  // Texts to translate and compare that were not trained on: number_names' test pairs, parallel's first 2,000 validation pairs.
  const std::vector<TextPair>& test_pairs() const { return test_pairs_; }

 private:
  void open_number_names();
  void open_parallel();
  void open_text();
  void open_tokens();
  void open_pictures();
  void open_captions();
  void check_streams();
  void note_framed(std::int64_t sentences);
  void note_unknown(const UnknownCharacters& training, const UnknownCharacters& validation);
  std::uint64_t fingerprint_of() const;
  void check_shape(const BatchShape& shape) const;
  void check_captions(const BatchShape& shape) const;
  BatchStream captioned(const PictureSet& set, const BatchShape& shape, Pass pass) const;

  CorpusConfig config_;
  CorpusFacts facts_;
  std::vector<std::string> notes_;
  std::optional<Tokenizer> tokenizer_;
  std::uint64_t fingerprint_ = 0;
  std::vector<TextPair> test_pairs_;
  std::shared_ptr<const NumberSplit> numbers_;
  std::shared_ptr<const PairTable> training_pairs_, validation_pairs_;
  TokenStream training_tokens_, validation_tokens_;
  PictureSet training_pictures_, validation_pictures_;
  std::vector<std::vector<std::int32_t>> names_;  // of labels, as ids
};

// Pictures with their labels; shape.target_rows is how many a batch has.
BatchStream picture_stream(const PictureSet& set, const BatchShape& shape, Pass pass);

}  // namespace tilewave
