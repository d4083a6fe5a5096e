// The reading is framework/recipe's; here is what the keys mean to each other.
#include "models/recipe/recipe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <limits>
#include <utility>

#include "framework/data/token_file.h"
#include "framework/recipe/reference.h"
#include "framework/recipe/schema.h"
#include "kernels/core/error.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/forced_gemm.h"
#include "models/recipe/foreign_names.h"

namespace tilewave {
namespace {

void validate_rope(const ModelConfig& model) {
  if (model.positions != Positions::rope) {
    TW_CHECK_INPUT(model.rope_scaling == RopeScaling::none, "model.rope_scaling = \"", name_of(model.rope_scaling),
                   "\" stretches rotary positions, and model.positions is \"", name_of(model.positions),
                   "\"; set it to \"rope\", or leave model.rope_scaling out.");
    return;
  }
  TW_CHECK_INPUT(head_size_of(model) % 2 == 0, "model.positions = \"rope\" turns pairs of a head's columns, and a head is ",
                 head_size_of(model), " wide; set an even model.head_size, or other model.heads.");
  TW_CHECK_INPUT(model.rope_scaling == RopeScaling::none || model.rope_low_frequency < model.rope_high_frequency,
                 "model.rope_low_frequency = ", toml_float(model.rope_low_frequency),
                 " is not below model.rope_high_frequency = ", toml_float(model.rope_high_frequency),
                 "; between them rope's waves go over from stretched to not.");
}

// Keys that not every model reads; they stay at their defaults in the others' recipes.
constexpr std::array<std::string_view, 7> kDecoderKeys = {
    "model.decoder_layers", "model.vocabulary",    "model.max_positions",         "model.tied",
    "batch.sequence",       "batch.target_tokens", "guidelines.pad_vocabulary_to"};
constexpr std::array<std::string_view, 2> kTokenizerKeys = {"data.tokenizer", "data.tokenizer_vocabulary"};
constexpr std::array<std::string_view, 1> kSourceKeys = {"batch.source_tokens"};
constexpr std::array<std::string_view, 5> kWaveKeys = {"guidelines.wave_free_batch", "guidelines.wave_layer", "guidelines.wave_role",
                                                       "guidelines.wave_tile", "guidelines.wave_limit"};
constexpr std::array<std::string_view, 1> kBatchKeys = {"guidelines.batch_multiple_of"};
constexpr std::array<std::string_view, 1> kClassKeys = {"model.classes"};
constexpr std::array<std::string_view, 9> kPictureKeys = {"model.stem_norm",   "model.stem_pool", "model.patch",
                                                          "data.picture_size", "data.channels",   "data.noise",
                                                          "data.mean",         "data.deviation",  "batch.pictures"};

bool is_read(std::string_view key, const ModelConfig& model) {
  const bool classes = classifies(model), pictures = sees_pictures(model);
  const auto among = [&](std::span<const std::string_view> keys) { return std::ranges::find(keys, key) != keys.end(); };
  if (among(kDecoderKeys) || among(kTokenizerKeys)) return !classes;
  if (among(kSourceKeys) || among(kWaveKeys)) return !pictures;
  if (among(kBatchKeys)) return !captions(model);
  if (among(kClassKeys)) return classes;
  return pictures || !among(kPictureKeys);
}

void validate_read_keys(const Recipe& recipe) {
  Recipe asked = recipe, defaults;
  const std::vector<Section> sections = sections_of(asked), default_sections = sections_of(defaults);
  const std::string what = captions(recipe.model) ? concat("\" and model.stem \"", name_of(recipe.model.stem)) : "";
  for (std::size_t s = 0; s < sections.size(); ++s) {
    for (std::size_t f = 0; f < sections[s].fields.size(); ++f) {
      const std::string key = concat(sections[s].name, ".", sections[s].fields[f].name);
      if (is_read(key, recipe.model)) continue;
      const std::string value = value_text(sections[s].fields[f]);
      TW_CHECK_INPUT(value == value_text(default_sections[s].fields[f]), key, " = ", value, " would not be read: model.architecture is \"",
                     name_of(recipe.model.architecture), what, "\"; leave it out.");
    }
  }
}

constexpr double kMaxPixels = 1 << 27;  // of a pass

void validate_pictures(const Recipe& recipe) {
  const ModelConfig& model = recipe.model;
  const DataConfig& data = recipe.data;
  TW_CHECK_INPUT(model.positions == Positions::learned, "model.positions = \"", name_of(model.positions),
                 "\" numbers tokens, and an encoder of pictures learns a row for each of their places; set it to \"learned\".");
  TW_CHECK_INPUT(model.architecture != Architecture::decoder_only, "model.stem = \"", name_of(model.stem),
                 "\" makes rows of an encoder, and a decoder_only model has none; set it to \"none\", or model.architecture to "
                 "\"encoder_decoder\".");
  TW_CHECK_INPUT(model.encoder_layers > 0, "model.encoder_layers = 0 in an ", name_of(model.architecture), " model; set it to at least 1.");
  TW_CHECK_INPUT(model.stem != Stem::none,
                 "model.stem = \"none\" makes no rows of pictures, which an encoder_classifier sees; set it to \"patch\" or "
                 "\"convolution\".");
  const bool halves = model.stem == Stem::convolution;
  TW_CHECK_INPUT(halves || (model.stem_norm == StemNorm::batch_norm && !model.stem_pool),
                 "model.stem_norm and model.stem_pool belong to model.stem = \"convolution\"; leave them out.");
  TW_CHECK_INPUT(!halves || (std::has_single_bit(static_cast<std::uint64_t>(model.patch)) && model.patch >= (model.stem_pool ? 4 : 2)),
                 "model.patch = ", model.patch, " is not made by halving sides, as model.stem = \"convolution\" does",
                 model.stem_pool ? " and, with model.stem_pool, does twice at least" : "", "; set a power of two from ",
                 model.stem_pool ? 4 : 2, " on.");
  TW_CHECK_INPUT(data.picture_size % model.patch == 0, "model.patch = ", model.patch,
                 " does not divide data.picture_size = ", data.picture_size, "; patches fill a picture. Set a divisor.");
  TW_CHECK_INPUT(data.channels != 2, "data.channels = 2 are no colors; set 1, shades of grey, or 3, red, green and blue.");
  const double rows = static_cast<double>(recipe.batch.pictures) * static_cast<double>(patches_of(model, data));
  const double pixels = static_cast<double>(recipe.batch.pictures) * static_cast<double>(data.picture_size * data.picture_size);
  TW_CHECK_INPUT(rows <= kMaxRows && pixels <= kMaxPixels, "batch.pictures = ", recipe.batch.pictures, " of ", data.picture_size, " x ",
                 data.picture_size, " pixels are too many for one pass; lower it, and raise batch.accumulate.");
}

void validate_model(const Recipe& recipe) {
  const ModelConfig& model = recipe.model;
  const BatchConfig& batch = recipe.batch;
  TW_CHECK_INPUT(model.head_size > 0 || model.d_model % model.heads == 0, "model.d_model = ", model.d_model,
                 " is not divisible by model.heads = ", model.heads, "; every head is d_model / heads wide.");
  TW_CHECK_INPUT(model.heads % kv_heads_of(model) == 0, "model.kv_heads = ", model.kv_heads, " does not divide model.heads = ", model.heads,
                 "; as many heads of queries share each head of keys. Set a divisor, or 0 for a head of keys a head of queries.");
  if (sees_pictures(model)) validate_pictures(recipe);
  if (classifies(model)) return;
  validate_rope(model);
  if (model.architecture == Architecture::decoder_only) {
    TW_CHECK_INPUT(model.encoder_layers == 0, "model.encoder_layers = ", model.encoder_layers,
                   " in a decoder_only model; set it to 0, or model.architecture to \"encoder_decoder\".");
    TW_CHECK_INPUT(batch.source_tokens == 0, "batch.source_tokens = ", batch.source_tokens,
                   " in a decoder_only model, which has no source; set it to 0.");
  } else {
    TW_CHECK_INPUT(
        model.encoder_layers > 0,
        "model.encoder_layers = 0 in an encoder_decoder model; set it to at least 1, or model.architecture to \"decoder_only\".");
    TW_CHECK_INPUT(sees_pictures(model) || batch.source_tokens > 0,
                   "batch.source_tokens = 0 in an encoder_decoder model; set the encoder's rows of tokens.");
    TW_CHECK_INPUT(sees_pictures(model) || batch.sequence <= batch.source_tokens, "batch.sequence = ", batch.sequence,
                   " is longer than batch.source_tokens = ", batch.source_tokens, "; a batch must hold its longest sequence.");
  }
  TW_CHECK_INPUT(batch.sequence <= batch.target_tokens, "batch.sequence = ", batch.sequence,
                 " is longer than batch.target_tokens = ", batch.target_tokens, "; a batch must hold its longest sequence.");
  TW_CHECK_INPUT(batch.sequence <= model.max_positions, "batch.sequence = ", batch.sequence,
                 " is longer than model.max_positions = ", model.max_positions, "; every token needs a position.");
}

constexpr double kMinNormal = std::numeric_limits<float>::min(), kMaxFinite = std::numeric_limits<float>::max();
constexpr std::string_view kMinNormalText = "1.1755e-38", kMaxFiniteText = "3.4028e+38";  // rounded inwards

// What fp32 cannot hold in full precision would be another number in the step, or 0, 1 or an infinity.
void validate_rounding(const Recipe& recipe) {
  if (recipe.run.precision == Precision::fp64) return;
  Recipe copy = recipe;
  for (const Section& section : sections_of(copy)) {
    for (const Field& field : section.fields) {
      const auto* number = std::get_if<double*>(&field.member);
      if (number == nullptr || field.key.computed == ComputedIn::host_double) continue;
      const double value = **number, size = std::abs(value);
      const auto refuse = [&](const std::string& wanted) {
        throw InputError(concat(section.name, ".", field.name, " = ", toml_float(value), " is no number of fp32, which run.precision = \"",
                                name_of(recipe.run.precision), "\" computes it in: it must be ", wanted,
                                "; choose such a number, or run.precision = \"fp64\"."));
      };
      const Range& range = field.key.range;
      if (size > kMaxFinite || (size > 0.0 && size < kMinNormal)) {
        const std::string most = range.most < kMaxFinite ? toml_float(range.most) : std::string(kMaxFiniteText);
        refuse(concat(range.contains(0.0) ? "0, or " : "", "from ", kMinNormalText, " to ", most));
      }
      if (!range.contains(static_cast<float>(value))) {
        const float last = std::nextafter(static_cast<float>(range.most), 0.0F);
        refuse(concat("at most ", std::setprecision(9), last, ", fp32's last number before ", range.most));
      }
    }
  }
}

// Draws have 32 bits: a smaller probability drops nothing, a larger one keeps more than it says.
void validate_dropout(const Recipe& recipe) {
  constexpr double kStep = 0x1p-32;
  for (const auto& [key, value] :
       {std::pair{"model.dropout", recipe.model.dropout}, {"model.attention_dropout", recipe.model.attention_dropout}}) {
    TW_CHECK_INPUT(value == 0.0 || (value >= kStep && value <= 1.0 - kStep), key, " = ", toml_float(value),
                   " cannot be drawn, since draws have 32 bits: it must be 0, or from ", kStep, " to 1 - ", kStep, ".");
  }
}

bool has_pictures(const DataConfig& data) { return data.kind == DataKind::pictures || data.kind == DataKind::captions; }

struct DataPath {
  std::string_view key;
  const std::string& value;
  bool used;
  bool needed;
};

std::array<DataPath, 8> data_paths(const DataConfig& data) {
  const bool parallel = data.kind == DataKind::parallel;
  const bool files = parallel || data.kind == DataKind::text || data.kind == DataKind::tokens;
  const bool pictures = has_pictures(data), validates = !data.validation_pictures.empty() || !data.validation_labels.empty();
  return {DataPath{"data.source", data.source, files, files},
          DataPath{"data.target", data.target, parallel, parallel},
          DataPath{"data.validation_source", data.validation_source, files, parallel && !data.validation_target.empty()},
          DataPath{"data.validation_target", data.validation_target, parallel, parallel && !data.validation_source.empty()},
          DataPath{"data.pictures", data.pictures, pictures, pictures && (validates || !data.labels.empty())},
          DataPath{"data.labels", data.labels, pictures, pictures && (validates || !data.pictures.empty())},
          DataPath{"data.validation_pictures", data.validation_pictures, pictures, pictures && validates},
          DataPath{"data.validation_labels", data.validation_labels, pictures, pictures && validates}};
}

void validate_data(const Recipe& recipe) {
  const DataConfig& data = recipe.data;
  const bool pairs = data.kind == DataKind::number_names || data.kind == DataKind::parallel;
  const bool has_encoder = recipe.model.architecture == Architecture::encoder_decoder;
  TW_CHECK_INPUT((data.kind == DataKind::captions) == captions(recipe.model), "data.kind = \"", name_of(data.kind),
                 "\" and model.stem = \"", name_of(recipe.model.stem), "\" in an ", name_of(recipe.model.architecture),
                 " model do not go together: \"captions\" are what an encoder_decoder with a stem learns; set both or neither.");
  TW_CHECK_INPUT((data.kind == DataKind::pictures) == classifies(recipe.model), "data.kind = \"", name_of(data.kind),
                 "\" and model.architecture = \"", name_of(recipe.model.architecture),
                 "\" do not go together: \"pictures\" are what an \"encoder_classifier\" sees; set both or neither.");
  TW_CHECK_INPUT(
      data.kind == DataKind::synthetic || has_pictures(data) || pairs == has_encoder, "data.kind = \"", name_of(data.kind), "\" ",
      pairs ? "holds pairs, for model.architecture = \"encoder_decoder\"" : "is one stream, for model.architecture = \"decoder_only\"",
      "; the recipe says \"", name_of(recipe.model.architecture), "\".");
  for (const DataPath& path : data_paths(data)) {
    TW_CHECK_INPUT(path.used || path.value.empty(), path.key, " = ", toml_string(path.value), " would not be read: data.kind is \"",
                   name_of(data.kind), "\".");
  }
  TW_CHECK_INPUT(!data.tokenizer.empty(), "data.tokenizer is empty; write \"bytes\", \"bpe\" or the path of a tokenizer.");
  if (!uses_tokenizer(data)) return;
  const std::int64_t ids = data.tokenizer_source() == TokenizerSource::bytes ? kByteVocabulary : data.tokenizer_vocabulary;
  TW_CHECK_INPUT(recipe.model.vocabulary >= ids, "model.vocabulary = ", recipe.model.vocabulary,
                 " is too small: data.tokenizer = ", toml_string(data.tokenizer), " makes ", ids,
                 " ids; set model.vocabulary to at least that.");
}

bool falls_to_an_end(ScheduleKind kind) { return Schedule{.kind = kind}.ends(); }

void validate_schedule(const Recipe& recipe) {
  const ScheduleConfig& schedule = recipe.schedule;
  TW_CHECK_INPUT(
      schedule.kind != ScheduleKind::inverse_square_root || schedule.warmup_steps > 0,
      "schedule.kind = \"inverse_square_root\" needs schedule.warmup_steps of at least 1: it decays as sqrt(warmup_steps / step).");
  const std::string_view kind = name_of(schedule.kind);
  const bool ends = falls_to_an_end(schedule.kind), stable = schedule.kind == ScheduleKind::warmup_stable_decay;
  TW_CHECK_INPUT(!ends || schedule.decay_steps == 0 || schedule.decay_steps > schedule.warmup_steps, "schedule.kind = \"", kind,
                 "\" ends at schedule.decay_steps = ", schedule.decay_steps,
                 ", which is not after schedule.warmup_steps = ", schedule.warmup_steps, "; shorten the warm-up or end later.");
  TW_CHECK_INPUT(ends || schedule.min_learning_rate == 0.0, "schedule.min_learning_rate = ", toml_float(schedule.min_learning_rate),
                 " is what a schedule with an end falls to, and schedule.kind = \"", kind,
                 "\" has none; leave it out, or set schedule.kind to \"cosine\", \"linear\" or \"warmup_stable_decay\".");
  TW_CHECK_INPUT(
      schedule.min_learning_rate <= recipe.optimizer.learning_rate, "schedule.min_learning_rate = ", toml_float(schedule.min_learning_rate),
      " is above the peak, optimizer.learning_rate = ", toml_float(recipe.optimizer.learning_rate), "; lower the one or raise the other.");
  TW_CHECK_INPUT(stable || schedule.decay_from == 0, "schedule.decay_from = ", schedule.decay_from,
                 " is warmup_stable_decay's, and schedule.kind = \"", kind, "\" falls from its warm-up on; leave it out.");
  TW_CHECK_INPUT(!stable || schedule.decay_from == 0 || schedule.decay_from >= schedule.warmup_steps,
                 "schedule.decay_from = ", schedule.decay_from, " lies within the warm-up, schedule.warmup_steps = ", schedule.warmup_steps,
                 "; the peak is reached before it is left.");
  TW_CHECK_INPUT(!stable || schedule.decay_from == 0 || schedule.decay_steps == 0 || schedule.decay_from < schedule.decay_steps,
                 "schedule.decay_from = ", schedule.decay_from, " is not before schedule.decay_steps = ", schedule.decay_steps,
                 ", where the fall ends; begin earlier or end later.");
}

void validate_forced(std::string_view choice) {
  const ForcedGemm asked = parse_forced_gemm(choice);
  if (find_gemm_kernel(asked.kernel) != nullptr) return;
  const std::string first(choice.substr(0, choice.find('/')));
  if (const GemmKernel* kernel = first == choice ? nullptr : find_gemm_kernel(parse_forced_gemm(first).kernel); kernel != nullptr) {
    const Tile tile = kernel->tiles.front();
    const std::string rest = asked.kernel.substr(std::min(asked.kernel.size(), asked.kernel.find('/') + 1));
    throw InputError(concat("gemm.choice = ", toml_string(choice), ": behind ", name_of(*kernel), ", ", toml_string(rest),
                            " names no tile; write <kernel>/<M>x<N>, such as ", name_of(*kernel), "/", tile.m, "x", tile.n, "."));
  }
  std::string kernels;
  const std::vector<std::string> known = gemm_kernel_names();
  std::vector<std::string_view> names = {"model", "measure"};
  for (const std::string& name : known) {
    kernels += ", " + name;
    names.push_back(name);
  }
  const std::string_view near = nearest_word(asked.kernel, names);
  throw InputError(concat("gemm.choice = ", toml_string(choice), " names no kernel of the catalog; there are model, measure", kernels,
                          near.empty() ? "" : " (did you mean ", near, near.empty() ? "." : "?)."));
}

void validate_gemm(const Recipe& recipe) {
  const std::string_view choice = recipe.gemm.choice;
  const PlanSource source = plan_source(choice);
  if (source == PlanSource::forced) validate_forced(choice);
  TW_CHECK_INPUT(recipe.gemm.engine == GemmEngine::tilewave || source != PlanSource::forced, "gemm.engine = \"",
                 name_of(recipe.gemm.engine), "\" multiplies with a library, and gemm.choice = ", toml_string(choice),
                 " names a kernel of tilewave's; set one of them.");
  const std::string_view tile = recipe.guidelines.wave_tile;
  TW_CHECK_INPUT(tile == "chosen" || parse_tile(tile), "guidelines.wave_tile = ", toml_string(tile),
                 " names no tile; write \"chosen\" or <M>x<N>, such as \"256x128\".");
}

// Without a look at the data.
PassSegments expected_segments(const Recipe& recipe, const StepShapes& shapes) {
  const BatchShape shape{.source_rows = shapes.source_rows, .target_rows = shapes.target_rows, .sequence = longest_segment(recipe)};
  using enum PassSegments::Origin;
  switch (recipe.data.kind) {
    case DataKind::text:
    case DataKind::tokens:
      return whole_segments(shape, windows);
    case DataKind::synthetic:
      return whole_segments(shape, made_up);
    case DataKind::captions:
      break;
    case DataKind::pictures:
      return {.origin = pictures,
              .source = {.queries = shape.source_rows, .pairs = shape.source_rows * shape.sequence},
              .target = {},
              .cross = {}};
    case DataKind::number_names:
    case DataKind::parallel:
      break;
  }
  return whole_segments(shape, assumed);
}

void check_file(std::string_view key, const std::filesystem::path& path) {
  const std::string named = concat(key, " = ", toml_string(path.string()));
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  TW_CHECK_INPUT(status.type() != std::filesystem::file_type::not_found, named, " is not there; name another file with --set ", key,
                 "=FILE.");
  TW_CHECK_INPUT(!std::filesystem::is_directory(status), named, " is a directory; name a file.");
  TW_CHECK_INPUT(std::filesystem::is_regular_file(status), named, " is no regular file; copy what it gives to one.");
  std::ifstream file(path, std::ios::binary);
  TW_CHECK_INPUT(file, named, " cannot be read; check its permissions.");
  TW_CHECK_INPUT(file.peek() != std::ifstream::traits_type::eof(), named, " is empty; name a file with text.");
}

}  // namespace

bool uses_tokenizer(const DataConfig& data) {
  return data.kind == DataKind::number_names || data.kind == DataKind::text || data.kind == DataKind::parallel ||
         data.kind == DataKind::captions;
}

std::optional<SeenPictures> pictures_of(const Recipe& recipe) {
  const DataConfig& data = recipe.data;
  if (!sees_pictures(recipe.model)) return {};
  return SeenPictures{.shape = {.height = data.picture_size, .width = data.picture_size, .channels = data.channels},
                      .normalization = {.mean = {data.mean}, .deviation = {data.deviation}}};
}

std::int64_t longest_segment(const Recipe& recipe) {
  const std::int64_t patches = sees_pictures(recipe.model) ? patches_of(recipe.model, recipe.data) : 0;
  return classifies(recipe.model) ? patches : std::max(patches, recipe.batch.sequence);
}

void check_ranks(const Recipe& recipe) {
  const std::int64_t ranks = recipe.run.ranks;
  if (ranks == 1) return;
  TW_CHECK_INPUT(plan_source(recipe.gemm.choice) != PlanSource::measure, "gemm.choice = \"measure\" would have each of run.ranks = ", ranks,
                 " ranks choose for itself, and sums run in other orders; use \"model\", or a kernel's name.");
  TW_CHECK_INPUT(!sees_pictures(recipe.model), "run.ranks = ", ranks,
                 " shares out rows of tokens, and a model that sees pictures trains on one device; set run.ranks to 1.");
  TW_CHECK_INPUT(recipe.run.gradient_reduction == GradientReductionType::fp32 || recipe.run.precision != Precision::fp64,
                 "run.gradient_reduction = \"bf16\" would round the gradients of run.precision = \"fp64\" to 8 bits between run.ranks = ",
                 ranks, " ranks; set it to \"fp32\", which sums them as they are.");
}

void check_reads_tokens(const Recipe& recipe, std::string_view what) {
  const bool classes = classifies(recipe.model);
  TW_CHECK_INPUT(!sees_pictures(recipe.model), what, " needs a model of tokens, and model.", classes ? "architecture" : "stem", " = \"",
                 classes ? name_of(recipe.model.architecture) : name_of(recipe.model.stem), "\" sees pictures.");
}

Recipe parse_recipe(const RecipeText& text, std::span<const std::string> overrides) {
  Recipe recipe;
  std::vector<Section> sections = sections_of(recipe);
  read_toml(text, sections, foreign_names());
  for (const std::string& assignment : overrides) set_key(assignment, sections, foreign_names());
  recipe.name = std::filesystem::path(text.source).stem().string();
  validate(recipe);
  return recipe;
}

Recipe read_recipe(const std::filesystem::path& path, std::span<const std::string> overrides) {
  return parse_recipe(read_recipe_file(path), overrides);
}

void validate(const Recipe& recipe) {
  validate_rounding(recipe);
  validate_dropout(recipe);
  validate_read_keys(recipe);
  check_ranks(recipe);
  validate_model(recipe);
  validate_data(recipe);
  validate_schedule(recipe);
  validate_gemm(recipe);
}

void check_files(const Recipe& recipe) {
  for (const DataPath& path : data_paths(recipe.data)) {
    TW_CHECK_INPUT(!path.needed || !path.value.empty(), path.key, " is missing: data.kind = \"", name_of(recipe.data.kind),
                   "\" reads it; name a file with --set ", path.key, "=FILE.");
    if (path.value.empty()) continue;
    const bool shards = recipe.data.kind == DataKind::tokens;
    for (const std::filesystem::path& file : shards ? files_named(path.value) : std::vector<std::filesystem::path>{path.value}) {
      check_file(path.key, file);
    }
  }
}

void check_tokenizer(const Recipe& recipe) {
  const DataConfig& data = recipe.data;
  if (!uses_tokenizer(data) || data.tokenizer_source() != TokenizerSource::file) return;
  std::error_code ignored;
  if (std::filesystem::exists(data.tokenizer, ignored)) return;
  const std::string said = concat("data.tokenizer = ", toml_string(data.tokenizer),
                                  R"( is neither "bytes" nor "bpe", and no file or folder of that name is there)");
  const std::string_view advice = foreign_advice("data.tokenizer", data.tokenizer, foreign_names().values);
  TW_CHECK_INPUT(advice.empty(), said, ". ", advice);
  const std::string_view near = nearest_word(data.tokenizer, kTokenizerWords);
  throw InputError(concat(said, near.empty() ? "." : concat(" (did you mean \"", near, "\"?).")));
}

void check_supported(const Recipe& recipe, Backend backend) {
  const GemmEngine engine = recipe.gemm.engine;
  TW_CHECK_INPUT(backend != Backend::cpu || engine == GemmEngine::tilewave, "gemm.engine = \"", name_of(engine),
                 "\" needs a GPU; use --set gemm.engine=tilewave.");
  const Precision precision = recipe.run.precision;
  TW_CHECK_INPUT(backend != Backend::cpu || (precision != Precision::bf16 && precision != Precision::fp16), "run.precision = \"",
                 name_of(precision), "\" needs a GPU: a CPU trains in fp32, tf32 and fp64; use --set run.precision=fp32.");
}

ResolvedRecipe resolve(const Recipe& recipe, const TokenizerFacts& tokenizer) {
  validate(recipe);
  TW_CHECK_INPUT(recipe.guidelines.wave_free_batch == WaveFreeBatch::off, "guidelines.wave_free_batch = \"",
                 name_of(recipe.guidelines.wave_free_batch),
                 "\" asks for a device's waves, and there is no device here; guidelines.wave_free_batch = \"off\" needs none.");
  TW_CHECK_INPUT(tokenizer.vocabulary <= recipe.model.vocabulary, "model.vocabulary = ", recipe.model.vocabulary,
                 " is too small: the tokenizer makes ", tokenizer.vocabulary, " ids; set model.vocabulary to at least that.");
  Recipe numbers = recipe;
  if (uses_tokenizer(recipe.data) && recipe.data.tokenizer_source() == TokenizerSource::trained && recipe.data.tokenizer_vocabulary == 0) {
    numbers.data.tokenizer_vocabulary = recipe.model.vocabulary;
  }
  ScheduleConfig& schedule = numbers.schedule;
  if (falls_to_an_end(schedule.kind) && schedule.decay_steps == 0) {  // a run may end within its warm-up, or before its fall
    schedule.decay_steps = std::max({recipe.run.steps, schedule.warmup_steps + 1, schedule.decay_from + 1});
  }
  if (schedule.kind == ScheduleKind::warmup_stable_decay && schedule.decay_from == 0) {
    schedule.decay_from = std::max(schedule.warmup_steps, schedule.decay_steps - std::max<std::int64_t>(1, schedule.decay_steps / 10));
  }
  Guided guided = apply_guidelines(numbers);
  const PassSegments segments = expected_segments(numbers, guided.shapes);
  return {.recipe = std::move(numbers), .shapes = guided.shapes, .adjustments = std::move(guided.adjustments), .segments = segments};
}

PlanSource plan_source(std::string_view choice) {
  if (choice == "model") return PlanSource::model;
  return choice == "measure" ? PlanSource::measure : PlanSource::forced;
}

bool packs_pairs(const DataConfig& data) { return data.kind == DataKind::number_names || data.kind == DataKind::parallel; }

std::string to_toml(const Recipe& recipe) {
  Recipe copy = recipe;
  return to_toml(sections_of(copy));
}

std::string hash_of(const Recipe& recipe) {
  constexpr std::string_view kHex = "0123456789abcdef";
  Recipe copy = recipe, defaults;
  std::vector<Section> sections = sections_of(copy);
  const std::vector<Section> default_sections = sections_of(defaults);
  for (std::size_t s = 0; s < sections.size(); ++s) {
    const std::vector<Field> fields = std::move(sections[s].fields);
    sections[s].fields.clear();
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const bool later = fields[f].key.hashed == Hashed::where_set && value_text(fields[f]) == value_text(default_sections[s].fields[f]);
      if (!later) sections[s].fields.push_back(fields[f]);
    }
  }
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : to_toml(sections, Words::former)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::string digits(16, '0');
  for (std::size_t i = 0; i < digits.size(); ++i) digits[i] = kHex[(hash >> (60 - 4 * i)) & 15];
  return digits;
}

std::vector<KeyDifference> differences(const Recipe& first, const Recipe& second) {
  Recipe a = first, b = second;
  return differences(sections_of(a), sections_of(b));
}

std::string recipe_reference() {
  Recipe defaults;
  return reference_tables(sections_of(defaults));
}

std::string recipe_schema() {
  Recipe defaults;
  return recipe_schema(sections_of(defaults), "a tilewave recipe");
}

}  // namespace tilewave
