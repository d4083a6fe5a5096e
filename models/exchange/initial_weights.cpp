#include "models/exchange/initial_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/io/file.h"
#include "framework/io/sha256.h"
#include "framework/tensor/host_tensor.h"
#include "models/exchange/weight_names.h"
#include "models/transformer/weight_files.h"

namespace tilewave {
namespace {

// A parameter, or a part of one, and the tensor it is read from.
struct Pair {
  const Parameter* parameter = nullptr;
  std::int64_t first = 0, count = 0;  // its rows, or a vector's columns
  SourceTensor source;
  WeightPlace place;
};

struct Matched {
  std::vector<Pair> pairs;
  std::int64_t parameters = 0;                           // that all of the pairs make
  std::vector<std::string> missing, surplus, misshapen;  // each told
};

bool is_readable(StoredType type) {
  return type == StoredType::f64 || type == StoredType::f32 || type == StoredType::f16 || type == StoredType::bf16;
}

// The shape that a file has to have.
std::vector<std::int64_t> wanted_shape(const Pair& pair) {
  std::vector<std::int64_t> shape = file_shape(*pair.parameter);
  shape.front() = pair.count / pair.place.taken * pair.place.parts;
  if (pair.place.transposed) std::swap(shape.front(), shape.back());
  return shape;
}

// What a parameter is read from, whether the file has it or not.
std::vector<Pair> wanted_pairs(const Parameter& parameter, const NamedWeights& names) {
  const std::vector<std::int64_t>& parts = parameter.spec.parts;
  const std::vector<WeightPlace> places = places_of(parameter.spec.name, parts.size(), names);
  const std::int64_t whole = file_shape(parameter).front();
  std::vector<Pair> pairs;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::int64_t count = places.size() == 1 ? whole : parts[i];
    pairs.push_back({.parameter = &parameter, .first = first, .count = count, .source = {}, .place = places[i]});
    first += count;
  }
  return pairs;
}

std::string told(const std::string& name, const std::vector<std::int64_t>& shape) {
  return concat('"', printable(name), "\" ", shape_text(shape));
}

// Whether a head that is tied to the embedding in the model has the embedding's bytes in the file.
bool same_bytes(const SourceTensor& a, const SourceTensor& b) {
  if (a.tensor->bytes != b.tensor->bytes || a.tensor->type != b.tensor->type || a.tensor->shape != b.tensor->shape) return false;
  constexpr std::int64_t kComparedBytes = 1 << 20;
  std::vector<std::byte> one, other;
  for (std::int64_t at = 0; at < a.tensor->bytes; at += kComparedBytes) {
    one.resize(static_cast<std::size_t>(std::min(kComparedBytes, a.tensor->bytes - at)));
    other.resize(one.size());
    a.file->read_part(*a.tensor, at, one);
    b.file->read_part(*b.tensor, at, other);
    if (one != other) return false;
  }
  return true;
}

// Finds a pair's tensor. False, and the fault told, where the file has none that fits.
bool find_source(const WeightSource& source, Pair& pair, Matched& result) {
  const std::string& name = pair.place.name;
  const SourceTensor* found = source.find(name);
  const std::vector<std::int64_t> wanted = wanted_shape(pair);
  if (found == nullptr) {
    const std::string& ours = pair.parameter->spec.name;
    result.missing.push_back(concat(told(name, wanted), name == ours ? "" : concat(" (", ours, ")")));
    return false;
  }
  pair.source = *found;
  if (found->tensor->shape != wanted) {
    result.misshapen.push_back(concat(told(name, found->tensor->shape), " where the model has ", shape_text(wanted)));
    return false;
  }
  if (is_readable(found->tensor->type)) return true;
  result.misshapen.push_back(
      concat(told(name, found->tensor->shape), " of type ", name_of(found->tensor->type), " where F32, F16, BF16 or F64 is read"));
  return false;
}

Matched matched(const WeightSource& source, const NamedWeights& names, const Parameters& parameters) {
  Matched result;
  std::set<std::string> used;
  const auto match = [&](const Parameter& parameter) {
    std::vector<Pair> pairs = wanted_pairs(parameter, names);
    if (pairs.empty()) result.missing.push_back(told(parameter.spec.name, file_shape(parameter)));
    bool whole = !pairs.empty();
    for (Pair& pair : pairs) {
      used.insert(pair.place.name);
      whole = find_source(source, pair, result) && whole;
    }
    if (!whole) return;
    ++result.parameters;
    result.pairs.insert(result.pairs.end(), pairs.begin(), pairs.end());
  };
  std::ranges::for_each(parameters.all(), match);
  std::ranges::for_each(parameters.buffers(), match);
  const std::vector<WeightPlace> embedding = places_of("embedding.token.weight", 0, names), head = places_of("projection.weight", 0, names);
  for (const SourceTensor& one : source.tensors()) {
    const std::string& name = one.tensor->name;
    if (used.contains(name) || is_constant(name, names)) continue;
    const SourceTensor* token = embedding.empty() ? nullptr : source.find(embedding.front().name);
    const bool tied_head = !head.empty() && name == head.front().name && token != nullptr && same_bytes(one, *token);
    if (!tied_head) result.surplus.push_back(told(name, one.tensor->shape));
  }
  return result;
}

std::string list_text(const std::vector<std::string>& items) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, items.size()); ++i) text += (i == 0 ? "" : ", ") + items[i];
  return items.size() > kShown ? concat(text, " and ", items.size() - kShown, " more") : text;
}

void check_whole(const WeightSource& source, const NamedWeights& names, const Matched& found) {
  std::string faults;
  const auto add = [&](std::string_view what, const std::vector<std::string>& items) {
    if (!items.empty()) faults += concat(faults.empty() ? "" : "; ", what, list_text(items));
  };
  add("it has no tensor ", found.missing);
  add("no parameter is made of ", found.surplus);
  add("another shape or type have ", found.misshapen);
  TW_CHECK_INPUT(faults.empty(), source.path().string(), ": these weights (", name_of(names.names),
                 "'s names) are not the recipe's model's: ", faults,
                 "; change the recipe, or load what fits with --weights-partial where the command has it.");
}

double value_at(const std::byte* bytes, StoredType type) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, bytes, sizeof(value));
    return value;
  };
  switch (type) {
    case StoredType::f64:
      return as(double{});
    case StoredType::f16:
      return static_cast<float>(as(f16{}));
    case StoredType::bf16:
      return static_cast<float>(as(bf16{}));
    default:
      return as(float{});
  }
}

// Rows of the parameter, or the whole tensor where its rows are the file's columns.
struct HostPiece {
  std::vector<std::byte> bytes;
  std::int64_t first_row = 0, stride_row = 0, stride_column = 0;  // in elements
  StoredType type = StoredType::f32;
  std::int64_t width = 0;  // of an element, in bytes

  double at(std::int64_t row, std::int64_t column) const {
    return value_at(bytes.data() + ((row - first_row) * stride_row + column * stride_column) * width, type);
  }
};

void read(Context& context, const ParameterState& state, const Pair& pair) {
  const bool vector = pair.parameter->spec.kind != ParameterKind::weight;  // [1, cols] here, [cols] there
  const StoredTensor& stored = *pair.source.tensor;
  const std::int64_t width = bits_of(stored.type) / 8, rows = vector ? 1 : pair.count,
                     cols = vector ? pair.count : pair.parameter->shape().cols;
  const std::int64_t skipped = pair.place.first_part * (vector ? cols : rows) / pair.place.taken * (vector ? 1 : cols);  // elements
  const std::int64_t piece_rows = pair.place.transposed ? rows : rows_of_piece({rows, cols}, width);
  const bool narrow = state.dtype() == DType::f32;
  HostPiece piece{.stride_row = pair.place.transposed ? 1 : cols,
                  .stride_column = pair.place.transposed ? rows : 1,
                  .type = stored.type,
                  .width = width};
  for (std::int64_t first = 0; first < rows; first += piece_rows) {
    const std::int64_t count = std::min(piece_rows, rows - first);
    piece.first_row = first;
    piece.bytes.resize(static_cast<std::size_t>(count * cols * width));
    pair.source.file->read_part(stored, (skipped + first * cols) * width, piece.bytes);
    const ParameterBlock block{
        .first_row = vector ? 0 : pair.first + first, .rows = count, .first_column = vector ? pair.first : 0, .columns = cols};
    state.write(context, block, [&](std::int64_t row, std::int64_t column) {
      const double value = piece.at(first + row, column);
      TW_CHECK_INPUT(std::isfinite(narrow ? static_cast<float>(value) : value), pair.source.file->path().string(), ": tensor \"",
                     printable(stored.name), "\" holds ", value, ", which is no finite number of type ", name_of(state.dtype()),
                     "; take a file of a training run that has not diverged.");
      return value;
    });
  }
}

}  // namespace

std::vector<std::string> WeightOrigin::told() const {
  std::vector<std::string> sentences = {
      concat("weights from ", source, " (", names, "'s names): ", loaded, " parameters loaded",
             kept_initial.empty() ? "" : concat(", ", kept_initial.size(), " left at their initial values"), ".")};
  for (const std::string& parameter : kept_initial) sentences.push_back(concat("not loaded: ", parameter, "."));
  for (const std::string& tensor : left_out) sentences.push_back(concat("no parameter is made of ", tensor, "."));
  return sentences;
}

std::string to_json(const WeightOrigin& origin) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const WeightFileFacts& file : origin.files) {
    files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  const nlohmann::ordered_json json = {{"source", origin.source},
                                       {"names", origin.names},
                                       {"files", std::move(files)},
                                       {"loaded", origin.loaded},
                                       {"kept_initial", origin.kept_initial},
                                       {"left_out", origin.left_out}};
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

WeightOrigin load_initial_weights(const InitialWeights& wanted, Parameters& parameters) {
  const WeightSource source(wanted.path);
  const NamedWeights names = recognised(source);
  Matched found = matched(source, names, parameters);
  if (wanted.fit == WeightFit::whole) check_whole(source, names, found);
  TW_CHECK_INPUT(!found.pairs.empty(), wanted.path.string(), ": none of its ", source.tensors().size(),
                 " tensors fits a parameter of the recipe's model; take another file, or change the recipe.");
  WeightOrigin origin{.source = std::filesystem::absolute(wanted.path).lexically_normal().string(),
                      .names = std::string(name_of(names.names)),
                      .files = {},
                      .loaded = found.parameters,
                      .kept_initial = std::move(found.missing),
                      .left_out = std::move(found.surplus)};
  origin.kept_initial.insert(origin.kept_initial.end(), found.misshapen.begin(), found.misshapen.end());
  for (const SafetensorsReader& file : source.files()) {
    origin.files.push_back({.path = std::filesystem::absolute(file.path()).lexically_normal().string(),
                            .bytes = InputFile(file.path()).bytes(),
                            .sha256 = sha256_of_file(file.path())});
  }
  for (const Pair& pair : found.pairs) read(parameters.context(), parameters.master(*pair.parameter), pair);
  parameters.refresh_compute_copies();
  return origin;
}

}  // namespace tilewave
