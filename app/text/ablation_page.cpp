// The page: what came of it in sentences, step times as bars with their quartiles, gains predicted beside measured, GEMMs, losses. What
// several settings launch alike, or compute alike, stands in one line.
#include <algorithm>
#include <map>
#include <utility>

#include "app/text/ablation_files.h"
#include "app/text/ablation_sentences.h"
#include "app/text/html.h"
#include "app/text/json_fields.h"
#include "app/text/units.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

using Json = nlohmann::ordered_json;

double seconds_at(const Json& object, const char* key) { return 1e-6 * number_at(object, key); }

std::vector<Json> those_that_ran(const Json& variants) {
  std::vector<Json> ran;
  for (const Json& v : variants) {
    if (v["ran"].get<bool>()) ran.push_back(v);
  }
  return ran;
}

bool compared(const Json& v) { return v["baseline"] != v["name"] && !v["measured_gain_fraction"].is_null(); }
bool predicts(const Json& v) { return compared(v) && !v["predicted_gain_fraction"].is_null(); }

std::string paragraph(const std::string& text) { return "<p>" + html(text) + "</p>\n"; }

std::string answer_of(const Json& ablation) {
  std::string page = paragraph(verdict(ablation));
  std::string items;
  for (const std::string& sentence : gain_sentences(ablation)) items += "<li>" + html(sentence) + "</li>\n";
  if (!items.empty()) page += "<ul>\n" + items + "</ul>\n" + paragraph(kIntervalLegend);
  for (const Json& change : ablation["changes"]) page += paragraph(change.get<std::string>());
  if (ablation["time_model"].is_null()) page += paragraph("Predicted gains are of GEMMs alone, as a CPU's bandwidth is not known.");
  return page;
}

std::string times_section(const std::vector<Json>& ran) {
  std::vector<Bar> times;
  for (const Json& v : ran) {
    if (v.contains("same_launches_as")) continue;
    std::vector<std::string> names = {text_at(v, "name")};
    for (const Json& other : ran) {
      if (other.contains("same_launches_as") && other["same_launches_as"] == v["name"]) names.push_back(text_at(other, "name"));
    }
    times.push_back({.label = settings_text(names, 0),
                     .value = time_text(seconds_at(v, "step_us")),
                     .length = number_at(v, "step_us"),
                     .from = number_at(v, "step_lower_quartile_us"),
                     .to = number_at(v, "step_upper_quartile_us")});
  }
  if (times.empty()) return "";
  return "<h2>Step time</h2>\n" + paragraph("Medians of rounds; a line is from the lower to the upper quartile.") + html_bars(times);
}

enum class Counted : std::uint8_t { target_tokens, pictures };

std::string gains_section(const std::vector<Json>& ran, Counted counted) {
  std::vector<Bar> gains;
  for (const Json& v : ran) {
    if (!compared(v)) continue;
    const std::string name = text_at(v, "name");
    if (predicts(v)) {
      const double predicted = number_at(v, "predicted_gain_fraction");
      gains.push_back({.label = name + ", predicted", .value = gain_text(predicted), .length = predicted, .kind = "predicted"});
    }
    const double measured = number_at(v, "measured_gain_fraction");
    gains.push_back({.label = name + ", measured",
                     .value = gain_text(measured),
                     .length = measured,
                     .from = number_at(v, "measured_gain_low_fraction"),
                     .to = number_at(v, "measured_gain_high_fraction")});
  }
  if (gains.empty()) return "";
  return concat("<h2>Gain per ", counted == Counted::pictures ? "picture" : "real target token", "</h2>\n") +
         paragraph("A line is the interval of the gain.") + html_bars(gains);
}

std::string settings_section(const Json& variants, Counted counted) {
  const bool pictures = counted == Counted::pictures;
  HtmlTable table({{"setting", false},
                   {pictures ? "pictures" : "rows"},
                   {pictures ? "classes in memory" : "V in memory"},
                   {pictures ? "pictures of data" : "real target tokens"},
                   {"step time"},
                   {pictures ? "pictures/s" : "tokens/s"},
                   {"rate"},
                   {"memory"},
                   {"predicted gain"},
                   {"measured gain"},
                   {"error in points"},
                   {"GEMMs' gain"},
                   {"loss", false}});
  for (const Json& v : variants) {
    const std::string name = text_at(v, "name");
    if (!v["ran"].get<bool>()) {
      table.add(name, "did not run: " + text_at(v, "refused"));
      continue;
    }
    const auto gain = [&](const char* key, bool known) { return known ? gain_text(number_at(v, key), 2) : std::string(); };
    const std::string how = text_at(v["same_loss"], "how");
    table.add(
        {name, count_text(count_at(v, "target_rows")), count_text(count_at(v, "vocabulary_padded")),
         count_text(count_at(v, "target_tokens")), time_text(seconds_at(v, "step_us")), rate_text(number_at(v, "target_tokens_per_s")),
         flops_text(1e12 * number_at(v, "tflops")), bytes_text(count_at(v, "memory_bytes")), gain("predicted_gain_fraction", predicts(v)),
         gain("measured_gain_fraction", compared(v)), predicts(v) ? number_text(number_at(v, "prediction_error_points"), "%+.2f") : "",
         gain("measured_gemm_gain_fraction", compared(v) && !v["measured_gemm_gain_fraction"].is_null()),
         text_at(v["same_loss"], "verdict") + (how.empty() ? "" : ": " + how)});
  }
  return "<h2>Settings</h2>\n" + table.html();
}

// Each adjustment once, with the settings that it was made in.
std::string adjustments_section(const std::vector<Json>& ran) {
  std::vector<std::pair<Json, std::vector<std::string>>> all;
  for (const Json& v : ran) {
    for (const Json& one : v["adjustments"]) {
      auto known = std::find_if(all.begin(), all.end(), [&](const auto& other) { return other.first == one; });
      if (known == all.end()) known = all.emplace(all.end(), one, std::vector<std::string>());
      known->second.push_back(v["name"]);
    }
  }
  if (all.empty()) return "";
  HtmlTable table({{"guideline", false},
                   {"what", false},
                   {"asked for"},
                   {"made"},
                   {"why", false},
                   {"rows of a pass"},
                   {"memory"},
                   {"settings", false}});
  for (const auto& [one, names] : all) {
    table.add({text_at(one, "rule"), text_at(one, "what"), count_text(count_at(one, "from")), count_text(count_at(one, "to")),
               text_at(one, "why"), count_text(count_at(one, "cost_tokens")), signed_bytes_text(count_at(one, "cost_bytes")),
               settings_text(names, ran.size())});
  }
  return "<h2>What the guidelines made of it</h2>\n" + table.html();
}

// All that a line shows of a GEMM: settings that have the same in it share the line.
std::vector<std::string> gemm_cells(const Json& g) {
  const bool known = !g["tile"].is_null();
  const auto count = [&](const char* key) { return std::to_string(count_at(g, key)); };
  return {count("count"),
          concat(count("m"), "x", count("n"), "x", count("k")),
          concat(count("a_alignment_bytes"), "/", count("b_alignment_bytes"), "/", count("d_alignment_bytes")),
          text_at(g, "plan"),
          known ? percent_text(number_at(g, "useful_fraction")) : "",
          known ? number_text(number_at(g, "waves"), "%.2f") : "",
          known ? percent_text(number_at(g, "tail_fraction")) : "",
          time_text(seconds_at(g, "time_us")),
          known ? time_text(seconds_at(g, "predicted_us")) : "",
          flops_text(1e12 * number_at(g, "tflops"))};
}

std::string gemms_section(const std::vector<Json>& ran) {
  struct Line {
    std::string name;
    std::vector<std::string> cells, settings;
  };
  std::vector<Line> lines;
  std::map<std::string, std::size_t> order;  // of names, as they come first
  for (const Json& v : ran) {
    for (const Json& g : v["gemms"]) {
      const std::string name = text_at(g, "layer") + ", " + text_at(g, "role");
      order.try_emplace(name, order.size());
      std::vector<std::string> cells = gemm_cells(g);
      const auto known = std::ranges::find_if(lines, [&](const Line& line) { return line.name == name && line.cells == cells; });
      if (known == lines.end()) {
        lines.push_back({.name = name, .cells = std::move(cells), .settings = {text_at(v, "name")}});
      } else {
        known->settings.push_back(text_at(v, "name"));
      }
    }
  }
  if (lines.empty()) return "";
  std::ranges::stable_sort(lines, {}, [&](const Line& line) { return order.at(line.name); });
  HtmlTable table({{"GEMM", false},
                   {"settings", false},
                   {"count"},
                   {"MxNxK"},
                   {"alignment of A/B/D, bytes"},
                   {"kernel/tile", false},
                   {"useful"},
                   {"waves"},
                   {"tail"},
                   {"time per step"},
                   {"predicted time"},
                   {"rate"}});
  for (const Line& line : lines) {
    std::vector<std::string> cells = {line.name, settings_text(line.settings, ran.size())};
    cells.insert(cells.end(), line.cells.begin(), line.cells.end());
    table.add(cells);
  }
  return "<h2>GEMMs, launch by launch</h2>\n" + table.html();
}

// Settings with the same losses and norms to the last bit share a table.
std::string losses_section(const Json& ablation, const std::vector<Json>& ran, Counted counted) {
  std::vector<std::pair<const Json*, std::vector<std::string>>> all;
  for (const Json& v : ran) {
    const auto known = std::ranges::find_if(all, [&](const auto& other) {
      return (*other.first)["losses"] == v["losses"] && (*other.first)["gradient_norms"] == v["gradient_norms"];
    });
    if (known == all.end()) {
      all.emplace_back(&v, std::vector<std::string>{text_at(v, "name")});
    } else {
      known->second.push_back(text_at(v, "name"));
    }
  }
  const std::string name = training_loss_name(ablation);
  std::string tables;
  for (const auto& [v, names] : all) {
    HtmlTable table({{"step"}, {name}, {"gradient norm"}});
    for (std::size_t step = 0; step < (*v)["losses"].size(); ++step) {
      table.add({std::to_string(step + 1), (*v)["losses"][step].dump(), (*v)["gradient_norms"][step].dump()});
    }
    tables += concat("<details", tables.empty() ? " open" : "", "><summary>", html(settings_text(names, ran.size())), "</summary>\n",
                     table.html(), "</details>\n");
  }
  return tables.empty()
             ? ""
             : "<h2>Losses</h2>\n" +
                   paragraph(concat("Nats per ", counted == Counted::pictures ? "picture" : "target token", ": the ", name, ".")) + tables;
}

}  // namespace

std::string ablation_page(const Json& ablation) {
  const std::vector<Json> ran = those_that_ran(ablation["variants"]);
  const Counted counted = ablation.value("counted", "") == "pictures" ? Counted::pictures : Counted::target_tokens;
  return html_text({.title = text_at(ablation, "recipe") + " on " + text_at(ablation, "device"),
                    .body = answer_of(ablation) + times_section(ran) + gains_section(ran, counted) +
                            settings_section(ablation["variants"], counted) + adjustments_section(ran) + gemms_section(ran) +
                            losses_section(ablation, ran, counted)});
}

}  // namespace tilewave
