// The page: step times as bars with their quartiles, gains predicted beside measured, GEMMs, losses. Inline SVG, no script.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <type_traits>
#include <utility>

#include "app/text/ablation_files.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStyle =
    "body{font:14px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}"
    "h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}th:first-child,td:first-child{text-align:left}"
    "svg{display:block;margin:.5em 0}text{font:12px system-ui,sans-serif;fill:#222}";

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  }
  return result;
}

// Numbers alone: their text has a bound.
template <class... Values>
std::string format(const char* pattern, Values... values) {
  static_assert((std::is_arithmetic_v<Values> && ...), "text is put together, not formatted");
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string cells(const std::vector<std::string>& values, const char* kind = "td") {
  std::string row = "<tr>";
  for (const std::string& value : values) row += concat("<", kind, ">", value, "</", kind, ">");
  return row + "</tr>\n";
}

struct Bar {
  std::string label, value;
  double length = 0.0, from = 0.0, to = 0.0;  // from and to: a whisker, none where they are equal
  const char* color = "#4878a8";
};

// Horizontal bars from a common zero, which negative ones stand to the left of.
std::string bars(const std::vector<Bar>& all) {
  constexpr double kLabels = 330.0, kWidth = 560.0, kRow = 24.0;
  double least = 0.0, most = 0.0;
  for (const Bar& bar : all) {
    least = std::min({least, bar.length, bar.from});
    most = std::max({most, bar.length, bar.to});
  }
  const double scale = most > least ? kWidth / (most - least) : 0.0;
  const auto x = [&](double value) { return kLabels + (value - least) * scale; };
  std::string svg = format("<svg width=\"1040\" height=\"%.0f\" role=\"img\">\n", kRow * static_cast<double>(all.size()) + 4.0);
  double y = 2.0;
  for (const Bar& bar : all) {
    svg += format(R"(<text x="%.1f" y="%.1f" text-anchor="end">)", kLabels - 8.0, y + 16.0) + escaped(bar.label) + "</text>";
    svg += format(R"(<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f")", x(std::min(bar.length, 0.0)), y + 3.0,
                  std::abs(bar.length) * scale, kRow - 6.0) +
           concat(" fill=\"", bar.color, "\"/>");
    if (bar.to > bar.from) {
      svg += format(R"(<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#222"/>)", x(bar.from), x(bar.to), y + kRow / 2, y + kRow / 2);
    }
    svg += format(R"(<text x="%.1f" y="%.1f">)", x(std::max({bar.length, bar.to, 0.0})) + 6.0, y + 16.0) + bar.value + "</text>\n";
    y += kRow;
  }
  return svg + "</svg>\n";
}

std::string steps_section(const Json& variants) {
  std::vector<Bar> times, gains;
  std::string table = cells({"variant", "rows", "V in memory", "real target tokens", "step ms", "tokens/s", "TFLOP/s", "memory MiB",
                             "predicted gain", "measured gain", "error, points", "of GEMMs", "same loss"},
                            "th");
  for (const Json& v : variants) {
    const std::string name = v["name"];
    if (!v["ran"].get<bool>()) {
      table += concat("<tr><td>", escaped(name), "</td><td colspan=\"12\">", escaped(v["refused"]), "</td></tr>\n");
      continue;
    }
    const auto number = [&](const char* key) { return v[key].get<double>(); };
    const auto count = [&](const char* key) { return std::to_string(v[key].get<std::int64_t>()); };
    times.push_back({.label = name,
                     .value = format("%.3f ms", 1e-3 * number("step_us")),
                     .length = number("step_us"),
                     .from = number("step_lower_quartile_us"),
                     .to = number("step_upper_quartile_us")});
    const bool compared = v["baseline"] != v["name"] && !v["measured_gain_fraction"].is_null();
    const bool predicts = compared && !v["predicted_gain_fraction"].is_null();
    if (compared) {
      const double measured = 100.0 * number("measured_gain_fraction");
      if (predicts) {
        const double predicted = 100.0 * number("predicted_gain_fraction");
        gains.push_back({.label = name + ", predicted", .value = format("%+.1f %%", predicted), .length = predicted, .color = "#c8a048"});
      }
      gains.push_back({.label = name + ", measured", .value = format("%+.1f %%", measured), .length = measured});
    }
    table += cells({escaped(name), count("target_rows"), count("vocabulary_padded"), count("target_tokens"),
                    format("%.3f", 1e-3 * number("step_us")), format("%.0f", number("target_tokens_per_s")),
                    format("%.1f", number("tflops")), format("%.1f", number("memory_bytes") / (1 << 20)),
                    predicts ? format("%+.2f %%", 100.0 * number("predicted_gain_fraction")) : "",
                    compared ? format("%+.2f %%", 100.0 * number("measured_gain_fraction")) : "",
                    predicts ? format("%+.2f", number("prediction_error_points")) : "",
                    compared ? format("%+.2f %%", 100.0 * number("measured_gemm_gain_fraction")) : "",
                    escaped(v["same_loss"]["verdict"].get<std::string>() + ": " + v["same_loss"]["how"].get<std::string>())});
  }
  return "<h2>Step time</h2>\n<p>Medians of interleaved rounds; the line is from the lower to the upper quartile.</p>\n" + bars(times) +
         "<h2>Gain a real target token</h2>\n" + bars(gains) + "<table>\n" + table + "</table>\n";
}

// Each adjustment once, with the variants that it was made in.
std::string adjustments_section(const Json& variants) {
  std::vector<std::pair<Json, std::vector<std::string>>> all;
  for (const Json& v : variants) {
    if (!v["ran"].get<bool>()) continue;
    for (const Json& one : v["adjustments"]) {
      auto known = std::find_if(all.begin(), all.end(), [&](const auto& other) { return other.first == one; });
      if (known == all.end()) known = all.emplace(all.end(), one, std::vector<std::string>());
      known->second.push_back(v["name"]);
    }
  }
  if (all.empty()) return "";
  std::string table = cells({"guideline", "what", "asked for", "made", "why", "rows of a pass", "memory MiB", "variants"}, "th");
  for (const auto& [adjustment, names] : all) {
    const Json& one = adjustment;  // a lambda takes no structured binding in clang 14
    const auto count = [&](const char* key) { return std::to_string(one[key].get<std::int64_t>()); };
    std::string in;
    for (const std::string& name : names) in += (in.empty() ? "" : "<br>") + escaped(name);
    table += cells({escaped(one["rule"]), escaped(one["what"]), count("from"), count("to"), escaped(one["why"]), count("cost_tokens"),
                    format("%+.1f", one["cost_bytes"].get<double>() / (1 << 20)), in});
  }
  return "<h2>What the guidelines made of it</h2>\n<table>\n" + table + "</table>\n";
}

std::string gemms_section(const Json& variants) {
  std::string table = cells(
      {"GEMM", "variant", "M", "N", "K", "alignment A/B/D", "row, tile", "useful", "waves", "tail", "us a step", "predicted us", "TFLOP/s"},
      "th");
  for (const Json& v : variants) {
    if (!v["ran"].get<bool>()) continue;
    for (const Json& g : v["gemms"]) {
      const auto count = [&](const char* key) { return std::to_string(g[key].get<std::int64_t>()); };
      const bool known = !g["tile"].is_null();
      const std::string split = known && g["split"] > 1 ? "/k" + count("split") : "";
      table += cells({escaped(g["layer"].get<std::string>() + " " + g["role"].get<std::string>() + " x " + count("count")),
                      escaped(v["name"]), count("m"), count("n"), count("k"),
                      count("a_alignment_bytes") + "/" + count("b_alignment_bytes") + "/" + count("d_alignment_bytes"),
                      escaped(g["row"].get<std::string>() + (known ? ", " + g["tile"].get<std::string>() + split : "")),
                      known ? format("%.1f %%", 100.0 * g["useful_fraction"].get<double>()) : "",
                      known ? format("%.2f", g["waves"].get<double>()) : "",
                      known ? format("%.1f %%", 100.0 * g["tail_fraction"].get<double>()) : "", format("%.1f", g["time_us"].get<double>()),
                      known ? format("%.1f", g["predicted_us"].get<double>()) : "", format("%.1f", g["tflops"].get<double>())});
    }
  }
  return "<h2>GEMMs, launch by launch</h2>\n<table>\n" + table + "</table>\n";
}

std::string losses_section(const Json& ablation) {
  std::vector<std::string> head = {"step"};
  for (const Json& v : ablation["variants"]) {
    if (v["ran"].get<bool>()) head.push_back(escaped(v["name"]) + "<br>loss, gradient norm");
  }
  std::string table = cells(head, "th");
  for (std::size_t step = 0; step < ablation["steps"].get<std::size_t>(); ++step) {
    std::vector<std::string> row = {std::to_string(step + 1)};
    for (const Json& v : ablation["variants"]) {
      if (!v["ran"].get<bool>()) continue;
      row.push_back(v["losses"][step].dump() + ", " + v["gradient_norms"][step].dump());
    }
    table += cells(row);
  }
  return "<h2>Losses</h2>\n<table>\n" + table + "</table>\n";
}

}  // namespace

std::string ablation_page(const Json& ablation) {
  const std::string title = escaped(ablation["recipe"].get<std::string>() + " on " + ablation["device"].get<std::string>());
  std::string page = concat("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", title, "</title><style>", kStyle,
                            "</style></head>\n<body><h1>", title, "</h1>\n");
  for (const Json& change : ablation["changes"]) page += "<p>" + escaped(change) + "</p>\n";
  if (ablation["time_model"].is_null()) page += "<p>Predicted gains are of GEMMs alone, as a CPU's bandwidth is not known.</p>\n";
  return page + steps_section(ablation["variants"]) + adjustments_section(ablation["variants"]) + gemms_section(ablation["variants"]) +
         losses_section(ablation) + "</body></html>\n";
}

}  // namespace tilewave
