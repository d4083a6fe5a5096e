#include "models/exchange/config_fields.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/io/file.h"

namespace tilewave {
namespace {

// Names, places, generation, initial values, heads for other tasks: nothing of the forward pass.
constexpr auto kHarmless = std::to_array<std::string_view>({
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_name_or_path",
    "attn_implementation",
    "bos_token_id",
    "chunk_size_feed_forward",
    "dtype",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "label2id",
    "num_labels",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "pad_token_id",
    "pretraining_tp",
    "prefix",
    "problem_type",
    "reorder_and_upcast_attn",
    "return_dict",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "tokenizer_class",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "use_bfloat16",
    "use_cache",
});

}  // namespace

std::string field_text(const nlohmann::ordered_json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  return printable(value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

const ConfigFields::Json* ConfigFields::take(const std::string& key) {
  const auto found = object_.find(key);
  if (found == object_.end()) return nullptr;
  taken_.insert(key);
  return &*found;
}

std::int64_t ConfigFields::count(const std::string& key, std::int64_t fallback, std::int64_t most) {
  const Json* value = take(key);
  if (value == nullptr || value->is_null()) return fallback;
  if (!value->is_number_integer() || *value < 1 || *value > most) refuse(key, *value, "it is a whole number from 1 to ", most, ".");
  return value->get<std::int64_t>();
}

double ConfigFields::fraction(const std::string& key, double fallback) {
  const Json* value = take(key);
  if (value == nullptr) return fallback;
  if (!value->is_number() || !(value->get<double>() >= 0.0 && value->get<double>() < 1.0)) refuse(key, *value, "it is a fraction below 1.");
  return value->get<double>();
}

double ConfigFields::positive(const std::string& key, double fallback) {
  const Json* value = take(key);
  if (value == nullptr || value->is_null()) return fallback;
  const bool holds = value->is_number() && value->get<double>() > 0.0 && std::isfinite(value->get<double>());
  if (!holds) refuse(key, *value, "it is a number above 0.");
  return value->get<double>();
}

bool ConfigFields::flag(const std::string& key, bool fallback) {
  const Json* value = take(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) refuse(key, *value, "it is true or false.");
  return value->get<bool>();
}

std::string ConfigFields::word(const std::string& key, const std::string& fallback) {
  const Json* value = take(key);
  if (value == nullptr || value->is_null()) return fallback;
  if (!value->is_string()) refuse(key, *value, "it is a word.");
  return value->get<std::string>();
}

void ConfigFields::must_be(const std::string& key, const Json& only, std::string_view why) {
  const Json* value = take(key);
  if (value != nullptr && *value != only) refuse(key, *value, "tilewave has ", only.dump(), " alone: ", why, ".");
}

ConfigFields::Sorted ConfigFields::sorted() const {
  Sorted result;
  for (const auto& [key, value] : object_.items()) {
    if (taken_.contains(key)) {
      result.used.push_back(key);
    } else if (std::ranges::find(kHarmless, key) != kHarmless.end()) {
      result.harmless.push_back(key);
    } else {
      refuse(key, value, "tilewave does not know this field, which may change the model; take it out if it changes nothing.");
    }
  }
  return result;
}

std::string ConfigFields::printable_name(const std::string& key) const {
  return printable(within_.empty() ? key : concat(within_, ".", key));
}

}  // namespace tilewave
