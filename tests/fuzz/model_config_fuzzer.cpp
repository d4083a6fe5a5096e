// A config.json of Hugging Face's is refused with a sentence, or makes a recipe that is valid, reads back from its text, and whose own
// config.json makes the same model. An input is such a file, or what is changed in a small GPT-2's or Llama's: a fuzzer finds no whole one
// by itself.
#include <nlohmann/json.hpp>

#include "models/exchange/gpt2_config.h"
#include "models/exchange/import_config.h"
#include "models/exchange/llama_config.h"
#include "tests/fuzz/fuzz.h"

using namespace tilewave;

namespace {

ImportedConfig import_text(const std::string& text) {
  return import_config(file_of(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

void import_and_back(const std::string& text) {
  read_or_refuse([&] {
    const Recipe recipe = import_text(text).recipe;
    must(differences(recipe, parse_recipe({.source = "fuzz.toml", .text = to_toml(recipe)})).empty(), "a recipe reads back");
    const bool llama = recipe.model.norm_kind == NormKind::rms_norm;
    const std::string own = llama ? llama_config(recipe, DType::f32) : gpt2_config(recipe, DType::f32);
    must(import_text(own).recipe.model == recipe.model, "its own config.json makes the same model");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string text(data, data + bytes);
  import_and_back(text);
  const nlohmann::json change = nlohmann::json::parse(text, nullptr, false);
  if (!change.is_object()) return 0;
  for (nlohmann::json file :
       {nlohmann::json{{"model_type", "gpt2"}, {"n_embd", 16}, {"n_head", 2}, {"n_layer", 2}, {"n_positions", 12}, {"vocab_size", 37}},
        nlohmann::json{{"model_type", "llama"},
                       {"hidden_size", 16},
                       {"intermediate_size", 24},
                       {"max_position_embeddings", 12},
                       {"num_attention_heads", 2},
                       {"num_hidden_layers", 2},
                       {"num_key_value_heads", 1},
                       {"vocab_size", 37}}}) {
    file.merge_patch(change);
    import_and_back(file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return 0;
}
