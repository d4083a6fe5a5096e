#include "framework/data/corpus.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "framework/data/drawn_digits.h"
#include "framework/data/fingerprint.h"
#include "framework/data/held_out.h"
#include "framework/data/prepared_text.h"
#include "framework/data/synthetic.h"
#include "framework/data/token_file.h"
#include "framework/data/unknown_characters.h"
#include "framework/io/idx_file.h"
#include "framework/io/text_file.h"
#include "framework/tensor/random.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::int64_t kTokenizerPairs = 4'000;  // of number names, that its bpe is trained on
constexpr std::size_t kEncodeBytes = 1 << 16;    // of a document, encoded at a time
constexpr std::size_t kMaxHeldOutPairs = 2'000;
constexpr std::size_t kMaxHeldOutBytes = 1 << 18;
constexpr std::int64_t kMaxHeldOutTokens = 1 << 17;
constexpr std::size_t kMaxTestPairs = 2'000;
constexpr std::int64_t kDrawnPictures = 60'000, kDrawnHeldOutPictures = 2'000;
constexpr std::int64_t kMinTokens = 2;  // of a stream: one to read, one to predict

struct LinePair {
  std::string_view source, target;
  std::int64_t line = 0;  // of both files, from 1 on
};

bool blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

std::uint64_t hash_of(const LinePair& pair, std::uint64_t seed) {
  Fingerprint hash;
  hash.add(seed);
  hash.add(pair.source);
  hash.add(pair.target);
  return hash.value();
}

// The pairs of two aligned files without a blank side, and the files' texts that they point into.
struct ParallelText {
  std::string source_text, target_text;
  std::vector<LinePair> pairs;
  std::int64_t blank_pairs = 0;

  ParallelText(const std::filesystem::path& source, const std::filesystem::path& target, TokenizerKind tokenizer)
      : source_text(prepared_file(source, tokenizer, TextForm::sentences)),
        target_text(prepared_file(target, tokenizer, TextForm::sentences)) {
    const std::vector<std::string_view> sources = split_lines(source_text), targets = split_lines(target_text);
    TW_CHECK_INPUT(sources.size() == targets.size(), source, " has ", sources.size(), " lines and ", target, " has ", targets.size(),
                   "; line i of one must translate line i of the other.");
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (blank(sources[i]) || blank(targets[i])) {
        ++blank_pairs;
      } else {
        pairs.push_back({.source = sources[i], .target = targets[i], .line = static_cast<std::int64_t>(i) + 1});
      }
    }
    TW_CHECK_INPUT(!pairs.empty(), source, " and ", target, " have no line with text on both sides.");
  }
  ParallelText(const ParallelText&) = delete;  // pairs would point into the other's texts
  ParallelText& operator=(const ParallelText&) = delete;
};

struct EncodedPairs {
  std::shared_ptr<const PairTable> table;
  std::int64_t blank = 0;   // what the tokenizer takes for white space alone, left out
  std::int64_t framed = 0;  // sentences that spell a token which a target is framed with
  UnknownCharacters unknown;
};

struct PairFiles {
  const std::filesystem::path& source;
  const std::filesystem::path& target;
};

EncodedPairs encode_pairs(const Tokenizer& tokenizer, const std::vector<LinePair>& pairs, const PairFiles& files) {
  const PairFrame frame = tokenizer.frame().value();
  PairTable table(frame);
  EncodedPairs encoded;
  const auto encoded_side = [&](std::string_view text) {
    std::vector<std::int32_t> ids = tokenizer.encode(text);
    const auto removed = std::erase_if(ids, [&](std::int32_t id) { return frame.holds(id); });
    encoded.framed += removed > 0 ? 1 : 0;
    return ids;
  };
  for (const LinePair& pair : pairs) {
    const std::vector<std::int32_t> source = encoded_side(pair.source), target = encoded_side(pair.target);
    if (source.empty() || target.empty()) {
      ++encoded.blank;
      continue;
    }
    encoded.unknown.count(tokenizer, {.text = pair.source, .ids = source, .file = files.source, .line = pair.line});
    encoded.unknown.count(tokenizer, {.text = pair.target, .ids = target, .file = files.target, .line = pair.line});
    table.add(source, target);
  }
  encoded.table = std::make_shared<const PairTable>(std::move(table));
  return encoded;
}

struct EncodedDocument {
  std::vector<std::int32_t> ids;
  UnknownCharacters unknown;
};

// A document, or the end of one, that begins on a line of its file.
struct Document {
  std::string_view text;
  const std::filesystem::path& file;
  std::int64_t line = 1;
};

EncodedDocument encode_document(const Tokenizer& tokenizer, Document document) {
  EncodedDocument encoded{.ids = tokenizer.before(), .unknown = {}};
  while (!document.text.empty()) {
    const std::string_view part = tokenizer.first_part(document.text, kEncodeBytes);
    const std::vector<std::int32_t> ids = tokenizer.encode(part);
    encoded.unknown.count(tokenizer, {.text = part, .ids = ids, .file = document.file, .line = document.line});
    encoded.ids.insert(encoded.ids.end(), ids.begin(), ids.end());
    document.line += std::ranges::count(part, '\n');
    document.text.remove_prefix(part.size());
  }
  return encoded;
}

TokenStream in_memory(std::vector<std::int32_t> ids) {
  const auto size = static_cast<std::int64_t>(ids.size());
  return {.size = size,
          .read = [ids = std::make_shared<const std::vector<std::int32_t>>(std::move(ids))](
                      std::int64_t first, std::span<std::int32_t> out) { std::copy_n(ids->begin() + first, out.size(), out.begin()); }};
}

TokenStream part_of(std::shared_ptr<const TokenFiles> file, std::int64_t begin, std::int64_t end) {
  return {.size = end - begin,
          .read = [file = std::move(file), begin](std::int64_t first, std::span<std::int32_t> out) { file->read(begin + first, out); }};
}

void add_pairs(Fingerprint& fingerprint, const PairTable& pairs) {
  fingerprint.add(std::uint64_t{pairs.size()});
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    fingerprint.add(pairs.source(i));
    fingerprint.add(pairs.target(i));
  }
}

// Reads all of a stream, so that every id of a file is checked before training starts.
void add_stream(Fingerprint& fingerprint, const TokenStream& stream) {
  fingerprint.add(static_cast<std::uint64_t>(stream.size));
  std::vector<std::int32_t> ids;
  for (std::int64_t first = 0; first < stream.size; first += static_cast<std::int64_t>(ids.size())) {
    ids.resize(static_cast<std::size_t>(std::min<std::int64_t>(1 << 16, stream.size - first)));
    stream.read(first, ids);
    fingerprint.add(std::span<const std::int32_t>(ids));
  }
}

// Of two IDX files, which hold pictures of the shape that the model reads.
PictureSet stored_pictures(const std::filesystem::path& pictures, const std::filesystem::path& labels, const PictureSource& source) {
  LabelledIdxPictures read = read_idx(pictures, labels);
  const PictureShape &has = read.pictures.shape, &wanted = source.shape;
  TW_CHECK_INPUT(has == wanted, pictures.string(), " has pictures of ", has.height, " x ", has.width, " pixels of ", has.channels,
                 has.channels == 1 ? " channel" : " channels", ", and the recipe says ", wanted.height, " x ", wanted.width, " of ",
                 wanted.channels, "; set data.picture_size and data.channels to what the file has; its pictures must be square.");
  return picture_set({.shape = has,
                      .pixels = std::move(read.pictures.pixels),
                      .labels = std::vector<std::int32_t>(read.labels.begin(), read.labels.end()),
                      .classes = source.classes,
                      .name = labels.string()});
}

// What pictures show in words: names of labels as ids, each picture `patches` rows of a source.
struct Captions {
  std::shared_ptr<const std::vector<std::vector<std::int32_t>>> names;
  PairFrame frame;
  std::int64_t patches = 0;
};

BatchStream caption_stream(const PictureSet& set, const Captions& captions, const BatchShape& shape, Pass pass) {
  const std::int64_t pictures = shape.source_rows / captions.patches;
  return BatchStream(
      shape,
      [batches = std::make_shared<PictureBatches>(set, pictures, pass), captions, shape](DataPosition& position) -> std::optional<Batch> {
        batches->restore(position);
        std::optional<PictureBatch> read = batches->next();
        position = batches->position();
        if (!read) return std::nullopt;
        const std::vector<std::int32_t> rows(static_cast<std::size_t>(captions.patches));
        Packer packer(shape);
        for (std::int64_t i = 0; i < read->real; ++i) {
          const auto label = static_cast<std::size_t>(read->labels[static_cast<std::size_t>(i)]);
          TW_CHECK(packer.add_pair(rows, (*captions.names)[label], captions.frame), "a batch's captions do not fit its rows.");
        }
        Batch batch = std::move(packer).take();
        batch.pixels = std::move(read->pixels);
        return batch;
      });
}

// The tokenizer of a configuration, bpe trained on lines.
Tokenizer make_tokenizer(const CorpusConfig& config, TextForm form, std::function<NextLine()> lines) {
  if (config.tokenizer == TokenizerKind::bytes) return Tokenizer();
  return Tokenizer(BpeTraining{.vocabulary = config.tokenizer_vocabulary, .form = form, .lines = std::move(lines)});
}

}  // namespace

BatchStream picture_stream(const PictureSet& set, const BatchShape& shape, Pass pass) {
  return BatchStream(
      shape, [batches = std::make_shared<PictureBatches>(set, shape.target_rows, pass)](DataPosition& position) -> std::optional<Batch> {
        batches->restore(position);
        std::optional<PictureBatch> pictures = batches->next();
        position = batches->position();
        if (!pictures) return std::nullopt;
        Batch batch;
        batch.target_out = std::move(pictures->labels);
        batch.real_tokens = pictures->real;
        batch.pixels = std::move(pictures->pixels);
        return batch;
      });
}

Corpus::Corpus(CorpusConfig config, std::optional<Tokenizer> tokenizer) : config_(std::move(config)), tokenizer_(std::move(tokenizer)) {
  if (config_.kind == DataKind::tokens || config_.kind == DataKind::synthetic || config_.kind == DataKind::pictures) tokenizer_.reset();
  const bool parallel = config_.kind == DataKind::parallel;
  const bool files = parallel || config_.kind == DataKind::text || config_.kind == DataKind::tokens;
  TW_CHECK_INPUT(!files || !config_.source.empty(), "data.kind = \"", name_of(config_.kind), "\" needs data.source, the file to train on.");
  TW_CHECK_INPUT(!parallel || !config_.target.empty(), "data.kind = \"parallel\" needs data.target, the file that translates data.source.");
  TW_CHECK_INPUT(
      !parallel || config_.validation_source.empty() == config_.validation_target.empty(),
      "data.validation_source and data.validation_target belong together; set both, or neither to hold out a fiftieth of the pairs.");
  if (tokenizer_) config_.tokenizer = tokenizer_->kind();
  const bool pairs = parallel || config_.kind == DataKind::number_names || config_.kind == DataKind::captions;
  TW_CHECK_INPUT(!tokenizer_ || !pairs || tokenizer_->frame(), "data.tokenizer has no token that ends a text, and data.kind = \"",
                 name_of(config_.kind), "\" ends every target with one; ",
                 tokenizer_ && tokenizer_->byte_level() != nullptr
                     ? "name it as eos_token in a tokenizer_config.json beside the tokenizer.json"
                     : "take a SentencePiece model that was trained with an eos_id",
                 ", or use data.tokenizer = \"bpe\".");
  switch (config_.kind) {
    case DataKind::number_names:
      open_number_names();
      break;
    case DataKind::text:
      open_text();
      break;
    case DataKind::parallel:
      open_parallel();
      break;
    case DataKind::tokens:
      open_tokens();
      break;
    case DataKind::synthetic:
      break;
    case DataKind::pictures:
      open_pictures();
      break;
    case DataKind::captions:
      open_captions();
      break;
  }
  if (tokenizer_) {
    if (config_.vocabulary == 0) config_.vocabulary = tokenizer_->vocabulary();
    TW_CHECK_INPUT(tokenizer_->vocabulary() <= config_.vocabulary, "model.vocabulary = ", config_.vocabulary,
                   " is smaller than the tokenizer's ", tokenizer_->vocabulary(),
                   "; raise it to that, or take a smaller tokenizer (data.tokenizer, data.tokenizer_vocabulary).");
  }
  fingerprint_ = fingerprint_of();
}

std::uint64_t Corpus::fingerprint_of() const {
  Fingerprint fingerprint;
  fingerprint.add(name_of(config_.kind));
  fingerprint.add(config_.seed);
  if (tokenizer_) fingerprint.add(tokenizer_->learned());
  if (config_.kind == DataKind::number_names) fingerprint.add(static_cast<std::uint64_t>(kTrainingNumbers));
  if (config_.kind == DataKind::synthetic) fingerprint.add(static_cast<std::uint64_t>(config_.vocabulary));
  if (validation_pairs_ && !tokenizer_->has_own_special_ids()) {
    const auto [begin, end] = validation_pairs_->frame();
    fingerprint.add(std::vector<std::int32_t>{begin, end});
  }
  for (const auto& pairs : {training_pairs_, validation_pairs_}) {
    if (pairs) add_pairs(fingerprint, *pairs);
  }
  for (const TokenStream* stream : {&training_tokens_, &validation_tokens_}) add_stream(fingerprint, *stream);
  if (config_.kind == DataKind::pictures || config_.kind == DataKind::captions) {
    fingerprint.add(training_pictures_.fingerprint);
    fingerprint.add(validation_pictures_.fingerprint);
  }
  return fingerprint.value();
}

void Corpus::open_number_names() {
  numbers_ = std::make_shared<const NumberSplit>(config_.seed);
  if (!tokenizer_) {
    tokenizer_ = make_tokenizer(config_, TextForm::sentences, [&] {
      return [&, line = std::int64_t{0}, name = std::string()]() mutable -> std::optional<std::string_view> {
        if (line == 2 * kTokenizerPairs) return std::nullopt;
        const std::int32_t number = numbers_->training(static_cast<std::uint64_t>(line / 2));
        name = line++ % 2 == 0 ? english_name(number) : german_name(number);
        return name;
      };
    });
  }
  PairTable validation(tokenizer_->frame().value());
  for (const std::int32_t number : numbers_->validation()) {
    validation.add(tokenizer_->encode(english_name(number)), tokenizer_->encode(german_name(number)));
  }
  validation_pairs_ = std::make_shared<const PairTable>(std::move(validation));
  for (const std::int32_t number : numbers_->test()) test_pairs_.push_back({.source = english_name(number), .target = german_name(number)});
  facts_ = {.training = kNumberNames - NumberSplit::kTest - NumberSplit::kValidation,
            .validation = NumberSplit::kValidation,
            .test = NumberSplit::kTest};
}

void Corpus::open_parallel() {
  const ParallelText text(config_.source, config_.target, config_.tokenizer);
  std::optional<ParallelText> validation_text;
  std::vector<LinePair> training, validation;
  if (!config_.validation_source.empty()) {
    training = text.pairs;
    validation_text.emplace(config_.validation_source, config_.validation_target, config_.tokenizer);
    validation = validation_text->pairs;
    facts_.blank_validation = validation_text->blank_pairs;
  } else {
    std::vector<std::uint64_t> hashes;
    for (const LinePair& pair : text.pairs) hashes.push_back(hash_of(pair, config_.seed));
    const std::size_t most = std::clamp<std::size_t>(hashes.size() / 50, 1, kMaxHeldOutPairs);
    const std::vector<std::uint64_t> held_out = least_hashes(hashes, static_cast<std::int64_t>(most));
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      (std::ranges::binary_search(held_out, hashes[i]) ? validation : training).push_back(text.pairs[i]);
    }
    TW_CHECK_INPUT(!training.empty(), config_.source, " and ", config_.target,
                   " hold one pair alone, or copies of one, which leaves none to validate on; add another, or set data.validation_source "
                   "and data.validation_target.");
  }
  if (!tokenizer_) {
    tokenizer_ = make_tokenizer(config_, TextForm::sentences, [&] {
      return [&, line = std::size_t{0}]() mutable -> std::optional<std::string_view> {
        if (line == 2 * training.size()) return std::nullopt;
        const LinePair& pair = training[line / 2];
        return line++ % 2 == 0 ? pair.source : pair.target;
      };
    });
  }
  const EncodedPairs encoded = encode_pairs(*tokenizer_, training, {.source = config_.source, .target = config_.target});
  const EncodedPairs encoded_validation = encode_pairs(*tokenizer_, validation,
                                                       {.source = validation_text ? config_.validation_source : config_.source,
                                                        .target = validation_text ? config_.validation_target : config_.target});
  training_pairs_ = encoded.table;
  validation_pairs_ = encoded_validation.table;
  facts_.blank = text.blank_pairs + encoded.blank;
  facts_.blank_validation += encoded_validation.blank;
  note_unknown(encoded.unknown, encoded_validation.unknown);
  note_framed(encoded.framed + encoded_validation.framed);
  for (const LinePair& pair : std::span(validation).first(std::min(validation.size(), kMaxTestPairs))) {
    test_pairs_.push_back({.source = std::string(pair.source), .target = std::string(pair.target)});
  }
  facts_.training = static_cast<std::int64_t>(training_pairs_->size());
  facts_.validation = static_cast<std::int64_t>(validation_pairs_->size());
  facts_.test = static_cast<std::int64_t>(test_pairs_.size());
}

void Corpus::open_text() {
  const std::string text = prepared_file(config_.source, config_.tokenizer, TextForm::document);
  const bool own_validation = !config_.validation_source.empty();
  const std::string validation_text =
      own_validation ? prepared_file(config_.validation_source, config_.tokenizer, TextForm::document) : std::string();
  std::string_view training = text, validation = validation_text;
  if (!own_validation) {
    const std::size_t held_out = std::clamp<std::size_t>(text.size() / 10, kMinTokens, kMaxHeldOutBytes);
    training = whole_characters(text, text.size() - std::min(text.size(), held_out));
    validation = std::string_view(text).substr(training.size());
  }
  if (!tokenizer_) {
    const std::vector<std::string_view> lines = split_lines(training);
    tokenizer_ = make_tokenizer(config_, TextForm::document, [&] {
      return [&, next = lines.begin()]() mutable -> std::optional<std::string_view> {
        if (next == lines.end()) return std::nullopt;
        return *next++;
      };
    });
  }
  EncodedDocument encoded = encode_document(*tokenizer_, {.text = training, .file = config_.source});
  EncodedDocument encoded_validation = encode_document(*tokenizer_, {.text = validation,
                                                                     .file = own_validation ? config_.validation_source : config_.source,
                                                                     .line = own_validation ? 1 : 1 + std::ranges::count(training, '\n')});
  training_tokens_ = in_memory(std::move(encoded.ids));
  validation_tokens_ = in_memory(std::move(encoded_validation.ids));
  note_unknown(encoded.unknown, encoded_validation.unknown);
  check_streams();
}

void Corpus::note_unknown(const UnknownCharacters& training, const UnknownCharacters& validation) {
  for (const auto& [unknown, whose] : {std::pair{&training, "the training text"}, std::pair{&validation, "the validation text"}}) {
    if (unknown->ids() > 0) notes_.push_back(unknown->told(whose) + "; data.tokenizer = \"bytes\" knows them all.");
  }
}

void Corpus::note_framed(std::int64_t sentences) {
  if (sentences == 0) return;
  notes_.push_back(concat(sentences, sentences == 1 ? " sentence spells" : " sentences spell",
                          " a token that begins or ends a target, which is left out of ", sentences == 1 ? "it." : "them."));
}

void Corpus::open_tokens() {
  TW_CHECK_INPUT(config_.vocabulary > 0, "data.kind = \"tokens\" needs model.vocabulary, the number of ids that ", config_.source,
                 " is made of.");
  const auto file = std::make_shared<const TokenFiles>(config_.source, config_.vocabulary);
  std::int64_t training = file->size();
  if (config_.validation_source.empty()) {
    training -= std::min(training, std::clamp<std::int64_t>(training / 10, kMinTokens, kMaxHeldOutTokens));
    validation_tokens_ = part_of(file, training, file->size());
  } else {
    const auto validation = std::make_shared<const TokenFiles>(config_.validation_source, config_.vocabulary);
    for (const std::filesystem::path& shard : files_named(config_.source)) {
      const bool one_alone = shard == config_.source;
      for (const std::filesystem::path& other : files_named(config_.validation_source)) {
        std::error_code ignored;
        TW_CHECK_INPUT(one_alone || !std::filesystem::equivalent(shard, other, ignored), "data.source = ", config_.source, " takes in ",
                       other, ", which is to be validated on; narrow the pattern.");
      }
    }
    validation_tokens_ = part_of(validation, 0, validation->size());
  }
  training_tokens_ = part_of(file, 0, training);
  check_streams();
}

void Corpus::open_pictures() {
  const PictureSource& source = config_.pictures;
  const bool files = !source.pictures.empty(), own_validation = !source.validation_pictures.empty();
  TW_CHECK_INPUT(files == !source.labels.empty(),
                 "data.pictures and data.labels belong together; set both, or neither to train on digits that are drawn.");
  TW_CHECK_INPUT(own_validation == !source.validation_labels.empty() && (files || !own_validation),
                 "data.validation_pictures and data.validation_labels belong together, and to data.pictures; set both, or neither to hold "
                 "out a tenth.");
  if (!files) {
    TW_CHECK_INPUT(source.classes == 0 || source.classes >= kDrawnDigitClasses, "model.classes = ", source.classes,
                   ", and drawn digits are of ", kDrawnDigitClasses,
                   "; set model.classes to that, or name other pictures with data.pictures.");
    const auto drawn = [&](std::int64_t count, PicturePart part) {
      return drawn_digits({.count = count, .shape = source.shape, .seed = config_.seed, .part = part, .noise = source.noise});
    };
    training_pictures_ = drawn(kDrawnPictures, PicturePart::training);
    validation_pictures_ = drawn(kDrawnHeldOutPictures, PicturePart::held_out);
  } else if (own_validation) {
    training_pictures_ = stored_pictures(source.pictures, source.labels, source);
    validation_pictures_ = stored_pictures(source.validation_pictures, source.validation_labels, source);
  } else {
    PictureSplit split = split_pictures(stored_pictures(source.pictures, source.labels, source), config_.seed);
    training_pictures_ = std::move(split.training);
    validation_pictures_ = std::move(split.held_out);
  }
  facts_.training = training_pictures_.count;
  facts_.validation = validation_pictures_.count;
}

// The name of a label is that of the number.
void Corpus::open_captions() {
  config_.pictures.classes = 0;
  open_pictures();
  const auto count = static_cast<std::int32_t>(std::max(training_pictures_.classes, validation_pictures_.classes));
  if (!tokenizer_) {
    tokenizer_ = make_tokenizer(config_, TextForm::sentences, [count] {
      return [count, label = std::int32_t{0}, name = std::string()]() mutable -> std::optional<std::string_view> {
        if (label == count) return std::nullopt;
        name = english_name(label++);
        return name;
      };
    });
  }
  for (std::int32_t label = 0; label < count; ++label) names_.push_back(tokenizer_->encode(english_name(label)));
}

void Corpus::check_streams() {
  TW_CHECK_INPUT(training_tokens_.size >= kMinTokens, config_.source, " leaves ", training_tokens_.size, " tokens to train on; at least ",
                 kMinTokens, " are needed.");
  TW_CHECK_INPUT(validation_tokens_.size >= kMinTokens, config_.validation_source.empty() ? config_.source : config_.validation_source,
                 " leaves ", validation_tokens_.size, " tokens to validate on; at least ", kMinTokens, " are needed.");
  facts_.training = training_tokens_.size;
  facts_.validation = validation_tokens_.size;
}

void Corpus::check_captions(const BatchShape& shape) const {
  std::size_t longest = 0;
  for (const std::vector<std::int32_t>& name : names_) longest = std::max(longest, name.size() + 1);
  const std::int64_t patches = config_.pictures.patches, pictures = patches > 0 ? shape.source_rows / patches : 0,
                     rows = std::ssize(names_) > 0 ? static_cast<std::int64_t>(longest) : 0;
  TW_CHECK(pictures > 0 && shape.source_rows == pictures * patches, "a batch of ", shape.source_rows, " rows holds no pictures of ",
           patches, " rows each.");
  TW_CHECK_INPUT(rows <= shape.sequence && pictures * rows <= shape.target_rows, "the longest caption takes ", rows, " rows, and ",
                 pictures, " of them do not fit batch.target_tokens = ", shape.target_rows,
                 " or batch.sequence; set batch.target_tokens to ", pictures * rows, " and batch.sequence to ", rows,
                 " at least, or take fewer batch.pictures.");
}

void Corpus::check_shape(const BatchShape& shape) const {
  const bool pairs = config_.kind == DataKind::number_names || config_.kind == DataKind::parallel;
  const bool stream = config_.kind == DataKind::text || config_.kind == DataKind::tokens;
  if (config_.kind == DataKind::captions) return check_captions(shape);
  TW_CHECK(config_.kind != DataKind::pictures || (shape.source_rows == shape.target_rows * shape.sequence), "a batch of ",
           shape.target_rows, " pictures of ", shape.sequence, " rows has not ", shape.source_rows, " rows.");
  TW_CHECK_INPUT(!pairs || shape.source_rows > 0, "data.kind = \"", name_of(config_.kind),
                 "\" has pairs of sentences, which a decoder alone cannot use; set model.architecture = \"encoder_decoder\".");
  TW_CHECK_INPUT(!stream || shape.source_rows == 0, "data.kind = \"", name_of(config_.kind),
                 "\" has no source sentences for an encoder; set model.architecture = \"decoder_only\".");
}

BatchStream Corpus::captioned(const PictureSet& set, const BatchShape& shape, Pass pass) const {
  const Captions captions{.names = std::make_shared<const std::vector<std::vector<std::int32_t>>>(names_),
                          .frame = tokenizer_->frame().value(),
                          .patches = config_.pictures.patches};
  return caption_stream(set, captions, shape, pass);
}

BatchStream Corpus::training(const BatchShape& shape) const {
  check_shape(shape);
  const Pass pass{.kind = Pass::Kind::shuffled_epochs, .seed = config_.seed};
  if (config_.kind == DataKind::synthetic) return synthetic_batches(config_.vocabulary, config_.seed, shape);
  if (config_.kind == DataKind::pictures) return picture_stream(training_pictures_, shape, pass);
  if (config_.kind == DataKind::captions) return captioned(training_pictures_, shape, pass);
  if (config_.kind == DataKind::parallel) return pair_batches(training_pairs_, shape, pass);
  if (config_.kind != DataKind::number_names) return window_batches(training_tokens_, shape, pass);
  pair_batches(validation_pairs_, shape, {});  // refuses a shape that no name fits
  return BatchStream(shape, [numbers = numbers_, tokenizer = *tokenizer_, frame = validation_pairs_->frame(), shape](
                                Packer& packer, DataPosition& position) {
    for (;; ++position.next) {
      const std::int32_t number = numbers->training(position.next);
      const std::vector<std::int32_t> source = tokenizer.encode(english_name(number)), target = tokenizer.encode(german_name(number));
      if (fits(shape, source, target) && !packer.add_pair(source, target, frame)) return;
    }
  });
}

BatchStream Corpus::validation(const BatchShape& shape) const {
  check_shape(shape);
  if (config_.kind == DataKind::synthetic) return synthetic_batches(config_.vocabulary, random_key(config_.seed, 'v'), shape, 1);
  if (config_.kind == DataKind::pictures) return picture_stream(validation_pictures_, shape, {});
  if (config_.kind == DataKind::captions) return captioned(validation_pictures_, shape, {});
  try {
    return validation_pairs_ ? pair_batches(validation_pairs_, shape, {}) : window_batches(validation_tokens_, shape, {});
  } catch (const InputError& error) {
    throw InputError(concat("of the validation data, ", error.what()));
  }
}

}  // namespace tilewave
