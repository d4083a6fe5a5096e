// One list of (name, parameter, tensor) serves writing, checking and reading.
#include "models/transformer/weight_files.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "framework/io/safetensors_reader.h"
#include "framework/tensor/host_tensor.h"

namespace tilewave {
namespace {

struct Entry {
  std::string name;
  ParameterState state;

  const Parameter& parameter() const { return state.parameter(); }
};

using StateOf = std::function<ParameterState(std::size_t index)>;

std::vector<Entry> entries(const Parameters& parameters, std::string_view prefix, const StateOf& state_of) {
  std::vector<Entry> result;
  for (std::size_t i = 0; i < parameters.all().size(); ++i) {
    result.push_back({.name = std::string(prefix) + parameters.all()[i].spec.name, .state = state_of(i)});
  }
  return result;
}

std::vector<Entry> weights(const Parameters& parameters, std::string_view prefix) {
  std::vector<Entry> result = entries(parameters, prefix, [&](std::size_t i) { return parameters.master(i); });
  for (const Parameter& buffer : parameters.buffers()) {
    result.push_back({.name = std::string(prefix) + buffer.spec.name, .state = parameters.master(buffer)});
  }
  return result;
}

std::vector<Entry> moments(const Parameters& parameters, const AdamW& optimizer) {
  std::vector<Entry> result = entries(parameters, "first_moment/", [&](std::size_t i) { return optimizer.first_moment(i); });
  const auto second = entries(parameters, "second_moment/", [&](std::size_t i) { return optimizer.second_moment(i); });
  result.insert(result.end(), second.begin(), second.end());
  return result;
}

// What read() would refuse is not written.
template <class Stored>
void check_finite(const std::string& name, const std::vector<std::byte>& piece, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += static_cast<std::int64_t>(sizeof(Stored))) {
    Stored value;
    std::memcpy(&value, piece.data() + at, sizeof(value));
    TW_CHECK(std::isfinite(value), "\"", name, "\" holds ", value, "; try a smaller optimizer.learning_rate.");
  }
}

void add(SafetensorsContents& contents, Context& context, const std::vector<Entry>& tensors) {
  for (const Entry& entry : tensors) {
    const auto stream = [&context, name = entry.name, state = entry.state](const ByteSink& sink) {
      std::vector<std::byte> piece;
      state.read(context, [&](const Tensor& rows) {
        const std::int64_t bytes = rows.shape().elements() * size_of(rows.dtype());
        piece.resize(static_cast<std::size_t>(bytes));
        read_rows(context, rows, piece.data());
        if (rows.dtype() == DType::f32) check_finite<float>(name, piece, bytes);
        if (rows.dtype() == DType::f64) check_finite<double>(name, piece, bytes);
        sink(piece);
      });
    };
    contents.tensors.push_back(
        {.name = entry.name, .type = stored_type(entry.state.dtype()), .shape = file_shape(entry.parameter()), .stream = stream});
  }
}

void check(const SafetensorsReader& reader, const std::vector<Entry>& wanted) {
  const std::string file = reader.path().string();
  std::set<std::string_view> names;
  for (const Entry& entry : wanted) {
    names.insert(entry.name);
    const std::vector<std::int64_t> shape = file_shape(entry.parameter());
    const StoredTensor* tensor = reader.find(entry.name);
    TW_CHECK_INPUT(tensor != nullptr, file, ": has no tensor \"", entry.name, "\" of shape ", shape_text(shape),
                   ", which the recipe's model needs; take a file written for this model, or change the recipe.");
    const bool transposed = shape.size() == 2 && tensor->shape == std::vector{shape[1], shape[0]};
    TW_CHECK_INPUT(tensor->shape == shape, file, ": tensor \"", entry.name, "\" has the shape ", shape_text(tensor->shape),
                   ", but the recipe's model wants ", shape_text(shape),
                   transposed ? "; transpose it: weights are [out, in]." : "; take a file written for this model, or change the recipe.");
    TW_CHECK_INPUT(tensor->type == StoredType::f32 || tensor->type == StoredType::f64, file, ": tensor \"", entry.name, "\" ",
                   shape_text(shape), " is ", name_of(tensor->type), "; parameters are F32 or F64: convert it.");
  }
  const auto content = reader.metadata().find("tilewave");
  if (content != reader.metadata().end() && content->second == kStepContent) return;
  for (const StoredTensor& tensor : reader.tensors()) {
    TW_CHECK_INPUT(names.contains(tensor.name), file, ": tensor \"", printable(tensor.name), "\" ", shape_text(tensor.shape),
                   " belongs to no parameter of the recipe's model; remove it, or change the recipe.");
  }
}

template <class Stored>
void read(const SafetensorsReader& reader, Context& context, const Entry& entry) {
  const auto& [rows, cols] = entry.parameter().shape();
  const DType dtype = entry.state.dtype();
  const bool narrow = dtype == DType::f32;
  const std::int64_t piece_rows = rows_of_piece(entry.parameter().shape(), sizeof(Stored));
  std::vector<Stored> elements;
  for (std::int64_t first = 0; first < rows; first += piece_rows) {
    const ParameterBlock piece{.first_row = first, .rows = std::min(piece_rows, rows - first), .columns = cols};
    const std::int64_t before = first * cols;  // elements
    elements.resize(static_cast<std::size_t>(piece.rows * cols));
    reader.read_part(reader.at(entry.name), before * static_cast<std::int64_t>(sizeof(Stored)),
                     std::as_writable_bytes(std::span(elements)));
    const auto bad = std::find_if_not(elements.begin(), elements.end(),
                                      [&](Stored value) { return std::isfinite(narrow ? static_cast<float>(value) : value); });
    TW_CHECK_INPUT(bad == elements.end(), reader.path().string(), ": tensor \"", entry.name, "\" holds ", *bad, " at element ",
                   before + (bad - elements.begin()), ", which is no finite number of type ", name_of(dtype),
                   "; take a file of a training run that has not diverged.");
    entry.state.write(context, piece, [&, width = cols](std::int64_t row, std::int64_t column) {
      return static_cast<double>(elements[static_cast<std::size_t>(row * width + column)]);
    });
  }
}

void load(const std::filesystem::path& path, Context& context, const std::vector<Entry>& wanted) {
  const SafetensorsReader reader(path);
  check(reader, wanted);
  for (const Entry& entry : wanted) {
    if (reader.at(entry.name).type == StoredType::f64) {
      read<double>(reader, context, entry);
    } else {
      read<float>(reader, context, entry);
    }
  }
}

}  // namespace

std::vector<std::int64_t> file_shape(const Parameter& parameter) {
  const Shape& shape = parameter.shape();
  return parameter.spec.kind == ParameterKind::weight ? std::vector{shape.rows, shape.cols} : std::vector{shape.cols};
}

std::map<std::string, std::string> file_metadata(const Parameters& parameters, std::string_view content) {
  std::map<std::string, std::string> result = {{"tilewave", std::string(content)}};
  if (const Parameter* embedding = parameters.find("embedding.token.weight")) {
    result["vocabulary"] = std::to_string(embedding->shape().rows);
    result["vocabulary_padded"] = std::to_string(embedding->variable.rows());
  }
  return result;
}

void add_weights(SafetensorsContents& contents, Parameters& parameters, std::string_view prefix) {
  add(contents, parameters.context(), weights(parameters, prefix));
}

void add_gradients(SafetensorsContents& contents, Parameters& parameters, std::string_view prefix) {
  add(contents, parameters.context(), entries(parameters, prefix, [&](std::size_t i) {
        return ParameterState(parameters.all()[i], parameters.all()[i].variable.gradient());
      }));
}

void add_moments(SafetensorsContents& contents, Parameters& parameters, const AdamW& optimizer) {
  add(contents, parameters.context(), moments(parameters, optimizer));
}

SafetensorsContents weight_contents(Parameters& parameters) {
  SafetensorsContents contents{.tensors = {}, .metadata = file_metadata(parameters, "weights")};
  add_weights(contents, parameters, "");
  return contents;
}

SafetensorsContents optimizer_contents(Parameters& parameters, const AdamW& optimizer) {
  SafetensorsContents contents{.tensors = {}, .metadata = file_metadata(parameters, "optimizer")};
  add_moments(contents, parameters, optimizer);
  return contents;
}

void load_weights(const std::filesystem::path& path, Parameters& parameters) {
  load(path, parameters.context(), weights(parameters, ""));
  parameters.refresh_compute_copies();
}

void load_optimizer(const std::filesystem::path& path, Parameters& parameters, const AdamW& optimizer) {
  load(path, parameters.context(), moments(parameters, optimizer));
}

}  // namespace tilewave
