#include "models/figures/figure_files.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "framework/io/file.h"
#include "framework/io/json_fault.h"
#include "framework/io/json_lines.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::int64_t kMaxFigureBytes = std::int64_t{64} << 20;

// One list of fields for both files and for reading back: a name, and what it is of a record. Seconds are written as microseconds.
template <class Record, class Visit>
void each_field(Record& record, const Visit& visit) {
  visit("series", record.series);
  visit("group", record.group);
  visit("label", record.label);
  visit("x", record.x);
  visit("operation", record.operation);
  visit("phase", record.phase);
  visit("layout", record.layout);
  visit("m", record.m);
  visit("n", record.n);
  visit("k", record.k);
  visit("dtype", record.dtype);
  visit("pitch", record.pitch);
  visit("a_alignment_bytes", record.a_alignment);
  visit("b_alignment_bytes", record.b_alignment);
  visit("d_alignment_bytes", record.d_alignment);
  visit("flops", record.flops);
  visit("bytes", record.bytes);
  visit("kernel", record.kernel);
  visit("tile", record.tile);
  visit("split", record.split);
  visit("tiles", record.tiles);
  visit("slots", record.slots);
  visit("tail_tiles", record.tail_tiles);
  visit("useful_fraction", record.useful_fraction);
  visit("waves", record.waves);
  visit("tail_fraction", record.tail_fraction);
  visit("wave_fraction", record.wave_fraction);
  visit("floor_us", record.floor_s);
  visit("predicted_us", record.predicted_s);
  visit("measured_us", record.measured_s);
  visit("lower_quartile_us", record.lower_quartile_s);
  visit("upper_quartile_us", record.upper_quartile_s);
  visit("rounds", record.rounds);
  visit("refused", record.refused);
}

bool in_microseconds(std::string_view name) { return name.ends_with("_us"); }

// To a thousandth of a millionth, so that what is read back is written as it was.
double microseconds(double seconds) {
  if (!std::isfinite(seconds)) return seconds;
  constexpr int kDigits = 9;
  char text[32];
  double rounded = 0.0;
  const char* const end = std::to_chars(text, text + sizeof text, 1e6 * seconds, std::chars_format::scientific, kDigits - 1).ptr;
  std::from_chars(text, end, rounded);
  return rounded;
}

// What follows from the fields.
std::vector<std::pair<const char*, double>> derived(const FigureRecord& record) {
  const bool gemm = record.operation == "gemm";
  const double predicted_s = 1e-6 * microseconds(record.predicted_s), measured_s = 1e-6 * microseconds(record.measured_s);  // as written
  return {{"predicted_tflops", gemm ? record.value(Quantity::rate, predicted_s) : NAN},
          {"tflops", gemm ? record.value(Quantity::rate, measured_s) : NAN},
          {"predicted_gbytes_per_s", record.value(Quantity::bandwidth, predicted_s)},
          {"gbytes_per_s", record.value(Quantity::bandwidth, measured_s)},
          {"flops_per_byte", record.flops_per_byte()}};
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string csv_number(double value) { return std::isfinite(value) ? Json(value).dump() : std::string(); }

FigureHead head_of(const Json& json) {
  return {.figure = json.at("figure"),
          .device = json.at("device"),
          .sm_count = json.at("sm_count"),
          .precision = json.at("precision"),
          .printed = json.at("as_printed"),
          .how = json.at("how"),
          .command = json.at("command"),
          .commit = json.at("commit")};
}

FigureRecord record_of(const Json& json) {
  FigureRecord record;
  each_field(record, [&]<class T>(const char* name, T& field) {
    const Json& value = json.at(name);
    if constexpr (std::is_same_v<T, double>) {
      field = value.is_null() ? NAN : (in_microseconds(name) ? 1e-6 : 1.0) * value.get<double>();
    } else {
      field = value.get<T>();
    }
  });
  return record;
}

}  // namespace

std::string jsonl_of(const FigureHead& head, const FigureRecords& records) {
  JsonObject first;
  first.add("kind", "figure").add("figure", head.figure).add("device", head.device).add("sm_count", head.sm_count);
  first.add("precision", head.precision).add("as_printed", head.printed).add("how", head.how).add("command", head.command);
  std::string text = first.add("commit", head.commit).text() + '\n';
  for (const FigureRecord& record : records) {
    JsonObject line;
    line.add("kind", "point").add("figure", head.figure).add("device", head.device);
    each_field(record, [&]<class T>(const char* name, const T& field) {
      if constexpr (std::is_same_v<T, double>) {
        line.add(name, in_microseconds(name) ? microseconds(field) : field);
      } else {
        line.add(name, field);
      }
    });
    for (const auto& [name, value] : derived(record)) line.add(name, value);
    text += line.text() + '\n';
  }
  return text;
}

std::string csv_of(const FigureRecords& records) {
  std::string text;
  const auto add = [&](const std::string& cell) { text += (text.empty() || text.back() == '\n' ? "" : ",") + cell; };
  const FigureRecord none;
  each_field(none, [&](const char* name, const auto&) { add(name); });
  for (const auto& [name, value] : derived(none)) add(name);
  text += '\n';
  for (const FigureRecord& record : records) {
    std::string line, before;
    const auto put = [&](const std::string& cell) { line += std::exchange(before, ",") + cell; };
    each_field(record, [&]<class T>(const char* name, const T& field) {
      if constexpr (std::is_same_v<T, std::string>) {
        put(csv_cell(field));
      } else if constexpr (std::is_same_v<T, double>) {
        put(csv_number(in_microseconds(name) ? microseconds(field) : field));
      } else {
        put(std::to_string(field));
      }
    });
    for (const auto& [name, value] : derived(record)) put(csv_number(value));
    text += line + '\n';
  }
  return text;
}

std::optional<StoredFigure> read_figure(const std::filesystem::path& path) {
  if (!is_there(path)) return {};
  std::istringstream lines(read_file(path, kMaxFigureBytes));
  StoredFigure stored;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    try {
      const Json json = Json::parse(line);
      if (number == 1) {
        stored.head = head_of(json);
      } else {
        stored.records.push_back(record_of(json));
      }
    } catch (const Json::exception& error) {
      throw InputError(concat(path.string(), ", line ", number, ": it is not what tilewave figures writes: ", json_fault(error),
                              "; name another folder with --out."));
    }
  }
  TW_CHECK_INPUT(number > 0, path.string(), " is empty, and no file of tilewave figures; name another folder with --out.");
  return stored;
}

}  // namespace tilewave
