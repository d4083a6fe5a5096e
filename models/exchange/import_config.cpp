#include "models/exchange/import_config.h"

#include <algorithm>
#include <system_error>

#include "framework/data/tokenizer.h"
#include "framework/io/file.h"
#include "models/exchange/gpt2_config.h"
#include "models/exchange/llama_config.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxConfigBytes = 16 << 20;
constexpr std::int64_t kMaxImportedSequence = 4096;  // a recipe's, of models with more positions

ImportedConfig imported_model(ConfigFields& fields) {
  const ConfigFields::Json* type = fields.take("model_type");
  TW_CHECK_INPUT(type != nullptr && type->is_string(), fields.file(), ": has no model_type, so it is no config.json of transformers.");
  ImportedConfig imported;
  if (*type == "gpt2") {
    imported.family = "GPT-2";
    imported.recipe.model = gpt2_model(fields);
    return imported;
  }
  for (const LlamaFamily family : {LlamaFamily::llama, LlamaFamily::qwen2, LlamaFamily::qwen3}) {
    if (*type != model_type_of(family)) continue;
    imported.family = name_of(family);
    imported.recipe.model = llama_model(fields, family);
    return imported;
  }
  fields.refuse("model_type", *type, R"(tilewave imports "gpt2", "llama", "qwen2" and "qwen3"; it has no model of this kind.)");
}

// A model with its tokenizer is trained on text, one without on ids.
void import_tokenizer(const std::filesystem::path& folder, ImportedConfig& imported) {
  DataConfig& data = imported.recipe.data;
  data.kind = DataKind::tokens;
  if (!is_there(folder / kTokenizerJson)) {
    imported.tokenizer = concat("there is no ", kTokenizerJson, " beside it: data.source names token files of its tokenizer");
    return;
  }
  try {
    const Tokenizer tokenizer = Tokenizer::load(folder / kTokenizerJson);
    TW_CHECK_INPUT(tokenizer.vocabulary() <= imported.recipe.model.vocabulary, "it has ", tokenizer.vocabulary(),
                   " ids, more than the model's ", imported.recipe.model.vocabulary, ".");
    data.kind = DataKind::text;
    data.tokenizer = folder.string();
    imported.tokenizer = concat("text becomes ids by its ", kTokenizerJson, ", ", tokenizer.vocabulary(), " of them");
  } catch (const InputError& refusal) {
    imported.tokenizer = concat("its ", kTokenizerJson, " is not taken: ", refusal.what(), " data.source names token files");
  }
}

}  // namespace

ImportedConfig import_config(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  const std::filesystem::path file = folder ? path / "config.json" : path;
  TW_CHECK_INPUT(!folder || is_there(file), path.string(), ": holds no config.json; name a folder that save_pretrained() has written.");
  const auto config = ConfigFields::Json::parse(read_file(file, kMaxConfigBytes), nullptr, false);
  TW_CHECK_INPUT(config.is_object(), file.string(), ": is no JSON object; copy it again.");
  ConfigFields fields(config, file.string());
  ImportedConfig imported = imported_model(fields);
  ConfigFields::Sorted sorted = fields.sorted();
  imported.used = std::move(sorted.used);
  imported.harmless = std::move(sorted.harmless);

  Recipe& recipe = imported.recipe;
  const std::filesystem::path named = std::filesystem::absolute(file).lexically_normal();
  recipe.name = folder ? named.parent_path().filename().string() : named.stem().string();
  const std::filesystem::path beside = folder ? path : path.parent_path();
  import_tokenizer(beside.empty() ? "." : beside, imported);
  const std::int64_t sequence = std::min(recipe.model.max_positions, kMaxImportedSequence);
  recipe.batch = {.source_tokens = 0, .target_tokens = std::max<std::int64_t>(2048, sequence), .sequence = sequence};
  recipe.optimizer.learning_rate = 5e-5;
  recipe.schedule = {.kind = ScheduleKind::cosine, .warmup_steps = 100, .decay_steps = 0};
  validate(recipe);
  return imported;
}

}  // namespace tilewave
