// tilewave guidelines FILE: what each guideline was worth, from stored ablations: README's table, with --wide the tables of
// docs/use/guidelines.md, with --plot a picture. FILE names each guideline with the guide's claim, which variants of which ablation.json
// beside it hold its figures, and the command that measures the two beside each other; every figure is computed from those.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/options/command.h"
#include "app/text/plotter.h"
#include "framework/io/file.h"
#include "framework/io/json_fault.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kMaxBytes = std::int64_t{64} << 20;

struct GuidelinesArguments {
  fs::path path;
  bool wide = false, plot = false;
};

Json read_json(const fs::path& path) {
  const Json json = Json::parse(read_file(path, kMaxBytes), nullptr, false);
  TW_CHECK_INPUT(!json.is_discarded(), path.string(), " is no JSON.");
  return json;
}

const Json& variant_named(const Json& ablation, const std::string& name) {
  for (const Json& variant : ablation.at("variants")) {
    if (variant.at("name") == name && variant.at("ran").get<bool>()) return variant;
  }
  throw InputError(concat("no variant \"", name, "\" of ", ablation.at("recipe").get<std::string>(), " ran."));
}

std::string text_of(const Json& row, const char* key) {
  TW_CHECK_INPUT(row.contains(key) && row[key].is_string(), "a row lacks \"", key, "\", a string.");
  return row[key];
}

// Which fields of an ablation hold a step's time and its GEMMs', or what was predicted of them.
struct Times {
  const char* step;
  const char* gemm;
};
constexpr Times kMeasured = {.step = "step_us", .gemm = "time_us"}, kPredicted = {.step = "step_predicted_us", .gemm = "predicted_us"};

// Seconds per real target token of the whole step, and of its GEMMs in layers whose name ends in `layer`.
struct PerToken {
  double step, gemms;
};
PerToken per_token(const Json& variant, const std::string& layer, const Times& times) {
  double us = 0.0;
  for (const Json& one : variant.at("gemms")) {
    if (one.at("layer").get<std::string>().ends_with(layer)) us += one.at(times.gemm).get<double>();
  }
  TW_CHECK_INPUT(us > 0.0, "no GEMM's layer ends in \"", layer, "\".");
  const double tokens = variant.at("target_tokens").get<double>();
  return {.step = variant.at(times.step).get<double>() / tokens, .gemms = us / tokens};
}

// "+1.2 %" or "2.4x"; nothing where nothing was measured.
struct Gain {
  std::string step, gemms;
};

std::string gain_text(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, ratio >= 2.0 ? "%.1fx" : "%+.1f %%", ratio >= 2.0 ? ratio : 100.0 * (ratio - 1.0));
  return text;
}

// A row of the file with what its ablation says.
struct Guideline {
  std::string name, change, says, claim, remark, command;
  Gain predicted, measured, library;
};

Gain gain_of(const Json& row, const char* engine, const Json& ablation, const Times& times) {
  if (!row.contains(engine)) return {};
  const std::string layer = text_of(row, "layer");
  const PerToken from = per_token(variant_named(ablation, text_of(row[engine], "from")), layer, times);
  const PerToken to = per_token(variant_named(ablation, text_of(row[engine], "to")), layer, times);
  return {.step = gain_text(from.step / to.step), .gemms = gain_text(from.gemms / to.gemms)};
}

std::vector<Guideline> read_guidelines(const fs::path& path) {
  const Json file = read_json(path);
  TW_CHECK_INPUT(file.is_object() && file.contains("rows") && file["rows"].is_array(), path.string(), " has no \"rows\".");
  std::map<std::string, Json> ablations;
  std::vector<Guideline> guidelines;
  for (const Json& row : file["rows"]) {
    const auto [at, fresh] = ablations.try_emplace(text_of(row, "ablation"));
    if (fresh) at->second = read_json(path.parent_path() / at->first);
    guidelines.push_back({.name = text_of(row, "guideline"),
                          .change = text_of(row, "change"),
                          .says = text_of(row, "says"),
                          .claim = text_of(row, "claim"),
                          .remark = text_of(row, "remark"),
                          .command = text_of(row, "command"),
                          .predicted = gain_of(row, "in_house", at->second, kPredicted),
                          .measured = gain_of(row, "in_house", at->second, kMeasured),
                          .library = gain_of(row, "cublaslt", at->second, kMeasured)});
  }
  return guidelines;
}

void print_line(const std::vector<std::string>& cells) {
  for (const std::string& cell : cells) std::cout << "| " << cell << ' ';
  std::cout << "|\n";
}

void print_heading(const std::vector<std::string>& cells) {
  print_line(cells);
  for (std::size_t i = 0; i < cells.size(); ++i) std::cout << "|---";
  std::cout << "|\n";
}

// "+1.2 % (+10.9 %)"
std::string both(const Gain& gain) { return gain.step.empty() ? "" : concat(gain.step, " (", gain.gemms, ')'); }

void print_short(const std::vector<Guideline>& guidelines) {
  print_heading({"guideline", "change", "the guide says", "predicted", "tilewave", "cuBLASLt"});
  for (const Guideline& one : guidelines)
    print_line({one.name, one.change, one.says, both(one.predicted), both(one.measured), both(one.library)});
}

void print_wide(const std::vector<Guideline>& guidelines) {
  print_heading({"guideline", "change", "predicted, step", "GEMMs", "tilewave, step", "GEMMs", "cuBLASLt, step", "GEMMs"});
  for (const Guideline& one : guidelines) {
    print_line({one.name, one.change, one.predicted.step, one.predicted.gemms, one.measured.step, one.measured.gemms, one.library.step,
                one.library.gemms});
  }
  std::cout << '\n';
  print_heading({"guideline", "the guide says", "what to know", "command"});
  for (const Guideline& one : guidelines) print_line({one.name, one.claim, one.remark, concat('`', one.command, '`')});
}

int run(const GuidelinesArguments& options) {
  const std::vector<Guideline> guidelines = read_guidelines(options.path);
  if (options.plot) return draw(options.path, options.path.stem().string() + ".png") ? 0 : 1;
  options.wide ? print_wide(guidelines) : print_short(guidelines);
  return 0;
}

}  // namespace

Command add_guidelines(CLI::App& program) {
  CLI::App* command = program.add_subcommand("guidelines", "what each guideline was worth, as a table, from stored ablations");
  const auto options = std::make_shared<GuidelinesArguments>();
  command->add_option("file", options->path, "docs/results/guidelines-h200.json, or one like it")->required();
  CLI::Option* wide = command->add_flag("--wide", options->wide, "step and GEMMs apart, what to know, and the commands that measure it");
  command->add_flag("--plot", options->plot, "draw predicted beside measured into a .png beside the file instead")->excludes(wide);
  return {command, [options] {
            try {
              return run(*options);
            } catch (const Json::exception& error) {
              throw InputError(concat(options->path.string(),
                                      ", or an ablation that it names, is not as tilewave ablate writes it: ", json_fault(error), "."));
            }
          }};
}

}  // namespace tilewave
