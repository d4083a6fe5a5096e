// config.json of Hugging Face's GPT-2 and a model of the same mathematics.
#pragma once

#include <string>

#include "models/exchange/config_fields.h"
#include "models/exchange/text_ends.h"
#include "models/recipe/recipe.h"

namespace tilewave {

ModelConfig gpt2_model(ConfigFields& fields);

// The text of config.json. InputError where the recipe's model is none of GPT-2's form.
std::string gpt2_config(const Recipe& recipe, DType weights, const TextEnds& ends = {});

}  // namespace tilewave
