#include "models/exchange/import_config.h"

#include <algorithm>
#include <system_error>

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
  recipe.data.kind = DataKind::tokens;
  const std::int64_t sequence = std::min(recipe.model.max_positions, kMaxImportedSequence);
  recipe.batch = {.source_tokens = 0, .target_tokens = std::max<std::int64_t>(2048, sequence), .sequence = sequence};
  recipe.optimizer.learning_rate = 5e-5;
  recipe.schedule = {.kind = ScheduleKind::cosine, .warmup_steps = 100, .decay_steps = 0};
  validate(recipe);
  return imported;
}

}  // namespace tilewave
