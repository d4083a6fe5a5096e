#include "models/exchange/gpt2_export.h"

#include <algorithm>

#include "framework/data/tokenizer_config.h"
#include "framework/io/checkpoint.h"
#include "framework/io/safetensors_reader.h"
#include "framework/io/safetensors_writer.h"
#include "models/exchange/gpt2_config.h"
#include "models/exchange/weight_names.h"
#include "models/recipe/run_tokenizer.h"

namespace tilewave {
namespace {

constexpr std::int64_t kStreamedBytes = 4 << 20;

void stream_as_it_is(const SafetensorsReader& reader, const StoredTensor& tensor, const ByteSink& sink) {
  std::vector<std::byte> piece;
  for (std::int64_t at = 0; at < tensor.bytes; at += kStreamedBytes) {
    piece.resize(static_cast<std::size_t>(std::min(kStreamedBytes, tensor.bytes - at)));
    reader.read_part(tensor, at, piece);
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

SafetensorsContents contents_of(const SafetensorsReader& reader) {
  const NamedWeights gpt2{.names = WeightNames::gpt2, .prefix = "transformer."};
  SafetensorsContents contents{.tensors = {}, .metadata = {{"format", "pt"}}};
  for (const StoredTensor& tensor : reader.tensors()) {
    const std::optional<WeightPlace> place = place_of(tensor.name, gpt2);
    TW_CHECK_INPUT(place, reader.path().string(), ": tensor \"", printable(tensor.name), "\" has no place in a GPT-2.");
    std::vector<std::int64_t> shape = tensor.shape;
    if (place->transposed) std::ranges::reverse(shape);
    contents.tensors.push_back({.name = place->name,
                                .type = tensor.type,
                                .shape = std::move(shape),
                                .stream = [&reader, &tensor, transposed = place->transposed](const ByteSink& sink) {
                                  transposed ? stream_transposed(reader, tensor, sink) : stream_as_it_is(reader, tensor, sink);
                                }});
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

ExportedModel export_gpt2(const std::filesystem::path& run_folder, const std::filesystem::path& out) {
  TW_CHECK_INPUT(is_there(run_folder / "recipe.toml"), run_folder.string(),
                 ": there is no recipe.toml, so this is no run folder; name one that ./tilewave train has made.");
  check_output_folder("export", out);
  check_free(out);
  const Recipe recipe = read_recipe(run_folder / "recipe.toml");
  const DType weights = recipe.run.precision == Precision::fp64 ? DType::f64 : DType::f32;
  const std::optional<Tokenizer> tokenizer = tokenizer_of_run(run_folder, recipe);
  const bool own = !tokenizer || tokenizer->has_own_special_ids();
  const std::string config =
      gpt2_config(recipe, weights, own ? TextEnds{} : TextEnds{.begin = tokenizer->begin(), .end = tokenizer->end()});
  ExportedModel exported;
  const CheckpointSearch search = use_latest_valid(run_folder, [&](const Checkpoint& checkpoint) {
    const SafetensorsReader reader(checkpoint.weights());
    const SafetensorsContents contents = contents_of(reader);
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
