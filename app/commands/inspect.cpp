// tilewave inspect PATH: what is in a file or folder that tilewave reads or writes (docs/use/formats.md). Each kind becomes one JSON
// object; without --json it is printed as lines, and a list of objects in it as a table.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "app/options/command.h"
#include "app/text/losses.h"
#include "app/text/table.h"
#include "app/text/units.h"
#include "framework/data/token_file.h"
#include "framework/data/tokenizer.h"
#include "framework/io/checkpoint.h"
#include "framework/io/json_lines.h"
#include "framework/io/run_folder.h"
#include "framework/io/safetensors_reader.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Statistics {
  double sum_of_squares = 0.0;
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  std::int64_t nonfinite = 0;

  void add(double value) {
    if (!std::isfinite(value)) {
      ++nonfinite;
      return;
    }
    sum_of_squares += value * value;
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

template <class T>
Statistics statistics_of(const SafetensorsReader& reader, const StoredTensor& tensor) {
  std::vector<T> elements(static_cast<std::size_t>(tensor.bytes) / sizeof(T));
  reader.read(tensor, std::as_writable_bytes(std::span(elements)));
  Statistics statistics;
  for (const T element : elements) {
    if constexpr (std::is_arithmetic_v<T>) {
      statistics.add(static_cast<double>(element));
    } else {
      statistics.add(static_cast<double>(static_cast<float>(element)));
    }
  }
  return statistics;
}

// None for types that are no plain numbers.
std::optional<Statistics> statistics_of(const SafetensorsReader& reader, const StoredTensor& tensor) {
  switch (tensor.type) {
    case StoredType::f64:
      return statistics_of<double>(reader, tensor);
    case StoredType::f32:
      return statistics_of<float>(reader, tensor);
    case StoredType::f16:
      return statistics_of<f16>(reader, tensor);
    case StoredType::bf16:
      return statistics_of<bf16>(reader, tensor);
    case StoredType::i64:
      return statistics_of<std::int64_t>(reader, tensor);
    case StoredType::i32:
      return statistics_of<std::int32_t>(reader, tensor);
    case StoredType::i16:
      return statistics_of<std::int16_t>(reader, tensor);
    case StoredType::i8:
      return statistics_of<std::int8_t>(reader, tensor);
    case StoredType::u64:
      return statistics_of<std::uint64_t>(reader, tensor);
    case StoredType::u32:
      return statistics_of<std::uint32_t>(reader, tensor);
    case StoredType::u16:
      return statistics_of<std::uint16_t>(reader, tensor);
    case StoredType::u8:
    case StoredType::boolean:
      return statistics_of<std::uint8_t>(reader, tensor);
    case StoredType::c64:
    case StoredType::f8_e4m3:
    case StoredType::f8_e5m2:
    case StoredType::f8_e8m0:
    case StoredType::f8_e4m3fnuz:
    case StoredType::f8_e5m2fnuz:
    case StoredType::f6_e2m3:
    case StoredType::f6_e3m2:
    case StoredType::f4:
      return std::nullopt;
  }
  return std::nullopt;
}

// Of a batch file: how many sequences and tokens the lengths speak of.
Json batch_facts(const SafetensorsReader& reader) {
  Json facts = Json::object();
  for (const std::string side : {"source", "target"}) {
    const StoredTensor* tensor = reader.find(side + "_lengths");
    if (tensor == nullptr || tensor->type != StoredType::i32) continue;
    std::vector<std::int32_t> lengths(static_cast<std::size_t>(tensor->bytes) / sizeof(std::int32_t));
    reader.read(*tensor, std::as_writable_bytes(std::span(lengths)));
    facts["sequences"] = lengths.size();
    facts[side + "_tokens"] = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  }
  return facts;
}

Json inspect_safetensors(const fs::path& path) {
  const SafetensorsReader reader(path);
  Json report = {{"kind", "safetensors"}, {"metadata", reader.metadata()}};
  report.update(batch_facts(reader));
  Json tensors = Json::array();
  std::int64_t elements = 0;
  for (const StoredTensor& tensor : reader.tensors()) {
    Json row = {{"name", tensor.name}, {"type", name_of(tensor.type)}, {"shape", tensor.shape}, {"bytes", tensor.bytes}};
    if (const auto statistics = statistics_of(reader, tensor)) {
      row["norm"] = std::sqrt(statistics->sum_of_squares);
      if (statistics->least <= statistics->most) row.update({{"min", statistics->least}, {"max", statistics->most}});
      row["nonfinite"] = statistics->nonfinite;
    }
    elements += tensor.bytes * 8 / bits_of(tensor.type);
    tensors.push_back(std::move(row));
  }
  report["elements"] = elements;
  report["tensors"] = std::move(tensors);
  return report;
}

Json inspect_tokens(const fs::path& path) {
  constexpr std::int64_t kShown = 16, kChunk = 1 << 16;
  const TokenFile file(path, std::numeric_limits<std::int32_t>::max());
  std::vector<std::int32_t> ids(static_cast<std::size_t>(std::min(kChunk, file.size())));
  std::vector<std::int32_t> first;
  std::int32_t largest = 0;
  for (std::int64_t at = 0; at < file.size(); at += std::ssize(ids)) {
    ids.resize(static_cast<std::size_t>(std::min(kChunk, file.size() - at)));
    file.read(at, ids);
    if (at == 0) first.assign(ids.begin(), ids.begin() + std::min(kShown, std::ssize(ids)));
    largest = std::max(largest, *std::max_element(ids.begin(), ids.end()));
  }
  return {{"kind", "tokens"},
          {"tokens", file.size()},
          {"bytes_a_token", (InputFile(path).bytes() - kTokenFileHeaderBytes) / file.size()},
          {"largest_id", largest},
          {"first_ids", first}};
}

Json inspect_tokenizer(const fs::path& path) {
  const Tokenizer tokenizer = Tokenizer::load(path);
  Json pieces = Json::array();
  for (std::int64_t id = 0; id < tokenizer.vocabulary(); ++id) pieces.push_back(tokenizer.piece(static_cast<std::int32_t>(id)));
  const bool json = tokenizer.kind() == TokenizerKind::byte_level_bpe;
  return {{"kind", "tokenizer"},
          {"tokenizer", json ? "byte_level_bpe" : "bpe"},
          {"vocabulary", tokenizer.vocabulary()},
          {"end", tokenizer.end() ? Json(tokenizer.piece(*tokenizer.end())) : Json(nullptr)},
          {"pieces", std::move(pieces)}};
}

// The last whole line, or null.
Json last_line(const fs::path& path) {
  if (!is_there(path)) return nullptr;
  const std::string text = read_file(path, kMaxJsonLinesBytes);
  const std::size_t end = text.rfind('\n');
  if (end == std::string::npos) return nullptr;
  const std::size_t before = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  Json line = Json::parse(text.substr(begin, end - begin), nullptr, false);
  return line.is_object() ? line : Json(nullptr);
}

Json inspect_run(const fs::path& folder) {
  TW_CHECK_INPUT(is_there(folder / "recipe.toml"), folder.string(),
                 ": holds neither recipe.toml nor COMPLETE, so it is no folder of a run or a checkpoint; name one, such as "
                 "runs/toy_translation, or a file.");
  const bool ended = is_there(folder / "summary.json");
  const Recipe recipe = read_recipe(folder / "recipe.toml");
  const CheckpointSearch search = find_latest_valid(folder);
  Json report = {{"kind", "run"},
                 {"state", ended ? "ended" : "unfinished"},
                 {"architecture", name_of(recipe.model.architecture)},
                 {"data", name_of(recipe.data.kind)},
                 {"precision", name_of(recipe.run.precision)},
                 {"steps_asked", recipe.run.steps},
                 {"checkpoint", search.newest ? Json(search.newest->folder.string()) : Json(nullptr)},
                 {"checkpoint_step", search.newest ? Json(search.newest->step) : Json(nullptr)}};
  if (!search.skipped.empty()) report["checkpoints_skipped"] = search.skipped;
  if (is_there(folder / "weights.json")) {
    const Json origin = Json::parse(read_file(folder / "weights.json", kMaxJsonLinesBytes), nullptr, false);
    report["weights"] = origin.is_object() && origin.contains("source") ? origin["source"] : Json(nullptr);
  }
  report["last_metrics"] = last_line(folder / "metrics.jsonl");
  if (ended) report["summary"] = last_line(folder / "summary.json");
  return report;
}

Json inspect_checkpoint(const fs::path& folder) {
  const Checkpoint checkpoint = verified_checkpoint(folder);
  return {{"kind", "checkpoint"},
          {"step", checkpoint.step},
          {"weights", checkpoint.weights().string()},
          {"optimizer", checkpoint.optimizer().string()},
          {"state", checkpoint.state().string()}};
}

// The ending of a file's name says what it should be; its reader says whether it is.
Json inspect_file(const fs::path& path) {
  const InputFile file(path);
  const fs::path extension = path.extension();
  if (extension == ".safetensors") return inspect_safetensors(path);
  if (extension == ".bin") return inspect_tokens(path);
  TW_CHECK_INPUT(
      extension == ".model" || path.filename() == kTokenizerJson, path.string(),
      ": its name ends neither in .safetensors, nor in .bin (token file), nor in .model or tokenizer.json (tokenizer), and it is "
      "no run folder; inspect one of these.");
  return inspect_tokenizer(path);
}

Json inspect(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return inspect_file(path);
  return fs::exists(path / "COMPLETE", ignored) ? inspect_checkpoint(path) : inspect_run(path);
}

std::string text_of(const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_string()) return printable(value.get<std::string>());
  if (value.is_number_float()) {
    return number_text(value.get<double>(), "%.6g");
  }
  return value.dump();
}

// A column for each key, in the order in which keys come; those behind the third go first where there is no room.
void print_table(const Json& rows, const Page& page) {
  std::vector<Column> columns;
  for (const Json& row : rows) {
    for (const auto& [key, value] : row.items()) {
      if (std::ranges::find(columns, key, &Column::heading) != columns.end()) continue;
      const int place = static_cast<int>(columns.size());
      columns.push_back({.heading = key, .align = place == 0 ? Align::left : Align::right, .rank = std::max(0, place - 2)});
    }
  }
  Table table(columns);
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const Column& column : columns) cells.push_back(row.contains(column.heading) ? text_of(row[column.heading]) : "");
    table.add(std::move(cells));
  }
  std::cout << '\n';
  table.print(std::cout, page);
}

// Stored names stay as they are; which of the two losses it is stands behind the number.
std::string loss_note(const std::string& key) { return key == "loss" ? concat("  (the ", kTrainingLoss, ')') : std::string(); }

void print_lines(const Json& object, const std::string& prefix, const Page& page) {
  constexpr std::size_t kLabel = 34;
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + printable(key);
    if (value.is_object()) {
      print_lines(value, name + ".", page);
    } else if (value.is_array() && !value.empty() && value.front().is_object()) {
      print_table(value, page);
    } else {
      std::string line = name + std::string(kLabel - std::min(kLabel - 1, width_of(name)), ' ');
      if (value.is_array()) {
        for (std::size_t i = 0; i < value.size(); ++i) line += (i == 0 ? "" : " ") + text_of(value[i]);
      } else {
        line += text_of(value) + loss_note(key);
      }
      std::cout << wrapped(line, page, kLabel) << '\n';
    }
  }
}

}  // namespace

Command add_inspect(CLI::App& program) {
  CLI::App* app = program.add_subcommand("inspect", "what is in a safetensors file, a token file, a tokenizer or a run folder");
  struct InspectArguments {
    fs::path path;
    bool json = false;
    PageOptions page;
  };
  const auto options = std::make_shared<InspectArguments>();
  app->add_option("path", options->path, "the file or the run's folder")->required();
  app->add_flag("--json", options->json, "print JSON");
  options->page.add_to(*app);
  return {app, [options] {
            const Json report = inspect(options->path);
            if (options->json) {
              std::cout << report.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
            } else {
              print_lines(report, "", options->page.of_stdout());
            }
            return 0;
          }};
}

}  // namespace tilewave
