// tilewave guidelines FILE: the table of the guidelines from stored ablations, as Markdown. FILE names each guideline with the guide's
// claim, which variants of which ablation.json beside it hold its figures, and the command that measures the two beside each other; every
// figure in the table is computed from those.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/options/command.h"
#include "framework/io/file.h"
#include "framework/io/json_fault.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kMaxBytes = std::int64_t{64} << 20;

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

// Seconds a real target token of the GEMMs in layers whose name ends in `layer`; of the whole step where it is empty.
double seconds_a_token(const Json& variant, const std::string& layer, const char* step, const char* gemm) {
  double us = layer.empty() ? variant.at(step).get<double>() : 0.0;
  if (!layer.empty()) {
    for (const Json& one : variant.at("gemms")) {
      if (one.at("layer").get<std::string>().ends_with(layer)) us += one.at(gemm).get<double>();
    }
    TW_CHECK_INPUT(us > 0.0, "no GEMM's layer ends in \"", layer, "\".");
  }
  return us / variant.at("target_tokens").get<double>();
}

std::string percent(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, ratio >= 2.0 ? "%.1fx" : "%+.1f %%", ratio >= 2.0 ? ratio : 100.0 * (ratio - 1.0));
  return text;
}

// "step +1.2 %, GEMMs 2.4x"
std::string gain(const Json& from, const Json& to, const std::string& layer, const char* step, const char* gemm) {
  const auto ratio = [&](const std::string& of) { return seconds_a_token(from, of, step, gemm) / seconds_a_token(to, of, step, gemm); };
  return concat("step ", percent(ratio("")), ", GEMMs ", percent(ratio(layer)));
}

std::string text_of(const Json& row, const char* key) {
  TW_CHECK_INPUT(row.contains(key) && row[key].is_string(), "a row lacks \"", key, "\", a string.");
  return row[key];
}

int print_guidelines(const fs::path& path) {
  const Json file = read_json(path);
  TW_CHECK_INPUT(file.is_object() && file.contains("rows") && file["rows"].is_array(), path.string(), " has no \"rows\".");
  std::map<std::string, Json> ablations;
  std::cout << "| guideline | the guide says | predicted | tilewave's GEMMs | cuBLASLt | what to know | command "
               "|\n|---|---|---|---|---|---|---|\n";
  for (const Json& row : file["rows"]) {
    const std::string name = text_of(row, "ablation"), layer = text_of(row, "layer");
    if (!ablations.contains(name)) ablations[name] = read_json(path.parent_path() / name);
    const auto cell = [&](const char* engine, const char* step, const char* gemm) -> std::string {
      if (!row.contains(engine)) return "";
      const Json& pair = row[engine];
      return gain(variant_named(ablations[name], text_of(pair, "from")), variant_named(ablations[name], text_of(pair, "to")), layer, step,
                  gemm);
    };
    std::cout << "| " << text_of(row, "guideline") << " | " << text_of(row, "claim") << " | "
              << cell("in_house", "step_predicted_us", "predicted_us") << " | " << cell("in_house", "step_us", "time_us") << " | "
              << cell("cublaslt", "step_us", "time_us") << " | " << text_of(row, "remark") << " | `" << text_of(row, "command") << "` |\n";
  }
  return 0;
}

}  // namespace

Command add_guidelines(CLI::App& program) {
  CLI::App* command = program.add_subcommand("guidelines", "what each guideline was worth, as a table, from stored ablations");
  const auto path = std::make_shared<fs::path>();
  command->add_option("file", *path, "docs/results/guidelines-h200.json, or one like it")->required();
  return {command, [path] {
            try {
              return print_guidelines(*path);
            } catch (const Json::exception& error) {
              throw InputError(
                  concat(path->string(), ", or an ablation that it names, is not as tilewave ablate writes it: ", json_fault(error), "."));
            }
          }};
}

}  // namespace tilewave
