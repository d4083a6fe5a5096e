// What a recipe says: plain aggregates, one a section. Each names its keys once, in describe(); the initialisers are the
// defaults, those of a small translation model. docs/use/recipes.md holds the same as tables, with the formulas.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/data/corpus.h"
#include "framework/nn/norm.h"
#include "framework/ops/feed_forward_activation.h"
#include "framework/optimizer/learning_rate.h"
#include "framework/recipe/describe.h"
#include "framework/tensor/layout.h"
#include "framework/tensor/pitch.h"
#include "framework/tensor/precision.h"
#include "kernels/gemm/plan.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

enum class Architecture : std::uint8_t { encoder_decoder, decoder_only, encoder_classifier };
enum class Stem : std::uint8_t { none, patch, convolution };
enum class StemNorm : std::uint8_t { batch_norm, layer_norm };
enum class Norm : std::uint8_t { pre, post };
enum class Biases : std::uint8_t { all, none, qkv };
enum class Positions : std::uint8_t { sinusoidal, learned, rope };
enum class RopeScaling : std::uint8_t { none, llama3 };
enum class GemmEngine : std::uint8_t { tilewave, cublas, cublaslt };
enum class RunLog : std::uint8_t { none, tensorboard };
enum class WaveFreeBatch : std::uint8_t { off, nearest, up, down };

template <>
inline constexpr std::array kNames<Architecture> = {Named{Architecture::encoder_decoder, "encoder_decoder"},
                                                    Named{Architecture::decoder_only, "decoder_only"},
                                                    Named{Architecture::encoder_classifier, "encoder_classifier"}};
template <>
inline constexpr std::array kNames<Stem> = {Named{Stem::none, "none"}, Named{Stem::patch, "patch"},
                                            Named{Stem::convolution, "convolution"}};
template <>
inline constexpr std::array kNames<StemNorm> = {Named{StemNorm::batch_norm, "batch_norm"}, Named{StemNorm::layer_norm, "layer_norm"}};
template <>
inline constexpr std::array kNames<Norm> = {Named{Norm::pre, "pre"}, Named{Norm::post, "post"}};
template <>
inline constexpr std::array kNames<NormKind> = {Named{NormKind::layer_norm, "layer_norm"}, Named{NormKind::rms_norm, "rms_norm"}};
template <>
inline constexpr std::array kNames<Biases> = {Named{Biases::all, "all"}, Named{Biases::none, "none"}, Named{Biases::qkv, "qkv"}};
template <>
inline constexpr std::array kNames<FeedForwardActivation> = {
    Named{FeedForwardActivation::relu, name_of(FeedForwardActivation::relu)},
    Named{FeedForwardActivation::gelu_tanh, name_of(FeedForwardActivation::gelu_tanh)},
    Named{FeedForwardActivation::gelu_erf, name_of(FeedForwardActivation::gelu_erf)},
    Named{FeedForwardActivation::silu, name_of(FeedForwardActivation::silu)},
    Named{FeedForwardActivation::swiglu, name_of(FeedForwardActivation::swiglu)},
    Named{FeedForwardActivation::sigmoid, name_of(FeedForwardActivation::sigmoid)},
    Named{FeedForwardActivation::tanh, name_of(FeedForwardActivation::tanh)}};
template <>
inline constexpr std::array kNames<Positions> = {Named{Positions::sinusoidal, "sinusoidal"}, Named{Positions::learned, "learned"},
                                                 Named{Positions::rope, "rope"}};
template <>
inline constexpr std::array kNames<RopeScaling> = {Named{RopeScaling::none, "none"}, Named{RopeScaling::llama3, "llama3"}};
template <>
inline constexpr std::array kNames<ScheduleKind> = {Named{ScheduleKind::constant, "constant"},
                                                    Named{ScheduleKind::inverse_square_root, "inverse_square_root"},
                                                    Named{ScheduleKind::cosine, "cosine"}, Named{ScheduleKind::linear, "linear"},
                                                    Named{ScheduleKind::warmup_stable_decay, "warmup_stable_decay"}};
template <>
inline constexpr std::array kNames<Sharding> = {Named{Sharding::none, "none"}, Named{Sharding::optimizer, "optimizer"},
                                                Named{Sharding::gradients, "gradients"}};
template <>
inline constexpr std::array kNames<GradientReductionType> = {Named{GradientReductionType::fp32, "fp32"},
                                                             Named{GradientReductionType::bf16, "bf16"}};
template <>
inline constexpr std::array kNames<RunLog> = {Named{RunLog::none, "none"}, Named{RunLog::tensorboard, "tensorboard"}};
template <>
inline constexpr std::array kNames<Precision> = {
    Named{Precision::fp32, name_of(Precision::fp32)}, Named{Precision::tf32, name_of(Precision::tf32)},
    Named{Precision::bf16, name_of(Precision::bf16)}, Named{Precision::fp16, name_of(Precision::fp16)},
    Named{Precision::fp64, name_of(Precision::fp64)}};
template <>
inline constexpr std::array kNames<GemmEngine> = {Named{GemmEngine::tilewave, "tilewave", "in_house"}, Named{GemmEngine::cublas, "cublas"},
                                                  Named{GemmEngine::cublaslt, "cublaslt"}};
template <>
inline constexpr std::array kNames<AlignmentPolicy> = {Named{AlignmentPolicy::any, "any"}, Named{AlignmentPolicy::strict, "strict"}};
template <>
inline constexpr std::array kNames<WaveFreeBatch> = {Named{WaveFreeBatch::off, "off"}, Named{WaveFreeBatch::nearest, "nearest"},
                                                     Named{WaveFreeBatch::up, "up"}, Named{WaveFreeBatch::down, "down"}};
template <>
inline constexpr std::array kNames<PitchPolicy> = {Named{PitchPolicy::aligned, "aligned"}, Named{PitchPolicy::packed, "packed"}};
template <>
inline constexpr std::array kNames<ActivationLayout> = {Named{ActivationLayout::token_major, "token_major"},
                                                        Named{ActivationLayout::feature_major, "feature_major"}};
template <>
inline constexpr std::array kNames<GemmRole> = {Named{GemmRole::forward, name_of(GemmRole::forward)},
                                                Named{GemmRole::dgrad, name_of(GemmRole::dgrad)},
                                                Named{GemmRole::wgrad, name_of(GemmRole::wgrad)}};

inline constexpr double kMaxRows = 1 << 24;  // of any tensor that a recipe names
inline constexpr double kMaxSteps = 1'000'000'000;
inline constexpr double kMaxRanks = 65536;

struct ModelConfig {
  Architecture architecture = Architecture::encoder_decoder;
  std::int64_t d_model = 128;
  std::int64_t d_ff = 512;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  double attention_scale = 0.0;
  bool query_key_norm = false;
  std::int64_t encoder_layers = 2;
  std::int64_t decoder_layers = 2;
  std::int64_t vocabulary = 128;
  std::int64_t max_positions = 128;
  Norm norm = Norm::pre;
  NormKind norm_kind = NormKind::layer_norm;
  double epsilon = kLayerNormEpsilon;
  Biases biases = Biases::all;
  FeedForwardActivation activation = FeedForwardActivation::relu;
  Positions positions = Positions::sinusoidal;
  double rope_base = 10000.0;
  RopeScaling rope_scaling = RopeScaling::none;
  double rope_factor = 8.0;
  double rope_low_frequency = 1.0;
  double rope_high_frequency = 4.0;
  std::int64_t rope_original_positions = 8192;
  bool tied = true;
  double dropout = 0.0;
  double attention_dropout = 0.0;
  std::int64_t classes = 10;
  Stem stem = Stem::none;
  StemNorm stem_norm = StemNorm::batch_norm;
  bool stem_pool = false;
  std::int64_t patch = 7;

  template <class Visitor>
  void describe(Visitor& visit) {
    visit("architecture", architecture,
          {.meaning =
               "an encoder and a decoder that attends to it, a decoder alone (GPT-2's), or an encoder that says which class a picture is "
               "of (docs/use/vision.md)"});
    visit("d_model", d_model,
          {.unit = "features",
           .range = between(1, 65536),
           .meaning = "width of the residual stream; a multiple of heads where head_size is 0"});
    visit("d_ff", d_ff,
          {.unit = "features", .range = between(1, 1 << 20), .meaning = "width of the feed-forward layers' hidden activation"});
    visit("heads", heads, {.range = between(1, 1024), .meaning = "attention heads"});
    visit("kv_heads", kv_heads,
          {.range = between(0, 1024),
           .hashed = Hashed::where_set,
           .meaning = "heads of keys and of values, each shared by heads / kv_heads heads of queries (grouped queries); 0: heads"});
    visit("head_size", head_size,
          {.unit = "features", .range = between(0, 65536), .hashed = Hashed::where_set, .meaning = "width of a head; 0: d_model / heads"});
    visit(
        "attention_scale", attention_scale,
        {.range = at_least(0), .hashed = Hashed::where_set, .meaning = "what scores are multiplied by; 0: 1 / sqrt(the width of a head)"});
    visit("query_key_norm", query_key_norm,
          {.hashed = Hashed::where_set,
           .meaning = "RMSNorm of every head of queries and of keys, with a weight for queries and one for keys (Qwen3's)"});
    visit("encoder_layers", encoder_layers, {.range = between(0, 1024), .meaning = "0 in a decoder_only model"});
    visit("decoder_layers", decoder_layers, {.range = between(1, 1024), .meaning = "layers of the decoder"});
    visit("vocabulary", vocabulary,
          {.unit = "tokens", .range = between(2, kMaxRows), .meaning = "rows of the embedding; may exceed what the tokenizer produces"});
    visit("max_positions", max_positions, {.unit = "tokens", .range = between(1, kMaxRows), .meaning = "rows of the position table"});
    visit("norm", norm, {.meaning = "a norm before each sublayer, or after its residual addition"});
    visit("norm_kind", norm_kind,
          {.hashed = Hashed::where_set, .meaning = "LayerNorm, or RMSNorm, which has neither mean nor bias (Llama's)"});
    visit("epsilon", epsilon,
          {.range = above(0), .hashed = Hashed::where_set, .meaning = "added to the variance, or to the mean square, of every norm"});
    visit("biases", biases,
          {.hashed = Hashed::where_set,
           .meaning = "of linear layers and LayerNorms: all of them, `none`, or `qkv`, of queries, keys and values alone (Qwen2's)"});
    visit("activation", activation,
          {.meaning =
               "of the feed-forward layers; `swiglu` is silu(gate) x up, whose two matrices are one GEMM of 2 d_ff outputs; those from "
               "`silu` on have launches of their own behind the GEMM"});
    visit(
        "positions", positions,
        {.meaning = "a constant table or a trained one, added to the embedding, or `rope`: self-attention's queries and keys are turned"});
    visit("rope_base", rope_base,
          {.range = above(1),
           .computed = ComputedIn::host_double,
           .hashed = Hashed::where_set,
           .meaning = "of rope's frequencies, base^(-2 i / head_size)"});
    visit("rope_scaling", rope_scaling,
          {.hashed = Hashed::where_set, .meaning = "how rope's frequencies are stretched for long texts: not, or as Llama 3.1's"});
    visit("rope_factor", rope_factor,
          {.range = at_least(1),
           .computed = ComputedIn::host_double,
           .hashed = Hashed::where_set,
           .meaning = "llama3: by how much long waves are stretched"});
    visit("rope_low_frequency", rope_low_frequency,
          {.range = above(0),
           .computed = ComputedIn::host_double,
           .hashed = Hashed::where_set,
           .meaning = "llama3: waves that fit less often into rope_original_positions are stretched by rope_factor"});
    visit("rope_high_frequency", rope_high_frequency,
          {.range = above(0),
           .computed = ComputedIn::host_double,
           .hashed = Hashed::where_set,
           .meaning = "llama3: waves that fit more often are left alone"});
    visit("rope_original_positions", rope_original_positions,
          {.unit = "tokens",
           .range = between(1, kMaxRows),
           .hashed = Hashed::where_set,
           .meaning = "llama3: the length that the model was trained with before"});
    visit("tied", tied, {.meaning = "embeddings and vocabulary projection are one matrix"});
    visit("dropout", dropout,
          {.unit = "fraction", .range = from_below(0, 1), .meaning = "of embeddings and of every sublayer's output, while training"});
    visit("attention_dropout", attention_dropout,
          {.unit = "fraction", .range = from_below(0, 1), .meaning = "of attention's weights, while training"});
    visit("classes", classes,
          {.range = between(2, 65536),
           .hashed = Hashed::where_set,
           .meaning = "encoder_classifier: what a picture may be; labels are numbers from 0 to one less"});
    visit("stem", stem,
          {.hashed = Hashed::where_set,
           .meaning = "of an encoder that sees pictures: how pixels become rows: each patch of a picture through one linear layer "
                      "(`patch`), or 3x3 convolutions at stride 2 until a side is `patch` times smaller (`convolution`)"});
    visit("stem_norm", stem_norm,
          {.hashed = Hashed::where_set, .meaning = "stem = \"convolution\": the norm behind each convolution, before its ReLU"});
    visit("stem_pool", stem_pool, {.hashed = Hashed::where_set, .meaning = "stem = \"convolution\": the last halving is max pooling"});
    visit("patch", patch,
          {.unit = "pixels",
           .range = between(1, 512),
           .hashed = Hashed::where_set,
           .meaning = "of a stem: both sides of a patch; a divisor of data.picture_size, a power of two for convolutions"});
  }
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

// What data.tokenizer names: one of these words, or a file or folder of one's own.
inline constexpr std::array<std::string_view, 2> kTokenizerWords = {"bytes", "bpe"};
enum class TokenizerSource : std::uint8_t { bytes, trained, file };

inline bool classifies(const ModelConfig& model) { return model.architecture == Architecture::encoder_classifier; }
// Its encoder reads pictures: a classifier's, or one whose decoder writes what they show.
inline bool sees_pictures(const ModelConfig& model) { return classifies(model) || model.stem != Stem::none; }
inline bool captions(const ModelConfig& model) { return sees_pictures(model) && !classifies(model); }
inline std::int64_t head_size_of(const ModelConfig& model) { return model.head_size > 0 ? model.head_size : model.d_model / model.heads; }
inline std::int64_t kv_heads_of(const ModelConfig& model) { return model.kv_heads > 0 ? model.kv_heads : model.heads; }

struct DataConfig {
  DataKind kind = DataKind::number_names;
  std::string source;
  std::string target;
  std::string validation_source;
  std::string validation_target;
  std::string tokenizer = "bpe";
  std::int64_t tokenizer_vocabulary = 0;
  std::int64_t seed = 1;
  std::string pictures;
  std::string labels;
  std::string validation_pictures;
  std::string validation_labels;
  std::int64_t picture_size = 28;
  std::int64_t channels = 1;
  std::int64_t noise = 40;
  double mean = 0.5;
  double deviation = 0.5;

  template <class Visitor>
  void describe(Visitor& visit) {
    visit("kind", kind,
          {.meaning = "`number_names`: English to German, made by rule; `text`: one file; `parallel`: two files, aligned line by line; "
                      "`tokens`: llm.c's .bin files; `synthetic`: seeded Zipf ids with a planted bigram rule; `pictures`: digits drawn by "
                      "rule, or IDX files; `captions`: the same, with the English names of what they show"});
    visit("source", source,
          {.unit = "path",
           .resumed = Resumed::may_change,
           .meaning = "the text, the source language or the token file; of token files several, as `train_*.bin`"});
    visit("target", target,
          {.unit = "path", .resumed = Resumed::may_change, .meaning = "the target language, line by line with source (parallel)"});
    visit("validation_source", validation_source,
          {.unit = "path",
           .resumed = Resumed::may_change,
           .meaning = "like source, never trained on; empty: one pair in fifty (at most 2,000), or the last tenth of a text (at most 2^18 "
                      "bytes) or of tokens (at most 2^17), is held out"});
    visit("validation_target", validation_target,
          {.unit = "path", .resumed = Resumed::may_change, .meaning = "like target, never trained on"});
    visit(
        "tokenizer", tokenizer,
        {.words = kTokenizerWords,
         .meaning = "`bytes`; `bpe`, a byte-pair encoding trained on the corpus; or one's own: a tokenizer.json, a SentencePiece model, or "
                    "a folder that holds one (docs/use/tokenizers.md)"});
    visit("tokenizer_vocabulary", tokenizer_vocabulary,
          {.unit = "tokens", .range = between(0, kMaxRows), .meaning = "size of the bpe vocabulary; 0: model.vocabulary"});
    visit("seed", seed, {.range = at_least(0), .meaning = "of generated corpora, of what is held out and of the order of sentences"});
    visit("pictures", pictures,
          {.unit = "path",
           .resumed = Resumed::may_change,
           .hashed = Hashed::where_set,
           .meaning = "pictures: an IDX file, as MNIST's; empty: digits are drawn"});
    visit("labels", labels,
          {.unit = "path",
           .resumed = Resumed::may_change,
           .hashed = Hashed::where_set,
           .meaning = "pictures: the IDX file of as many labels as data.pictures has pictures"});
    visit("validation_pictures", validation_pictures,
          {.unit = "path",
           .resumed = Resumed::may_change,
           .hashed = Hashed::where_set,
           .meaning = "like pictures, never trained on; empty: a tenth (at most 10,000) is held out"});
    visit("validation_labels", validation_labels,
          {.unit = "path", .resumed = Resumed::may_change, .hashed = Hashed::where_set, .meaning = "like labels, never trained on"});
    visit("picture_size", picture_size,
          {.unit = "pixels",
           .range = between(1, 4096),
           .hashed = Hashed::where_set,
           .meaning = "pictures: height and width of every picture; 20 to 512 of drawn ones"});
    visit("channels", channels,
          {.range = between(1, 3), .hashed = Hashed::where_set, .meaning = "pictures: 1, shades of grey, or 3, red, green and blue"});
    visit("noise", noise,
          {.range = between(0, 255),
           .hashed = Hashed::where_set,
           .meaning = "pictures: how far each value of a drawn digit moves at most, of 255"});
    visit("mean", mean,
          {.unit = "fraction",
           .range = at_least(0),
           .computed = ComputedIn::host_double,
           .hashed = Hashed::where_set,
           .meaning = "pictures: taken from every value, which black has 0 of and white 1"});
    visit("deviation", deviation,
          {.unit = "fraction",
           .range = above(0),
           .computed = ComputedIn::host_double,
           .hashed = Hashed::where_set,
           .meaning = "pictures: what a value without the mean is divided by"});
  }
  TokenizerSource tokenizer_source() const {
    return tokenizer == "bytes" ? TokenizerSource::bytes : tokenizer == "bpe" ? TokenizerSource::trained : TokenizerSource::file;
  }
  friend bool operator==(const DataConfig&, const DataConfig&) = default;
};

struct BatchConfig {
  std::int64_t source_tokens = 1536;
  std::int64_t target_tokens = 1536;
  std::int64_t sequence = 64;
  std::int64_t accumulate = 1;
  std::int64_t pictures = 64;

  template <class Visitor>
  void describe(Visitor& visit) {
    visit("source_tokens", source_tokens,
          {.unit = "rows",
           .range = between(0, kMaxRows),
           .meaning = "the encoder's tokens in one forward and backward pass; 0 in a decoder_only model"});
    visit("target_tokens", target_tokens,
          {.unit = "rows", .range = between(1, kMaxRows), .meaning = "the decoder's tokens in one forward and backward pass"});
    visit("sequence", sequence,
          {.unit = "tokens", .range = between(1, kMaxRows), .meaning = "the longest sequence; at most model.max_positions"});
    visit("accumulate", accumulate,
          {.unit = "passes", .range = between(1, 65536), .meaning = "forward and backward passes summed for one update"});
    visit("pictures", pictures,
          {.unit = "pictures",
           .range = between(1, kMaxRows),
           .hashed = Hashed::where_set,
           .meaning = "of one forward and backward pass, where a model sees pictures; each has (data.picture_size / model.patch)^2 rows"});
  }
  friend bool operator==(const BatchConfig&, const BatchConfig&) = default;
};

// Rows of the encoder that a picture is.
inline std::int64_t patches_of(const ModelConfig& model, const DataConfig& data) {
  const std::int64_t side = data.picture_size / model.patch;
  return side * side;
}

struct OptimizerConfig {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double clip_norm = 1.0;
  double label_smoothing = 0.0;

  template <class Visitor>
  void describe(Visitor& visit) {
    visit("learning_rate", learning_rate, {.range = at_least(0), .meaning = "the schedule's peak"});
    visit("beta1", beta1, {.range = from_below(0, 1), .meaning = "decay of AdamW's first moment"});
    visit("beta2", beta2, {.range = from_below(0, 1), .meaning = "decay of AdamW's second moment"});
    visit("epsilon", epsilon, {.range = above(0), .meaning = "added to the root of the second moment"});
    visit("weight_decay", weight_decay, {.range = at_least(0), .meaning = "decoupled; not of biases and norms"});
    visit("clip_norm", clip_norm, {.range = at_least(0), .meaning = "the largest global gradient norm; 0: no clipping"});
    visit("label_smoothing", label_smoothing,
          {.unit = "fraction",
           .range = from_below(0, 1),
           .meaning = "of the target's probability, spread over the vocabulary; training only"});
  }
  friend bool operator==(const OptimizerConfig&, const OptimizerConfig&) = default;
};

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::inverse_square_root;
  std::int64_t warmup_steps = 100;
  std::int64_t decay_steps = 0;
  std::int64_t decay_from = 0;
  double min_learning_rate = 0.0;

  template <class Visitor>
  void describe(Visitor& visit) {
    visit("kind", kind, {.meaning = "what follows the warm-up; the formulas are below"});
    visit("warmup_steps", warmup_steps,
          {.unit = "steps", .range = between(0, kMaxSteps), .meaning = "linear rise to the peak; at least 1 for inverse_square_root"});
    visit("decay_steps", decay_steps,
          {.unit = "steps",
           .range = between(0, kMaxSteps),
           .meaning = "the step at which cosine, linear and warmup_stable_decay end; 0: run.steps, or just after a longer warm-up"});
    visit("decay_from", decay_from,
          {.unit = "steps",
           .range = between(0, kMaxSteps),
           .hashed = Hashed::where_set,
           .meaning = "the step behind which warmup_stable_decay leaves the peak; 0: where a tenth of decay_steps is left"});
    visit("min_learning_rate", min_learning_rate,
          {.range = at_least(0),
           .hashed = Hashed::where_set,
           .meaning = "what cosine, linear and warmup_stable_decay fall to; at most optimizer.learning_rate"});
  }
  friend bool operator==(const ScheduleConfig&, const ScheduleConfig&) = default;
};

struct RunConfig {
  std::int64_t steps = 1000;
  std::int64_t seed = 1;
  Precision precision = Precision::fp32;
  std::int64_t validate_every = 100;
  std::int64_t checkpoint_every = 500;
  std::int64_t keep = 2;
  bool keep_best = false;
  RunLog log = RunLog::none;
  std::int64_t ranks = 1;
  Sharding shard = Sharding::none;
  GradientReductionType gradient_reduction = GradientReductionType::fp32;
  double rank_timeout = 15.0;

  template <class Visitor>
  void describe(Visitor& visit) {
    visit("steps", steps,
          {.unit = "steps", .range = between(1, kMaxSteps), .resumed = Resumed::may_change, .meaning = "optimizer updates"});
    visit("seed", seed, {.range = at_least(0), .meaning = "of initial weights and dropout"});
    visit("precision", precision, {.meaning = "of the training step; a CPU trains in fp32, tf32 (on AMX where it has that) and fp64"});
    visit("validate_every", validate_every,
          {.unit = "steps", .range = between(0, kMaxSteps), .resumed = Resumed::may_change, .meaning = "0: at the end alone"});
    visit("checkpoint_every", checkpoint_every,
          {.unit = "steps", .range = between(0, kMaxSteps), .resumed = Resumed::may_change, .meaning = "0: at the end alone"});
    visit("keep", keep,
          {.unit = "checkpoints", .range = between(1, 65536), .resumed = Resumed::may_change, .meaning = "the latest ones kept"});
    visit("keep_best", keep_best,
          {.resumed = Resumed::may_change,
           .hashed = Hashed::where_set,
           .meaning = "the checkpoint with the least validation loss is kept too, in best/ of the run folder (docs/use/formats.md)"});
    visit("log", log,
          {.resumed = Resumed::may_change,
           .hashed = Hashed::where_set,
           .meaning = "`tensorboard`: event files beside metrics.jsonl, which TensorBoard reads (docs/use/runs.md)"});
    visit(
        "ranks", ranks,
        {.unit = "processes",
         .range = between(1, kMaxRanks),
         .resumed = Resumed::may_change,
         .hashed = Hashed::where_set,
         .meaning = "that take each step together, a GPU or a part of the CPU's cores each; a batch's rows are the whole step's, and each "
                    "takes its share of them (docs/use/many-gpus.md)"});
    visit(
        "shard", shard,
        {.resumed = Resumed::may_change,
         .hashed = Hashed::where_set,
         .meaning = "what each rank keeps a share of: `optimizer` is masters and moments, `gradients` those too (ZeRO's stages 1 and 2)"});
    visit("gradient_reduction", gradient_reduction,
          {.resumed = Resumed::may_change,
           .hashed = Hashed::where_set,
           .meaning = "what several ranks sum gradients in: `bf16` is half the bytes over the links, and rounds what is sent and what is "
                      "summed; one rank sends nothing, and it changes nothing"});
    visit("rank_timeout", rank_timeout,
          {.unit = "seconds",
           .range = above(0),
           .computed = ComputedIn::host_double,
           .resumed = Resumed::may_change,
           .hashed = Hashed::where_set,
           .meaning = "that a rank may show no sign of life before the others give it up and end"});
  }
  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

struct GemmConfig {
  GemmEngine engine = GemmEngine::tilewave;
  std::string choice = "model";
  AlignmentPolicy alignment_policy = AlignmentPolicy::any;

  template <class Visitor>
  void describe(Visitor& visit) {
    visit("engine", engine, {.meaning = "tilewave's GEMMs, or NVIDIA's libraries to compare with"});
    visit("choice", choice,
          {.meaning = "who picks each GEMM's kernel and tile: `model` (least predicted time), `measure` (least measured time), or one for "
                      "all: a kernel's name, and behind it a tile `<M>x<N>` and parts of K `k<parts>`"});
    visit("alignment_policy", alignment_policy,
          {.meaning = "`strict`: Tensor Cores only for operands of 16 bits where K and the fastest-varying dimension of each matrix are "
                      "multiples of 8, as cuBLAS before 11; on a CPU it changes nothing"});
  }
  friend bool operator==(const GemmConfig&, const GemmConfig&) = default;
};

struct GuidelinesConfig {
  std::int64_t pad_vocabulary_to = 1;
  std::int64_t batch_multiple_of = 1;
  WaveFreeBatch wave_free_batch = WaveFreeBatch::off;
  std::string wave_layer = "ffn.up";
  GemmRole wave_role = GemmRole::forward;
  std::string wave_tile = "chosen";
  double wave_limit = 0.1;
  PitchPolicy row_pitch = PitchPolicy::aligned;
  ActivationLayout ffn_hidden_layout = ActivationLayout::token_major;

  template <class Visitor>
  void describe(Visitor& visit) {
    visit("pad_vocabulary_to", pad_vocabulary_to,
          {.unit = "tokens",
           .range = between(1, 65536),
           .resumed = Resumed::may_change,
           .meaning = "rows of zeros round the vocabulary up to this multiple; 1: off"});
    visit(
        "batch_multiple_of", batch_multiple_of,
        {.unit = "rows", .range = between(1, 65536), .meaning = "source_tokens and target_tokens are rounded up to this multiple; 1: off"});
    visit("wave_free_batch", wave_free_batch,
          {.meaning = "moves source_tokens and target_tokens, those that wave_layer has, to where whole waves of tiles fill the device"});
    visit("wave_layer", wave_layer, {.meaning = "the layer whose waves count, by the end of its name"});
    visit("wave_role", wave_role,
          {.meaning = "the GEMM of that layer: forward or dgrad; tiles of a wgrad do not depend on rows, and wave_free_batch refuses it"});
    visit("wave_tile", wave_tile, {.meaning = "the tile to count by: `chosen`, each plan's own, or `<M>x<N>`, one per SM"});
    visit("wave_limit", wave_limit,
          {.unit = "fraction",
           .range = between(0, 1),
           .computed = ComputedIn::host_double,
           .meaning = "how far from the rows asked for to look"});
    visit("row_pitch", row_pitch,
          {.resumed = Resumed::may_change, .meaning = "rows of matrices start on multiples of 128 bytes, or right behind each other"});
    visit("ffn_hidden_layout", ffn_hidden_layout,
          {.resumed = Resumed::may_change,
           .meaning = "of the feed-forward layers' hidden activation: [tokens, d_ff], or `feature_major`, [d_ff, tokens]"});
  }
  friend bool operator==(const GuidelinesConfig&, const GuidelinesConfig&) = default;
};

struct AblationConfig {
  std::string switches;

  template <class Visitor>
  void describe(Visitor& visit) {
    visit("switches", switches,
          {.resumed = Resumed::may_change,
           .meaning = "`key=value,value`, with spaces between: every combination is measured, the first value of the first switch being "
                      "what the others are compared with; empty: each guideline alone, all of them, none"});
  }
  friend bool operator==(const AblationConfig&, const AblationConfig&) = default;
};

struct Recipe {
  std::string name = "recipe";  // the file's stem: no key, and no part of the recipe's text or hash
  ModelConfig model;
  DataConfig data;
  BatchConfig batch;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  RunConfig run;
  GemmConfig gemm;
  GuidelinesConfig guidelines;
  AblationConfig ablation;

  template <class Visitor>
  void describe(Visitor& visit) {
    visit("model", model, "The Transformer.");
    visit("data", data, "What it is trained on. Relative paths start from the working directory.");
    visit("batch", batch,
          "Rows of tokens: sequences lie packed one after another, and rows left over are padding rows that nothing counts.");
    visit("optimizer", optimizer, "AdamW, clipping and the loss.");
    visit("schedule", schedule, "The learning rate over the steps.");
    visit("run", run, "How long, in which precision, and what is kept.");
    visit("gemm", gemm, "Who multiplies the matrices.");
    visit("guidelines", guidelines, "The Tensor Core guidelines as switches; the defaults leave shapes alone.");
    visit("ablation", ablation, "What `tilewave ablate` varies, where --switch does not say it (docs/use/ablate.md).");
  }
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

}  // namespace tilewave
