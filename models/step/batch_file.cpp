// Reading believes nothing: shapes before elements, lengths before ids.
#include "models/step/batch_file.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <set>

namespace tilewave {
namespace {

std::int64_t total(const std::vector<std::int32_t>& lengths) { return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }

// Where a batch's tensors stand: names with what stands before them.
class BatchTensorNames {
 public:
  BatchTensorNames(const SafetensorsReader& reader, std::string prefix) : reader_(reader), prefix_(std::move(prefix)) {}

  const SafetensorsReader& reader() const { return reader_; }
  std::string file() const { return reader_.path().string(); }
  std::string operator()(std::string_view name) const { return concat(prefix_, name); }

 private:
  const SafetensorsReader& reader_;
  std::string prefix_;
};

std::vector<std::int32_t> read_lengths(const BatchTensorNames& in, std::string_view own_name, const Int32Matrix& ids,
                                       std::string_view own_ids_name) {
  const std::string file = in.file(), name = in(own_name), ids_name = in(own_ids_name);
  const SafetensorsReader& reader = in.reader();
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

void check_ids(const BatchTensorNames& in, std::string_view name, const Int32Matrix& ids, const std::vector<std::int32_t>& lengths,
               std::int64_t vocabulary, Ids kind) {
  for (std::int64_t row = 0; row < ids.rows; ++row) {
    for (std::int64_t column = 0; column < lengths[static_cast<std::size_t>(row)]; ++column) {
      const std::int32_t id = ids.values[static_cast<std::size_t>(row * ids.cols + column)];
      TW_CHECK_INPUT(id < vocabulary && (id >= 0 || kind == Ids::labels), in.file(), ": \"", in(name), "\" holds the id ", id,
                     " at sequence ", row, ", position ", column, "; the recipe's vocabulary has the ids 0 to ", vocabulary - 1, ".");
    }
  }
}

std::span<const std::int32_t> sequence(const Int32Matrix& ids, const std::vector<std::int32_t>& lengths, std::size_t index) {
  return std::span(ids.values).subspan(index * static_cast<std::size_t>(ids.cols), static_cast<std::size_t>(lengths[index]));
}

std::set<std::string> tensors_of(const ModelConfig& model) {
  std::set<std::string> names = {"target_in", "target_out", "target_lengths"};
  if (model.architecture == Architecture::encoder_decoder) names.insert({"source", "source_lengths"});
  return names;
}

[[noreturn]] void refuse_tensor(const SafetensorsReader& reader, const StoredTensor& tensor, const ModelConfig& model) {
  throw InputError(concat(reader.path().string(), ": tensor \"", printable(tensor.name),
                          "\" is no part of a batch for model.architecture = \"", name_of(model.architecture),
                          "\"; remove it, or take another recipe."));
}

void check_positions(const BatchTensorNames& in, const BatchFile& file, const ModelConfig& model) {
  for (const auto* lengths : {&file.source_lengths, &file.target_lengths}) {
    const auto longest = std::max_element(lengths->begin(), lengths->end());
    TW_CHECK_INPUT(longest == lengths->end() || *longest <= model.max_positions, in.file(), ": sequence ", longest - lengths->begin(),
                   " has ", *longest, " tokens, more than model.max_positions = ", model.max_positions,
                   "; shorten it, or raise max_positions.");
  }
  std::size_t counted = 0;
  for (std::size_t i = 0; i < file.target_lengths.size(); ++i) {
    for (const std::int32_t label : sequence(file.target_out, file.target_lengths, i)) counted += label >= 0 ? 1 : 0;
  }
  TW_CHECK_INPUT(counted > 0, in.file(), ": every label in \"", in("target_out"),
                 "\" is negative, so no token counts; a loss needs at least one.");
}

BatchFile read_batch(const BatchTensorNames& in, const ModelConfig& model) {
  BatchFile file;
  file.target_in = read_int32_matrix(in.reader(), in("target_in"));
  file.target_out = read_int32_matrix(in.reader(), in("target_out"));
  const std::string shape = shape_text({file.target_in.rows, file.target_in.cols});
  const auto check_rows = [&](std::string_view name, const Int32Matrix& ids, std::int64_t rows, std::int64_t cols) {
    TW_CHECK_INPUT(ids.rows == rows && ids.cols == cols, in.file(), ": tensor \"", in(name), "\" has the shape ",
                   shape_text({ids.rows, ids.cols}), ", but \"", in("target_in"), "\" has ", shape,
                   "; a batch has as many sequences in each tensor, and a label for each target token.");
  };
  TW_CHECK_INPUT(file.target_in.rows > 0 && file.target_in.cols > 0, in.file(), ": tensor \"", in("target_in"), "\" has the shape ", shape,
                 "; a batch needs a sequence with a token.");
  check_rows("target_out", file.target_out, file.target_in.rows, file.target_in.cols);
  file.target_lengths = read_lengths(in, "target_lengths", file.target_in, "target_in");
  check_ids(in, "target_in", file.target_in, file.target_lengths, model.vocabulary, Ids::tokens);
  check_ids(in, "target_out", file.target_out, file.target_lengths, model.vocabulary, Ids::labels);
  if (model.architecture == Architecture::encoder_decoder) {
    file.source = read_int32_matrix(in.reader(), in("source"));
    check_rows("source", file.source, file.target_in.rows, file.source.cols);
    file.source_lengths = read_lengths(in, "source_lengths", file.source, "source");
    check_ids(in, "source", file.source, file.source_lengths, model.vocabulary, Ids::tokens);
  }
  check_positions(in, file, model);
  return file;
}

// The number of "batch/3/source", and what follows it; none where it is no such name.
struct NumberedName {
  std::size_t batch = 0;
  std::string_view name;
};
std::optional<NumberedName> numbered_name(std::string_view name) {
  constexpr std::string_view kBefore = "batch/";
  if (!name.starts_with(kBefore)) return std::nullopt;
  NumberedName result;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kBefore.size(), end, result.batch);
  if (error != std::errc() || stop == end || *stop != '/') return std::nullopt;
  result.name = std::string_view(stop + 1, static_cast<std::size_t>(end - stop - 1));
  return name.starts_with(batch_prefix(result.batch)) ? std::optional(result) : std::nullopt;
}

// How many batches there are under numbers; 0 where the tensors stand alone.
std::size_t numbered_batches(const SafetensorsReader& reader, const ModelConfig& model) {
  const std::set<std::string> names = tensors_of(model);
  std::set<std::size_t> numbers;
  for (const StoredTensor& tensor : reader.tensors()) {
    const std::optional<NumberedName> name = numbered_name(tensor.name);
    if (!name) continue;
    if (!names.contains(std::string(name->name))) refuse_tensor(reader, tensor, model);
    numbers.insert(name->batch);
  }
  for (const StoredTensor& tensor : reader.tensors()) {
    if (!names.contains(numbers.empty() ? tensor.name : std::string(numbered_name(tensor.name).value_or(NumberedName{}).name)))
      refuse_tensor(reader, tensor, model);
  }
  TW_CHECK_INPUT(numbers.empty() || *numbers.rbegin() + 1 == numbers.size(), reader.path().string(), ": it has ", numbers.size(),
                 " batches, the last of them \"", numbers.empty() ? "" : batch_prefix(*numbers.rbegin()),
                 "\"; they are numbered from 0 on without gaps.");
  return numbers.size();
}

// One side of a packed batch as rows of sequences, what lies behind a length filled.
Int32Matrix padded(const std::vector<std::int32_t>& rows, const std::vector<std::int32_t>& lengths, std::int32_t filler) {
  Int32Matrix result{.rows = std::ssize(lengths), .cols = most(lengths), .values = {}};
  result.values.assign(static_cast<std::size_t>(result.rows * result.cols), filler);
  auto from = rows.begin();
  for (std::size_t i = 0; i < lengths.size(); ++i, from += lengths[i - 1]) {
    std::copy_n(from, lengths[i], result.values.begin() + static_cast<std::int64_t>(i) * result.cols);
  }
  return result;
}

TensorSource id_tensor(std::string name, std::vector<std::int32_t> ids, std::vector<std::int64_t> shape) {
  return {
      .name = std::move(name), .type = StoredType::i32, .shape = std::move(shape), .stream = [ids = std::move(ids)](const ByteSink& sink) {
        sink(std::as_bytes(std::span(ids)));
      }};
}

}  // namespace

std::string batch_prefix(std::size_t index) { return concat("batch/", index, "/"); }

BatchFile read_batch_file(const std::filesystem::path& path, const ModelConfig& model) {
  StoredBatches files = read_batch_files(path, model);
  TW_CHECK_INPUT(files.batches.size() == 1, path.string(), ": it holds ", files.batches.size(), " batches where one is wanted.");
  return std::move(files.batches.front());
}

StoredBatches read_batch_files(const std::filesystem::path& path, const ModelConfig& model) {
  const SafetensorsReader reader(path);
  const std::size_t count = numbered_batches(reader, model);
  if (count == 0) return {.names = BatchNames::alone, .batches = {read_batch(BatchTensorNames(reader, ""), model)}};
  StoredBatches files{.names = BatchNames::numbered, .batches = {}};
  for (std::size_t i = 0; i < count; ++i) files.batches.push_back(read_batch(BatchTensorNames(reader, batch_prefix(i)), model));
  return files;
}

Recipe recipe_of_step(const Recipe& recipe, const StoredBatches& files) {
  Recipe step = recipe;
  step.model.dropout = step.model.attention_dropout = 0.0;
  step.batch = {
      .source_tokens = 0, .target_tokens = 0, .sequence = 0, .accumulate = files.names == BatchNames::alone ? 1 : recipe.batch.accumulate};
  for (const BatchFile& file : files.batches) {
    const std::int64_t longest = std::max(most(file.source_lengths), most(file.target_lengths));
    step.batch.sequence = std::max(step.batch.sequence, longest);
    step.batch.target_tokens = std::max({step.batch.target_tokens, total(file.target_lengths), longest});
    if (!file.source_lengths.empty()) step.batch.source_tokens = std::max({step.batch.source_tokens, total(file.source_lengths), longest});
  }
  step.guidelines.wave_free_batch = WaveFreeBatch::off;  // the rows are the file's
  return step;
}

Recipe recipe_of_step(const Recipe& recipe, const BatchFile& file) {
  return recipe_of_step(recipe, StoredBatches{.names = BatchNames::alone, .batches = {file}});
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

SafetensorsContents batch_contents(const std::vector<Batch>& batches) {
  SafetensorsContents contents{.tensors = {}, .metadata = {{"tilewave", "batches"}, {"batches", std::to_string(batches.size())}}};
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const Batch& batch = batches[i];
    const auto add = [&](std::string_view name, Int32Matrix side) {
      contents.tensors.push_back(id_tensor(concat(batch_prefix(i), name), std::move(side.values), {side.rows, side.cols}));
    };
    const auto add_lengths = [&](std::string_view name, const std::vector<std::int32_t>& lengths) {
      contents.tensors.push_back(id_tensor(concat(batch_prefix(i), name), lengths, {std::ssize(lengths)}));
    };
    std::vector<std::int32_t> labels = batch.target_out;
    std::ranges::replace_if(
        labels, [](std::int32_t label) { return label < 0; }, kIgnoredLabel);
    if (!batch.source_lengths.empty()) {
      add("source", padded(batch.source_ids, batch.source_lengths, 0));
      add_lengths("source_lengths", batch.source_lengths);
    }
    add("target_in", padded(batch.target_in, batch.target_lengths, 0));
    add("target_out", padded(labels, batch.target_lengths, kIgnoredLabel));
    add_lengths("target_lengths", batch.target_lengths);
  }
  return contents;
}

}  // namespace tilewave
