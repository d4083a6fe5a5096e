#include "models/exchange/model_export.h"

#include <algorithm>

#include "framework/data/tokenizer_config.h"
#include "framework/io/checkpoint.h"
#include "framework/io/safetensors_reader.h"
#include "framework/io/safetensors_writer.h"
#include "models/exchange/gpt2_config.h"
#include "models/exchange/llama_config.h"
#include "models/exchange/weight_names.h"
#include "models/recipe/run_tokenizer.h"
#include "models/transformer/attention.h"
#include "models/transformer/feed_forward.h"

namespace tilewave {
namespace {

constexpr std::int64_t kStreamedBytes = 4 << 20;

// Of a tensor a run of bytes.
struct ByteRange {
  std::int64_t first = 0, count = 0;
};

void stream_as_it_is(const SafetensorsReader& reader, const StoredTensor& tensor, const ByteRange& range, const ByteSink& sink) {
  std::vector<std::byte> piece;
  for (std::int64_t at = 0; at < range.count; at += kStreamedBytes) {
    piece.resize(static_cast<std::size_t>(std::min(kStreamedBytes, range.count - at)));
    reader.read_part(tensor, range.first + at, piece);
    sink(piece);
  }
}

void stream_transposed(const SafetensorsReader& reader, const StoredTensor& tensor, const ByteSink& sink) {
  const std::int64_t width = bits_of(tensor.type) / 8, rows = tensor.shape[0], cols = tensor.shape[1];
  std::vector<std::byte> whole(static_cast<std::size_t>(tensor.bytes)), column(static_cast<std::size_t>(rows * width));
  reader.read(tensor, whole);
  for (std::int64_t c = 0; c < cols; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(whole.begin() + (r * cols + c) * width, width, column.begin() + r * width);
    sink(column);
  }
}

// Rows of the matrices that a parameter of this name is, where it is several.
std::vector<std::int64_t> parts_of(std::string_view parameter, const ModelConfig& model) {
  if (parameter.find(".self_attention.qkv.") != std::string_view::npos) return qkv_parts(model);
  return parameter.find(".ffn.up.") != std::string_view::npos ? up_parts(model) : std::vector<std::int64_t>();
}

SafetensorsContents contents_of(const SafetensorsReader& reader, const ModelConfig& model) {
  const bool llama = model.norm_kind == NormKind::rms_norm;
  const NamedWeights theirs{.names = llama ? WeightNames::llama : WeightNames::gpt2, .prefix = llama ? "model." : "transformer."};
  SafetensorsContents contents{.tensors = {}, .metadata = {{"format", "pt"}}};
  for (const StoredTensor& tensor : reader.tensors()) {
    const std::vector<std::int64_t> parts = parts_of(tensor.name, model);
    const std::vector<WeightPlace> places = places_of(tensor.name, parts.size(), theirs);
    TW_CHECK_INPUT(!places.empty(), reader.path().string(), ": tensor \"", printable(tensor.name), "\" has no place in a ",
                   name_of(theirs.names), ".");
    ByteRange range{.first = 0, .count = tensor.bytes};
    for (std::size_t i = 0; i < places.size(); ++i) {
      std::vector<std::int64_t> shape = tensor.shape;
      if (places.size() > 1) {
        range = {.first = i == 0 ? 0 : range.first + range.count, .count = tensor.bytes / shape.front() * parts[i]};
        shape.front() = parts[i];
      }
      if (places[i].transposed) std::ranges::reverse(shape);
      contents.tensors.push_back({.name = places[i].name,
                                  .type = tensor.type,
                                  .shape = std::move(shape),
                                  .stream = [&reader, &tensor, range, transposed = places[i].transposed](const ByteSink& sink) {
                                    transposed ? stream_transposed(reader, tensor, sink) : stream_as_it_is(reader, tensor, range, sink);
                                  }});
    }
  }
  return contents;
}

// What transformers reads text with: tilewave's tokenizers have their special ids first, which none of its classes expects.
void export_tokenizer(const std::optional<Tokenizer>& tokenizer, const std::filesystem::path& out, std::int64_t longest,
                      ExportedModel& exported) {
  if (!tokenizer) {
    exported.notes.emplace_back("the run's data is ids without a tokenizer; put the tokenizer's files that made them beside the model.");
  } else if (tokenizer->has_own_special_ids()) {
    exported.notes.push_back(concat("no tokenizer is written: transformers knows none like the run's ",
                                    tokenizer->kind() == TokenizerKind::bytes ? "bytes" : "bpe",
                                    ", whose ids tilewave makes (docs/use/formats.md); give the model ids."));
  } else {
    tokenizer->save_in(out);
    exported.files.emplace_back(tokenizer->file_name());
    if (tokenizer->byte_level() == nullptr) {
      exported.notes.emplace_back("tokenizer.model is SentencePiece's; its own tools read it, and transformers makes a tokenizer of it.");
      return;
    }
    const auto text = [&](const std::optional<std::int32_t>& id) { return id ? std::optional(tokenizer->piece(*id)) : std::nullopt; };
    if (tokenizer->config().empty()) {
      write_file_atomically(out / kTokenizerConfig,
                            tokenizer_config_text({.begin = text(tokenizer->begin()), .end = text(tokenizer->end()), .longest = longest}));
    }
    exported.files.emplace_back(kTokenizerConfig);
  }
}

void check_free(const std::filesystem::path& folder) {
  for (const std::string_view name :
       {std::string_view("config.json"), std::string_view("model.safetensors"), kTokenizerJson, kTokenizerModel, kTokenizerConfig}) {
    TW_CHECK_INPUT(!is_there(folder / name), folder.string(), ": holds a ", name, " already; name another folder.");
  }
}

}  // namespace

ExportedModel export_model(const std::filesystem::path& run_folder, const std::filesystem::path& out) {
  TW_CHECK_INPUT(is_there(run_folder / "recipe.toml"), run_folder.string(),
                 ": there is no recipe.toml, so this is no run folder; name one that ./tilewave train has made.");
  check_output_folder("export", out);
  check_free(out);
  const Recipe recipe = read_recipe(run_folder / "recipe.toml");
  check_reads_tokens(recipe, "tilewave export");
  const DType weights = recipe.run.precision == Precision::fp64 ? DType::f64 : DType::f32;
  const std::optional<Tokenizer> tokenizer = tokenizer_of_run(run_folder, recipe);
  const bool own = !tokenizer || tokenizer->has_own_special_ids();
  const TextEnds ends = own ? TextEnds{} : TextEnds{.begin = tokenizer->begin(), .end = tokenizer->end()};
  const bool llama = recipe.model.norm_kind == NormKind::rms_norm;
  const std::string config = llama ? llama_config(recipe, weights, ends) : gpt2_config(recipe, weights, ends);
  ExportedModel exported;
  const CheckpointSearch search = use_latest_valid(run_folder, [&](const Checkpoint& checkpoint) {
    const SafetensorsReader reader(checkpoint.weights());
    const SafetensorsContents contents = contents_of(reader, recipe.model);
    make_folders(out);
    write_safetensors(out / "model.safetensors", contents);
    exported.step = checkpoint.step;
    exported.tensors = std::ssize(contents.tensors);
  });
  exported.notes = search.skipped;
  TW_CHECK_INPUT(search.newest, run_folder.string(), ": there is no valid checkpoint yet; train it for longer.");
  write_file_atomically(out / "config.json", config);
  exported.files = {"config.json", "model.safetensors"};
  export_tokenizer(tokenizer, out, recipe.model.max_positions, exported);
  return exported;
}

}  // namespace tilewave
