// Reading believes nothing: shapes before elements, lengths before ids.
#include "models/step/batch_file.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace tilewave {
namespace {

std::int64_t total(const std::vector<std::int32_t>& lengths) { return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }

std::vector<std::int32_t> read_lengths(const SafetensorsReader& reader, std::string_view name, const Int32Matrix& ids,
                                       std::string_view ids_name) {
  const std::string file = reader.path().string();
  const StoredTensor& tensor = reader.at(name);
  const std::vector<std::int64_t>& shape = tensor.shape;
  TW_CHECK_INPUT(tensor.type == StoredType::i32 && (shape == std::vector{ids.rows} || shape == std::vector{ids.rows, std::int64_t{1}}),
                 file, ": tensor \"", name, "\" is ", name_of(tensor.type), " ", shape_text(shape), ", but \"", ids_name, "\" has ",
                 ids.rows, " sequences; write one I32 length a sequence, of shape [", ids.rows, "].");
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(ids.rows));
  reader.read(tensor, std::as_writable_bytes(std::span(lengths)));
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    TW_CHECK_INPUT(lengths[i] >= 1 && lengths[i] <= ids.cols, file, ": \"", name, "\" says that sequence ", i, " has ", lengths[i],
                   " tokens; \"", ids_name, "\" is ", ids.cols, " wide, so 1 to ", ids.cols, " are possible.");
  }
  return lengths;
}

std::int64_t most(const std::vector<std::int32_t>& lengths) {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

enum class Ids : std::uint8_t { tokens, labels };  // labels may be negative: they count nothing

void check_ids(const SafetensorsReader& reader, std::string_view name, const Int32Matrix& ids, const std::vector<std::int32_t>& lengths,
               std::int64_t vocabulary, Ids kind) {
  for (std::int64_t row = 0; row < ids.rows; ++row) {
    for (std::int64_t column = 0; column < lengths[static_cast<std::size_t>(row)]; ++column) {
      const std::int32_t id = ids.values[static_cast<std::size_t>(row * ids.cols + column)];
      TW_CHECK_INPUT(id < vocabulary && (id >= 0 || kind == Ids::labels), reader.path().string(), ": \"", name, "\" holds the id ", id,
                     " at sequence ", row, ", position ", column, "; the recipe's vocabulary has the ids 0 to ", vocabulary - 1, ".");
    }
  }
}

std::span<const std::int32_t> sequence(const Int32Matrix& ids, const std::vector<std::int32_t>& lengths, std::size_t index) {
  return std::span(ids.values).subspan(index * static_cast<std::size_t>(ids.cols), static_cast<std::size_t>(lengths[index]));
}

}  // namespace

BatchFile read_batch_file(const std::filesystem::path& path, const ModelConfig& model) {
  const SafetensorsReader reader(path);
  const bool encoder = model.architecture == Architecture::encoder_decoder;
  std::set<std::string_view> names = {"target_in", "target_out", "target_lengths"};
  if (encoder) names.insert({"source", "source_lengths"});
  for (const StoredTensor& tensor : reader.tensors()) {
    TW_CHECK_INPUT(names.contains(tensor.name), path.string(), ": tensor \"", printable(tensor.name),
                   "\" is no part of a batch for model.architecture = \"", name_of(model.architecture),
                   "\"; remove it, or take another recipe.");
  }

  BatchFile file;
  file.target_in = read_int32_matrix(reader, "target_in");
  file.target_out = read_int32_matrix(reader, "target_out");
  const auto check_rows = [&](std::string_view name, const Int32Matrix& ids, std::int64_t rows, std::int64_t cols) {
    TW_CHECK_INPUT(ids.rows == rows && ids.cols == cols, path.string(), ": tensor \"", name, "\" has the shape ",
                   shape_text({ids.rows, ids.cols}), ", but \"target_in\" has ", shape_text({file.target_in.rows, file.target_in.cols}),
                   "; a batch has as many sequences in each tensor, and a label for each target token.");
  };
  TW_CHECK_INPUT(file.target_in.rows > 0 && file.target_in.cols > 0, path.string(), ": tensor \"target_in\" has the shape ",
                 shape_text({file.target_in.rows, file.target_in.cols}), "; a batch needs a sequence with a token.");
  check_rows("target_out", file.target_out, file.target_in.rows, file.target_in.cols);
  file.target_lengths = read_lengths(reader, "target_lengths", file.target_in, "target_in");
  check_ids(reader, "target_in", file.target_in, file.target_lengths, model.vocabulary, Ids::tokens);
  check_ids(reader, "target_out", file.target_out, file.target_lengths, model.vocabulary, Ids::labels);
  if (encoder) {
    file.source = read_int32_matrix(reader, "source");
    check_rows("source", file.source, file.target_in.rows, file.source.cols);
    file.source_lengths = read_lengths(reader, "source_lengths", file.source, "source");
    check_ids(reader, "source", file.source, file.source_lengths, model.vocabulary, Ids::tokens);
  }

  for (const auto* lengths : {&file.source_lengths, &file.target_lengths}) {
    const auto longest = std::max_element(lengths->begin(), lengths->end());
    TW_CHECK_INPUT(longest == lengths->end() || *longest <= model.max_positions, path.string(), ": sequence ", longest - lengths->begin(),
                   " has ", *longest, " tokens, more than model.max_positions = ", model.max_positions,
                   "; shorten it, or raise max_positions.");
  }
  std::size_t counted = 0;
  for (std::size_t i = 0; i < file.target_lengths.size(); ++i) {
    for (const std::int32_t label : sequence(file.target_out, file.target_lengths, i)) counted += label >= 0 ? 1 : 0;
  }
  TW_CHECK_INPUT(counted > 0, path.string(), ": every label in \"target_out\" is negative, so no token counts; a loss needs at least one.");
  return file;
}

Recipe recipe_of_step(const Recipe& recipe, const BatchFile& file) {
  Recipe step = recipe;
  step.model.dropout = step.model.attention_dropout = 0.0;
  const std::int64_t longest = std::max(most(file.source_lengths), most(file.target_lengths));
  step.batch = {.source_tokens = file.source_lengths.empty() ? 0 : std::max(total(file.source_lengths), longest),
                .target_tokens = std::max(total(file.target_lengths), longest),
                .sequence = longest,
                .accumulate = 1};
  step.guidelines.wave_free_batch = WaveFreeBatch::off;  // the rows are the file's
  return step;
}

Batch pack(const BatchFile& file, const BatchShape& shape) {
  Packer packer(shape);
  for (std::size_t i = 0; i < file.target_lengths.size(); ++i) {
    const bool fits =
        packer.add({.source = file.source_lengths.empty() ? std::span<const std::int32_t>() : sequence(file.source, file.source_lengths, i),
                    .target_in = sequence(file.target_in, file.target_lengths, i),
                    .target_out = sequence(file.target_out, file.target_lengths, i)});
    TW_CHECK(fits, "the batch file has ", total(file.source_lengths), " source and ", total(file.target_lengths),
             " target tokens, too many for ", shape.source_rows, " and ", shape.target_rows, " rows.");
  }
  return std::move(packer).take();
}

}  // namespace tilewave
