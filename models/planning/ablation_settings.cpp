// Switches from text, combinations of their values, and sizes for a CPU.
#include "models/planning/ablation_settings.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "framework/recipe/nearest.h"
#include "kernels/core/error.h"
#include "kernels/gemm/tiling.h"
#include "models/recipe/foreign_names.h"
#include "models/recipe/recipe.h"

namespace tilewave {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string full_key(const std::string& key) {
  Recipe recipe;
  const std::vector<Section> sections = sections_of(recipe);
  const std::size_t dot = key.find('.');
  const std::string section = dot == std::string::npos ? "" : key.substr(0, dot),
                    name = dot == std::string::npos ? key : key.substr(dot + 1);
  for (const Section& known : sections) {
    if (section.empty() ? known.name != "guidelines" && known.name != "gemm" : known.name != section) continue;
    for (const Field& field : known.fields) {
      if (field.name == name) return concat(known.name, ".", name);
    }
  }
  const MeantKey meant = nearest_key(section, name, sections, foreign_names().keys);
  throw InputError(concat("--switch ", key, ": there is no such key", section.empty() ? " in [guidelines] or [gemm]" : "",
                          meant.key.empty() ? std::string("; docs/use/recipes.md lists them.") : concat("; did you mean ", meant.key, "?"),
                          meant.note.empty() ? "" : " ", meant.note));
}

std::string short_key(const std::string& key) {
  return key.starts_with("guidelines.") || key.starts_with("gemm.") ? key.substr(key.find('.') + 1) : key;
}

Switch parse_switch(const std::string& text) {
  const std::size_t equals = text.find('=');
  TW_CHECK_INPUT(equals != std::string::npos && equals > 0 && equals + 1 < text.size(), "--switch ", text,
                 ": write key=value,value, as in pad_vocabulary_to=1,8.");
  Switch one{.keys = {}, .values = split(std::string_view(text).substr(equals + 1), ',')};
  for (const std::string& key : split(std::string_view(text).substr(0, equals), '+')) one.keys.push_back(full_key(key));
  for (const std::string& value : one.values) {
    TW_CHECK_INPUT(!value.empty() && std::count(one.values.begin(), one.values.end(), value) == 1, "--switch ", text,
                   ": every value must be there, and be there once.");
  }
  return one;
}

std::vector<Setting> guideline_settings(const ModelConfig& model) {
  struct Guideline {
    const char *key, *off, *on;
    bool read = true;  // by the model
  };
  const bool tokens = !sees_pictures(model);
  std::vector<Guideline> guidelines = {{.key = "guidelines.pad_vocabulary_to", .off = "1", .on = "8", .read = !classifies(model)},
                                       {.key = "guidelines.batch_multiple_of", .off = "1", .on = "8", .read = !captions(model)},
                                       {.key = "guidelines.wave_free_batch", .off = "off", .on = "nearest", .read = tokens},
                                       {.key = "guidelines.row_pitch", .off = "packed", .on = "aligned"}};
  std::erase_if(guidelines, [](const Guideline& one) { return !one.read; });
  const auto overrides = [&](auto&& is_on) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < guidelines.size(); ++i) {
      all.push_back(concat(guidelines[i].key, "=", is_on(i) ? guidelines[i].on : guidelines[i].off));
    }
    return all;
  };
  std::vector<Setting> settings = {{.name = "none", .overrides = overrides([](std::size_t) { return false; })}};
  for (std::size_t one = 0; one < guidelines.size(); ++one) {
    settings.push_back({.name = short_key(concat(guidelines[one].key, "=", guidelines[one].on)),
                        .overrides = overrides([&](std::size_t i) { return i == one; })});
  }
  settings.push_back({.name = "all", .overrides = overrides([](std::size_t) { return true; })});
  for (Setting& setting : settings) setting.asked_for = false;
  return settings;
}

// An eighth or a sixteenth of a size, as far beyond a multiple of 8 as the size is.
std::int64_t smaller(std::int64_t size, std::int64_t divisor) {
  const std::int64_t beyond = size % 8;
  const std::int64_t whole = beyond == 0 ? round_up(size / divisor, 8) : size / divisor / 8 * 8;
  return std::min(size, std::max<std::int64_t>(whole, 8) + beyond);
}

ToyRecipe in_full_precision(ToyRecipe toy) {
  if (toy.recipe.run.precision != Precision::fp64 && toy.recipe.run.precision != Precision::fp32) {
    toy.changes.push_back(concat("run.precision = fp32, where the recipe says ", name_of(toy.recipe.run.precision)));
    toy.recipe.run.precision = Precision::fp32;
  }
  return toy;
}

}  // namespace

std::vector<Switch> parse_switches(std::string_view text) {
  std::vector<Switch> switches;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) switches.push_back(parse_switch(word));
  std::vector<std::string> keys;
  for (const Switch& one : switches) keys.insert(keys.end(), one.keys.begin(), one.keys.end());
  for (const std::string& key : keys) {
    TW_CHECK_INPUT(std::count(keys.begin(), keys.end(), key) == 1, "--switch ", short_key(key),
                   ": a key is switched once, with all of its values, as in pad_vocabulary_to=1,8,64.");
  }
  return switches;
}

std::vector<Setting> settings_of(const std::vector<Switch>& switches, const ModelConfig& model) {
  if (switches.empty()) return guideline_settings(model);
  std::size_t count = 1;
  for (const Switch& one : switches) {
    count *= one.values.size();
    TW_CHECK_INPUT(count <= kMaxSettings, "the switches make more than ", kMaxSettings, " combinations; leave out some of their values.");
  }
  const std::size_t others = count / switches.front().values.size();  // combinations of the other switches
  std::vector<Setting> settings;
  for (std::size_t index = 0; index < count; ++index) {
    Setting setting{.name = {}, .overrides = {}, .baseline = index % others};
    std::size_t rest = count;
    for (const Switch& one : switches) {
      rest /= one.values.size();
      const std::string& value = one.values[index / rest % one.values.size()];
      std::string keys;
      for (const std::string& key : one.keys) {
        keys.append(keys.empty() ? "" : "+").append(short_key(key));
        setting.overrides.push_back(std::string(key).append("=").append(value));
      }
      setting.name.append(setting.name.empty() ? "" : " ").append(keys).append("=").append(value);
    }
    settings.push_back(std::move(setting));
  }
  return settings;
}

Recipe with_setting(const Recipe& recipe, const Setting& setting) {
  Recipe result = parse_recipe({.source = recipe.name, .text = to_toml(recipe)}, setting.overrides);
  result.name = recipe.name;
  return result;
}

ToyRecipe toy_sized(const Recipe& recipe) {
  constexpr std::int64_t kMaxLayers = 2, kHeadFeatures = 64;
  ToyRecipe toy{.recipe = recipe, .changes = {}};
  const auto change = [&](const char* key, std::int64_t& value, std::int64_t to) {
    if (value != to) toy.changes.push_back(concat(key, " = ", to, ", where the recipe says ", value));
    value = to;
  };
  ModelConfig& model = toy.recipe.model;
  change("model.d_model", model.d_model, round_up(std::max<std::int64_t>(model.d_model / 8, kHeadFeatures), kHeadFeatures));
  change("model.heads", model.heads, model.d_model / kHeadFeatures);
  if (model.kv_heads > 0) change("model.kv_heads", model.kv_heads, 1);
  if (model.head_size > 0) change("model.head_size", model.head_size, kHeadFeatures);
  change("model.d_ff", model.d_ff, smaller(model.d_ff, 8));
  change("model.encoder_layers", model.encoder_layers, std::min(model.encoder_layers, kMaxLayers));
  BatchConfig& batch = toy.recipe.batch;
  if (sees_pictures(model)) {
    change("batch.pictures", batch.pictures, smaller(batch.pictures, 8));  // captions keep their target rows
    return in_full_precision(std::move(toy));
  }
  change("model.decoder_layers", model.decoder_layers, std::min(model.decoder_layers, kMaxLayers));
  if (recipe.data.kind == DataKind::synthetic) change("model.vocabulary", model.vocabulary, smaller(model.vocabulary, 16));
  if (batch.source_tokens > 0) change("batch.source_tokens", batch.source_tokens, smaller(batch.source_tokens, 8));
  change("batch.target_tokens", batch.target_tokens, smaller(batch.target_tokens, 8));
  const std::int64_t rows = batch.source_tokens > 0 ? std::min(batch.source_tokens, batch.target_tokens) : batch.target_tokens;
  change("batch.sequence", batch.sequence, std::min(batch.sequence, rows));
  return in_full_precision(std::move(toy));
}

}  // namespace tilewave
