// Recipes whole: what they refuse, what they resolve to, and that the files and documents beside them keep their word.
#include "models/recipe/recipe.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iomanip>
#include <limits>
#include <map>
#include <random>
#include <sstream>
#include <unistd.h>

#include "framework/recipe/reference.h"
#include "kernels/core/error.h"
#include "kernels/gemm/catalog.h"
#include "models/recipe/foreign_names.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDecoderOnlyText =
    "[model]\narchitecture = \"decoder_only\"\nencoder_layers = 0\nvocabulary = 260\n[batch]\nsource_tokens = 0\n"
    "[data]\nkind = \"text\"\ntokenizer = \"bytes\"\n";

Recipe parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_recipe({.source = "recipes/r.toml", .text = text}, overrides);
}

template <class Fn>
std::string message_of(Fn&& fn) {
  try {
    fn();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return message_of([&] { parse(text, overrides); });
}

std::string with(const std::string& section, const std::string& line) { return "[" + section + "]\n" + line + "\n"; }

fs::path beside_tests(const std::string& name) { return test_environment().data / ".." / name; }

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Recipe, DefaultsAreValid) {
  const Recipe recipe = parse("[model]\n");
  EXPECT_EQ(recipe.name, "r");
  Recipe defaults;
  defaults.name = "r";
  EXPECT_EQ(recipe, defaults);
}

TEST(Recipe, CommandLineGoesBeforeRecipeGoesBeforeDefault) {
  const std::string text = with("model", "heads = 8\nd_ff = 256");
  EXPECT_EQ(parse("[model]\n").model.heads, 4);
  EXPECT_EQ(parse(text).model.heads, 8);
  const Recipe recipe = parse(text, {"model.heads=2", "run.precision=fp64", "model.heads=16"});
  EXPECT_EQ(recipe.model.heads, 16);
  EXPECT_EQ(recipe.model.d_ff, 256);
  EXPECT_EQ(recipe.run.precision, Precision::fp64);
}

TEST(Recipe, OverridesCanMendARecipe) {
  EXPECT_NE(refusal(with("model", "heads = 3")), "no error");
  EXPECT_EQ(refusal(with("model", "heads = 3"), {"model.d_model=129"}), "no error");
}

TEST(Recipe, KnowsOtherFrameworksNames) {
  EXPECT_EQ(refusal(with("model", "n_embd = 768")), "recipes/r.toml:2:1: unknown key model.n_embd; did you mean model.d_model?");
  EXPECT_EQ(refusal(with("training", "lr = 1")),
            "recipes/r.toml:1:2: unknown section [training]; there are model, data, batch, "
            "optimizer, schedule, run, gemm, guidelines and ablation.");
  EXPECT_EQ(refusal("[run]\n", {"max_iters=5"}), "--set \"max_iters=5\": unknown key max_iters; did you mean run.steps?");
}

std::string plain(std::string_view name) {
  std::string result(name);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '-' ? '_' : c;
  return result;
}

TEST(Recipe, ForeignKeysNameKeysOfOursAndAreNone) {
  Recipe recipe;
  std::vector<std::string> keys, names;
  for (const Section& section : sections_of(recipe)) {
    for (const Field& field : section.fields) {
      keys.push_back(std::string(section.name) + "." + std::string(field.name));
      names.emplace_back(field.name);
    }
  }
  std::vector<std::string> all;
  for (const Alias& alias : foreign_names().keys) {
    const bool known = std::find(keys.begin(), keys.end(), alias.ours) != keys.end();
    EXPECT_TRUE(known || (alias.ours.empty() && !alias.note.empty())) << alias.theirs << " -> " << alias.ours;
    EXPECT_TRUE(alias.note.empty() || alias.note.ends_with('.')) << alias.note;
    for (const std::string_view theirs : listed_names(alias.theirs)) {
      EXPECT_EQ(theirs, plain(theirs)) << "is looked up in lower case with _ for -";
      EXPECT_EQ(std::find(names.begin(), names.end(), theirs), names.end()) << theirs << " is a key of ours";
      EXPECT_EQ(std::find(all.begin(), all.end(), theirs), all.end()) << theirs << " stands twice";
      all.emplace_back(theirs);
    }
  }
  EXPECT_GE(all.size(), 600u);
}

// Keys that a note or an advice names are keys of ours, too.
TEST(Recipe, ForeignNamesSpeakOfWhatThereIs) {
  Recipe recipe;
  const std::vector<Section> sections = sections_of(recipe);
  const auto check_keys = [&](std::string_view text) {
    for (const Section& section : sections) {
      const std::string opening = std::string(section.name) + ".";
      for (std::size_t at = text.find(opening); at != std::string_view::npos; at = text.find(opening, at + 1)) {
        if (at > 0 && text[at - 1] != ' ' && text[at - 1] != '(') continue;
        const std::size_t begin = at + opening.size();
        const std::string_view name = text.substr(begin, text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789", begin) - begin);
        const bool known = name.empty() || std::any_of(section.fields.begin(), section.fields.end(),
                                                       [&](const Field& field) { return field.name == name; });
        EXPECT_TRUE(known) << opening << name << " in: " << text;
      }
    }
  };
  for (const Alias& alias : foreign_names().keys) check_keys(alias.note);
  std::map<std::string_view, std::vector<std::string>> words;
  for (const ForeignValue& value : foreign_names().values) {
    check_keys(value.advice);
    EXPECT_TRUE(value.advice.ends_with('.')) << value.advice;
    const std::size_t dot = value.key.find('.');
    const Field* field = nullptr;
    for (const Section& section : sections) {
      for (const Field& one : section.fields) {
        if (section.name == value.key.substr(0, dot) && one.name == value.key.substr(dot + 1)) field = &one;
      }
    }
    ASSERT_NE(field, nullptr) << value.key;
    const auto* choice = std::get_if<Choice>(&field->member);
    const std::vector<std::string_view> known =
        choice != nullptr ? choice->names : std::vector<std::string_view>(field->key.words.begin(), field->key.words.end());
    ASSERT_FALSE(known.empty()) << value.key << " has no words to choose from";
    const bool says_one = std::any_of(known.begin(), known.end(), [&](std::string_view name) {
      return value.advice.find("\"" + std::string(name) + "\"") != std::string_view::npos;
    });
    EXPECT_TRUE(says_one) << value.advice;
    for (const std::string_view theirs : listed_names(value.theirs)) {
      EXPECT_EQ(theirs, plain(theirs));
      EXPECT_EQ(std::find(known.begin(), known.end(), theirs), known.end()) << theirs << " is a word of ours";
      EXPECT_EQ(std::count(words[value.key].begin(), words[value.key].end(), theirs), 0) << theirs << " stands twice";
      words[value.key].emplace_back(theirs);
    }
  }
}

// From the configuration files and the option lists of those frameworks, beside the key that means the same here.
TEST(Recipe, EveryFrameworkIsUnderstood) {
  const struct {
    const char *theirs, *ours;
  } cases[] = {{"per_device_train_batch_size", "batch.target_tokens"},
               {"gradient_accumulation_steps", "batch.accumulate"},  // Hugging Face's Trainer
               {"num_train_epochs", "run.steps"},
               {"max_grad_norm", "optimizer.clip_norm"},
               {"warmup_ratio", "schedule.warmup_steps"},
               {"lr_scheduler_type", "schedule.kind"},
               {"adam_epsilon", "optimizer.epsilon"},
               {"save_total_limit", "run.keep"},
               {"label_smoothing_factor", "optimizer.label_smoothing"},
               {"eval_steps", "run.validate_every"},
               {"n_embd", "model.d_model"},
               {"n_inner", "model.d_ff"},
               {"attn_pdrop", "model.attention_dropout"},  // its config.json
               {"intermediate_size", "model.d_ff"},
               {"num_hidden_layers", "model.decoder_layers"},
               {"hidden_act", "model.activation"},
               {"max_position_embeddings", "model.max_positions"},
               {"vocab_size", "model.vocabulary"},
               {"rope_theta", "model.rope_base"},
               {"num_key_value_heads", "model.kv_heads"},
               {"head_dim", "model.head_size"},
               {"rms_norm_eps", "model.epsilon"},
               {"attention_bias", "model.biases"},
               {"original_max_position_embeddings", "model.rope_original_positions"},
               {"encoder-ffn-embed-dim", "model.d_ff"},
               {"max-tokens", "batch.target_tokens"},
               {"update-freq", "batch.accumulate"},  // fairseq
               {"share-all-embeddings", "model.tied"},
               {"max-update", "run.steps"},
               {"warmup-updates", "schedule.warmup_steps"},
               {"encoder-normalize-before", "model.norm"},
               {"adam-betas", "optimizer.beta1"},
               {"dim-emb", "model.d_model"},
               {"transformer-heads", "model.heads"},
               {"train-sets", "data.source"},  // Marian
               {"mini-batch", "batch.target_tokens"},
               {"max-length", "batch.sequence"},
               {"learn-rate", "optimizer.learning_rate"},
               {"lr-decay-inv-sqrt", "schedule.kind"},
               {"enc-depth", "model.encoder_layers"},
               {"tied-embeddings-all", "model.tied"},
               {"word_vec_size", "model.d_model"},
               {"rnn_size", "model.d_model"},
               {"transformer_ff", "model.d_ff"},  // OpenNMT-py
               {"accum_count", "batch.accumulate"},
               {"decay_method", "schedule.kind"},
               {"save_checkpoint_steps", "run.checkpoint_every"},
               {"block_size", "batch.sequence"},
               {"max_iters", "run.steps"},
               {"grad_clip", "optimizer.clip_norm"},  // nanoGPT
               {"lr_decay_iters", "schedule.decay_steps"},
               {"dtype", "run.precision"},
               {"input_bin", "data.source"},
               {"total_batch_size", "batch.target_tokens"},
               {"num_iterations", "run.steps"},  // llm.c
               {"val_loss_every", "run.validate_every"},
               {"tensorcores", "run.precision"},
               {"local_batch_size", "batch.target_tokens"},
               {"global_batch_size", "batch.target_tokens"},
               {"seq_len", "batch.sequence"},  // torchtitan
               {"max_norm", "optimizer.clip_norm"},
               {"mixed_precision_param", "run.precision"},
               {"decay_type", "schedule.kind"},
               {"ffn_hidden_size", "model.d_ff"},
               {"make_vocab_size_divisible_by", "guidelines.pad_vocabulary_to"},  // Megatron
               {"attn_dropout", "model.attention_dropout"},
               {"lr_scheduler", "schedule.kind"},
               {"grad_accum", "batch.accumulate"}};
  for (const auto& [theirs, ours] : cases) {
    const std::string said = refusal(with("model", std::string(theirs) + " = 1"));
    EXPECT_NE(said.find(concat("unknown key model.", theirs, "; did you mean ", ours, "?")), std::string::npos) << said;
  }
  for (const char* none :
       {"sliding_window", "attn_logit_softcapping", "alibi", "gradient_checkpointing", "wandb_project", "tensor_parallel_degree"}) {
    const std::string said = refusal(with("model", std::string(none) + " = 1"));
    EXPECT_NE(said.find(concat("unknown key model.", none, "; tilewave has no such key. ")), std::string::npos) << said;
  }
  EXPECT_TRUE(
      refusal(with("batch", "batch_size = 8"))
          .ends_with(
              "did you mean batch.target_tokens? It counts tokens, not sequences: write how many sequences times how long they are."));
  EXPECT_EQ(refusal(with("lr_scheduler", "warmup_steps = 1")),
            "recipes/r.toml:1:2: unknown section [lr_scheduler]; did you mean [schedule]?");
}

TEST(Recipe, ForeignValuesAreUnderstood) {
  const std::string gelu = refusal(with("model", "activation = \"gelu\""));
  EXPECT_EQ(gelu,
            "recipes/r.toml:2:14: model.activation is the string \"gelu\"; it must be \"relu\", \"gelu_tanh\", \"gelu_erf\", \"silu\", "
            "\"swiglu\", \"sigmoid\" or \"tanh\". What torch and Hugging Face call gelu is \"gelu_erf\"; their gelu_new, "
            "approximate=\"tanh\", is \"gelu_tanh\".");
  EXPECT_TRUE(refusal(with("model", "activation = gelu")).ends_with(gelu.substr(gelu.find("; it must be"))));
  EXPECT_TRUE(refusal(with("run", "precision = \"bfloat16\"")).ends_with(" Write \"bf16\"."));
  EXPECT_TRUE(refusal(with("run", "precision = 16")).ends_with(" Write \"fp16\"."));
  EXPECT_TRUE(refusal("[run]\n", {"run.precision=FP8"}).ends_with("\"bf16\" is the narrowest that keeps fp32's range."));
  EXPECT_TRUE(refusal(with("model", "norm = true")).ends_with(" Write \"pre\"."));
  EXPECT_TRUE(refusal(with("schedule", "kind = \"linear_decay\""))
                  .ends_with("Write \"linear\", which falls to schedule.min_learning_rate at schedule.decay_steps."));
  EXPECT_TRUE(refusal(with("schedule", "kind = \"inverse-sqrt\"")).ends_with(" Write \"inverse_square_root\"."));
}

// fp32 would make another number of these: 0, an infinity, 1, or one with fewer digits.
TEST(RecipeValidation, NumbersThatTheStepCannotHold) {
  const std::string says = " is no number of fp32, which run.precision = \"fp32\" computes it in: it must be ";
  const std::string instead = "; choose such a number, or run.precision = \"fp64\".";
  EXPECT_EQ(refusal(with("optimizer", "epsilon = 1e-46")), "optimizer.epsilon = 1e-46" + says + "from 1.1755e-38 to 3.4028e+38" + instead);
  EXPECT_EQ(refusal(with("optimizer", "learning_rate = 1e39")),
            "optimizer.learning_rate = 1e+39" + says + "0, or from 1.1755e-38 to 3.4028e+38" + instead);
  EXPECT_EQ(refusal(with("optimizer", "beta2 = 0.99999999")),
            "optimizer.beta2 = 0.99999999" + says + "at most 0.99999994, fp32's last number before 1" + instead);
  EXPECT_EQ(refusal(with("optimizer", "label_smoothing = 1e-39")),
            "optimizer.label_smoothing = 1e-39" + says + "0, or from 1.1755e-38 to 1.0" + instead);
  EXPECT_EQ(refusal("[run]\n", {"optimizer.weight_decay=1e-45", "run.precision=bf16"}),
            "optimizer.weight_decay = 1e-45 is no number of fp32, which run.precision = \"bf16\" computes it in: it must be 0, or from "
            "1.1755e-38 to 3.4028e+38" +
                instead);
  for (const char* held : {"epsilon = 1.1755e-38", "epsilon = 3.4028e+38", "learning_rate = 0", "beta1 = 0.0", "beta2 = 0.99999994"}) {
    EXPECT_EQ(refusal(with("optimizer", held)), "no error") << held;
  }
  for (const char* held : {"epsilon = 1e-300", "learning_rate = 1e39", "beta2 = 0.99999999999"}) {
    EXPECT_EQ(refusal(with("optimizer", held), {"run.precision=fp64"}), "no error") << held;
  }
}

// One rank sends nothing, and may have any value.
TEST(RecipeValidation, RanksDoNotRoundFp64) {
  const std::string bf16 = "run.gradient_reduction=bf16", fp64 = "run.precision=fp64", ranks = "run.ranks=2";
  for (const auto& held : {std::vector{bf16, fp64}, {bf16, ranks}, {fp64, ranks}, {bf16, ranks, "run.precision=fp16"}}) {
    EXPECT_EQ(refusal("[run]\n", held), "no error");
  }
  EXPECT_EQ(
      refusal("[run]\n", {bf16, fp64, ranks}),
      "run.gradient_reduction = \"bf16\" would round the gradients of run.precision = \"fp64\" to 8 bits between run.ranks = 2 ranks; "
      "set it to \"fp32\", which sums them as they are.");
}

// Every key with a fraction that there is, and that will be: the step's are held to fp32, those of the host alone are named here.
TEST(RecipeValidation, EveryFractionIsHeldToThePrecision) {
  const std::vector<std::string> host = {"guidelines.wave_limit",     "model.rope_base",  "model.rope_factor", "model.rope_low_frequency",
                                         "model.rope_high_frequency", "run.rank_timeout", "data.mean",         "data.deviation"};
  Recipe recipe;
  std::size_t held = 0;
  for (const Section& section : sections_of(recipe)) {
    for (const Field& field : section.fields) {
      if (!std::holds_alternative<double*>(field.member)) continue;
      const std::string key = concat(section.name, ".", field.name);
      const std::string said = refusal("[run]\n", {key + "=1e-46"});
      const bool refused = said.starts_with(key + " = 1e-46 is no number of fp32");
      EXPECT_NE(refused, std::find(host.begin(), host.end(), key) != host.end()) << said;
      held += refused ? 1 : 0;
    }
  }
  EXPECT_GE(held, 8u);
}

TEST(RecipeValidation, DropoutThatCannotBeDrawn) {
  for (const char* key : {"dropout", "attention_dropout"}) {
    for (const char* precision : {"fp32", "fp64"}) {
      const auto said = [&](const std::string& value) {
        return refusal(with("model", std::string(key) + " = " + value), {std::string("run.precision=") + precision});
      };
      EXPECT_NE(said("1e-10").find(concat("model.", key, " = 1e-10 cannot be drawn, since draws have 32 bits")), std::string::npos)
          << said("1e-10");
      EXPECT_EQ(said("2.4e-10"), "no error");
      EXPECT_EQ(said("0.9999"), "no error");
      EXPECT_NE(said("0.99999999999"), "no error");
    }
  }
}

TEST(Recipe, EveryKeyHasAMeaningAndADefaultThatItAllows) {
  Recipe recipe;
  for (const Section& section : sections_of(recipe)) {
    EXPECT_TRUE(section.meaning.ends_with('.')) << section.name;
    for (const Field& field : section.fields) {
      EXPECT_FALSE(field.key.meaning.empty()) << section.name << "." << field.name;
      if (const auto* integer = std::get_if<std::int64_t*>(&field.member)) {
        EXPECT_TRUE(field.key.range.contains(static_cast<double>(**integer))) << section.name << "." << field.name;
      }
      if (const auto* number = std::get_if<double*>(&field.member)) {
        EXPECT_TRUE(field.key.range.contains(**number)) << section.name << "." << field.name;
      }
    }
  }
}

TEST(RecipeValidation, Model) {
  EXPECT_EQ(refusal(with("model", "d_model = 130")),
            "model.d_model = 130 is not divisible by model.heads = 4; every head is d_model / heads wide.");
  EXPECT_EQ(refusal(with("model", "encoder_layers = 0")),
            "model.encoder_layers = 0 in an encoder_decoder model; set it to at least 1, or model.architecture to \"decoder_only\".");
  EXPECT_EQ(refusal(with("batch", "source_tokens = 0")),
            "batch.source_tokens = 0 in an encoder_decoder model; set the encoder's rows of tokens.");
  EXPECT_EQ(refusal(kDecoderOnlyText), "no error");
  EXPECT_EQ(refusal(kDecoderOnlyText, {"model.encoder_layers=2"}),
            "model.encoder_layers = 2 in a decoder_only model; set it to 0, or model.architecture to \"encoder_decoder\".");
  EXPECT_EQ(refusal(kDecoderOnlyText, {"batch.source_tokens=8"}),
            "batch.source_tokens = 8 in a decoder_only model, which has no source; set it to 0.");
}

TEST(RecipeValidation, Heads) {
  EXPECT_EQ(refusal(with("model", "d_model = 130\nhead_size = 16")), "no error");
  EXPECT_EQ(refusal(with("model", "kv_heads = 2")), "no error");
  EXPECT_EQ(refusal(with("model", "kv_heads = 3")),
            "model.kv_heads = 3 does not divide model.heads = 4; as many heads of queries share each head of keys. Set a divisor, or 0 "
            "for a head of keys a head of queries.");
  EXPECT_EQ(refusal(with("model", "kv_heads = 8")).find("model.kv_heads = 8 does not divide"), 0U);
}

TEST(RecipeValidation, RotaryPositions) {
  EXPECT_EQ(refusal(with("model", "positions = \"rope\"\nrope_scaling = \"llama3\"")), "no error");
  EXPECT_EQ(refusal(with("model", "positions = \"rope\"\nhead_size = 5")),
            "model.positions = \"rope\" turns pairs of a head's columns, and a head is 5 wide; set an even model.head_size, or other "
            "model.heads.");
  EXPECT_EQ(refusal(with("model", "rope_scaling = \"llama3\"")),
            "model.rope_scaling = \"llama3\" stretches rotary positions, and model.positions is \"sinusoidal\"; set it to \"rope\", or "
            "leave model.rope_scaling out.");
  EXPECT_EQ(refusal(with("model", "positions = \"rope\"\nrope_scaling = \"llama3\"\nrope_low_frequency = 4")),
            "model.rope_low_frequency = 4.0 is not below model.rope_high_frequency = 4.0; between them rope's waves go over from stretched "
            "to not.");
  for (const char* other : {"yarn", "dynamic", "longrope"}) {
    const std::string said = refusal(with("model", concat("positions = \"rope\"\nrope_scaling = \"", other, "\"")));
    EXPECT_NE(said.find(concat("model.rope_scaling is the string \"", other, "\"")), std::string::npos) << said;
    EXPECT_TRUE(said.ends_with("\"llama3\" stretches long waves alone.")) << said;
  }
  for (const char* missing : {"sliding_window", "final_logit_softcapping"}) {
    const std::string said = refusal(with("model", concat(missing, " = 8")));
    EXPECT_NE(said.find("tilewave has no such key"), std::string::npos) << said;
  }
}

TEST(RecipeValidation, Batch) {
  EXPECT_EQ(refusal(with("batch", "sequence = 129\n")),
            "batch.sequence = 129 is longer than model.max_positions = 128; every token needs a position.");
  EXPECT_EQ(refusal(with("batch", "sequence = 128\ntarget_tokens = 127")),
            "batch.sequence = 128 is longer than batch.target_tokens = 127; a batch must hold its longest sequence.");
  EXPECT_EQ(refusal(with("batch", "sequence = 128\nsource_tokens = 127")),
            "batch.sequence = 128 is longer than batch.source_tokens = 127; a batch must hold its longest sequence.");
  EXPECT_EQ(refusal(with("batch", "sequence = 128\nsource_tokens = 128\ntarget_tokens = 128")), "no error");
}

TEST(RecipeValidation, DataSuitsTheArchitecture) {
  EXPECT_EQ(refusal(with("data", "kind = \"text\"")),
            "data.kind = \"text\" is one stream, for model.architecture = \"decoder_only\"; the recipe says \"encoder_decoder\".");
  EXPECT_EQ(refusal(kDecoderOnlyText, {"data.kind=parallel"}),
            "data.kind = \"parallel\" holds pairs, for model.architecture = \"encoder_decoder\"; the recipe says \"decoder_only\".");
  EXPECT_EQ(refusal(with("data", "kind = \"synthetic\"")), "no error");
  EXPECT_EQ(refusal(kDecoderOnlyText, {"data.kind=synthetic"}), "no error");
}

TEST(RecipeValidation, PathsThatWouldNotBeRead) {
  EXPECT_EQ(refusal(with("data", "source = \"a.txt\"")), "data.source = \"a.txt\" would not be read: data.kind is \"number_names\".");
  EXPECT_EQ(refusal(kDecoderOnlyText, {"data.source=a.txt", "data.target=b.txt"}),
            "data.target = \"b.txt\" would not be read: data.kind is \"text\".");
  EXPECT_EQ(refusal(kDecoderOnlyText, {"data.source=a.txt", "data.validation_source=b.txt"}), "no error");
}

TEST(RecipeValidation, VocabularyHoldsTheTokenizers) {
  EXPECT_EQ(refusal(kDecoderOnlyText, {"model.vocabulary=259"}),
            "model.vocabulary = 259 is too small: data.tokenizer = \"bytes\" makes 260 ids; set model.vocabulary to at least that.");
  EXPECT_EQ(refusal(with("data", "tokenizer_vocabulary = 129")),
            "model.vocabulary = 128 is too small: data.tokenizer = \"bpe\" makes 129 ids; set model.vocabulary to at least that.");
  EXPECT_EQ(refusal(with("data", "tokenizer_vocabulary = 128")), "no error");
  EXPECT_EQ(refusal(kDecoderOnlyText, {"data.kind=tokens", "model.vocabulary=5"}), "no error");
  EXPECT_EQ(message_of([] { resolve(parse("[model]\n"), {.vocabulary = 129}); }),
            "model.vocabulary = 128 is too small: the tokenizer makes 129 ids; set model.vocabulary to at least that.");
}

TEST(RecipeValidation, Schedule) {
  EXPECT_EQ(refusal(with("schedule", "warmup_steps = 0")),
            "schedule.kind = \"inverse_square_root\" needs schedule.warmup_steps of at least 1: it decays as sqrt(warmup_steps / step).");
  EXPECT_EQ(refusal(with("schedule", "kind = \"constant\"\nwarmup_steps = 0")), "no error");
  EXPECT_EQ(refusal(with("schedule", "kind = \"cosine\"\nwarmup_steps = 1000\ndecay_steps = 1000")),
            "schedule.kind = \"cosine\" ends at schedule.decay_steps = 1000, which is not after schedule.warmup_steps = 1000; shorten the "
            "warm-up or end later.");
  EXPECT_EQ(refusal(with("schedule", "kind = \"cosine\"\nwarmup_steps = 1000")), "no error") << "a run may end within its warm-up";
  EXPECT_EQ(refusal(with("schedule", "kind = \"cosine\"\nwarmup_steps = 1000\ndecay_steps = 1001")), "no error");
  EXPECT_EQ(refusal(with("schedule", "kind = \"cosine\"\nmin_learning_rate = 1e-4")), "no error");
  EXPECT_EQ(
      refusal(with("schedule", "kind = \"constant\"\nmin_learning_rate = 1e-4")),
      "schedule.min_learning_rate = 1e-04 is what a schedule with an end falls to, and schedule.kind = \"constant\" has none; leave it "
      "out, or set schedule.kind to \"cosine\", \"linear\" or \"warmup_stable_decay\".");
  EXPECT_EQ(refusal(with("schedule", "kind = \"linear\"\nmin_learning_rate = 0.5")),
            "schedule.min_learning_rate = 0.5 is above the peak, optimizer.learning_rate = 0.001; lower the one or raise the other.");
  EXPECT_EQ(refusal(with("schedule", "kind = \"linear\"\ndecay_from = 5")),
            "schedule.decay_from = 5 is warmup_stable_decay's, and schedule.kind = \"linear\" falls from its warm-up on; leave it out.");
  EXPECT_TRUE(
      refusal(with("schedule", "kind = \"warmup_stable_decay\"\ndecay_from = 50")).starts_with("schedule.decay_from = 50 lies within"));
  EXPECT_TRUE(refusal(with("schedule", "kind = \"warmup_stable_decay\"\ndecay_from = 500\ndecay_steps = 500"))
                  .starts_with("schedule.decay_from = 500 is not before schedule.decay_steps = 500"));
  EXPECT_TRUE(refusal(with("schedule", "kind = \"linear\"\ndecay_steps = 100")).starts_with("schedule.kind = \"linear\" ends at "));
}

// A word that is no file is a word that was meant; a file is a tokenizer, whatever it is called.
TEST(RecipeTokenizer, IsAWordOrThere) {
  const auto said = [](const std::string& tokenizer) {
    const Recipe recipe = parse(kDecoderOnlyText, {"data.tokenizer='" + tokenizer + "'"});
    return message_of([&] { check_tokenizer(recipe); });
  };
  EXPECT_EQ(said("bytes"), "no error");
  EXPECT_EQ(said("/"), "no error");
  const std::string none = " is neither \"bytes\" nor \"bpe\", and no file or folder of that name is there";
  EXPECT_EQ(said("bytse"), "data.tokenizer = \"bytse\"" + none + " (did you mean \"bytes\"?).");
  EXPECT_EQ(said("somewhere/tokenizer.json"), "data.tokenizer = \"somewhere/tokenizer.json\"" + none + ".");
  EXPECT_EQ(said("char"), "data.tokenizer = \"char\"" + none + ". Write \"bytes\".");
  EXPECT_EQ(refusal(kDecoderOnlyText, {"data.tokenizer=''"}),
            "data.tokenizer is empty; write \"bytes\", \"bpe\" or the path of a tokenizer.");
}

TEST(RecipeValidation, GemmChoice) {
  const std::string row = name_of(*gemm_catalog().front());
  for (const std::string& choice : {std::string("model"), std::string("measure"), row, row + "/64x32"}) {
    EXPECT_EQ(refusal("[gemm]\n", {"gemm.choice=" + choice}), "no error");
  }
  for (const char* tile : {"/", "/64", "/64x", "/x32", "/0x32", "/64x-1", "/64x32x1", "/64x32 ", "/99999999999999999999x1"}) {
    const std::string said = refusal("[gemm]\n", {"gemm.choice=" + row + tile});
    EXPECT_NE(said.find(" names no tile; write <kernel>/<M>x<N>, such as naive/"), std::string::npos) << said;
  }
  EXPECT_TRUE(
      refusal("[gemm]\n", {"gemm.choice=nonsense"}).starts_with("gemm.choice = \"nonsense\" names no kernel of the catalog; there are"));
  EXPECT_TRUE(refusal("[gemm]\n", {"gemm.choice=modle"}).ends_with("(did you mean model?)."));
  EXPECT_EQ(refusal(with("guidelines", "wave_tile = \"256\"")),
            "guidelines.wave_tile = \"256\" names no tile; write \"chosen\" or <M>x<N>, such as \"256x128\".");
  EXPECT_EQ(refusal(with("guidelines", "wave_tile = \"256x128\"")), "no error");
}

// A value that was renamed is read by either name and written by today's; a recipe's hash is made of the former (RecipeText.TheHash...), so
// that runs go on.
TEST(Recipe, FormerNamesOfValuesAreRead) {
  const Recipe today = parse("[gemm]\nengine = \"tilewave\""), once = parse("[gemm]\nengine = \"in_house\"");
  EXPECT_EQ(today, once);
  EXPECT_NE(to_toml(once).find("engine = \"tilewave\""), std::string::npos);
  Recipe copy = today;
  EXPECT_NE(to_toml(sections_of(copy), Words::former).find("engine = \"in_house\""), std::string::npos);
  EXPECT_NE(message_of([] { parse("[gemm]\nengine = \"in_hous\""); }).find("\"tilewave\", \"cublas\" or \"cublaslt\""), std::string::npos);
}

TEST(RecipeSupport, LibrariesNeedAGpu) {
  EXPECT_EQ(message_of([] { check_supported(Recipe(), Backend::cpu); }), "no error");
  for (const std::string engine : {"cublas", "cublaslt"}) {
    const Recipe recipe = parse("[run]\n", {"gemm.engine=" + engine});
    EXPECT_EQ(message_of([&] { check_supported(recipe, Backend::cpu); }),
              "gemm.engine = \"" + engine + "\" needs a GPU; use --set gemm.engine=tilewave.");
    EXPECT_EQ(message_of([&] { check_supported(recipe, Backend::cuda); }), "no error");
    EXPECT_THROW(parse("[run]\n", {"gemm.engine=" + engine, "gemm.choice=naive"}), InputError);
    EXPECT_EQ(message_of([&] { parse("[run]\n", {"gemm.engine=" + engine, "gemm.choice=measure"}); }), "no error");
  }
}

TEST(RecipeSupport, ACpuTrainsInFp32Tf32AndFp64) {
  for (const auto& [precision, name, former] : kNames<Precision>) {
    static_cast<void>(former);
    const Recipe recipe = parse("[run]\n", {"run.precision=" + std::string(name)});
    EXPECT_EQ(message_of([&] { check_supported(recipe, Backend::cuda); }), "no error");
    const bool trains = precision != Precision::bf16 && precision != Precision::fp16;
    EXPECT_EQ(message_of([&] { check_supported(recipe, Backend::cpu); }),
              trains ? "no error"
                     : "run.precision = \"" + std::string(name) +
                           "\" needs a GPU: a CPU trains in fp32, tf32 and fp64; use --set run.precision=fp32.");
  }
}

class RecipeFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tilewave_recipe_files_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    std::ofstream(folder_ / "text.txt") << "To be, or not to be\n";
    std::ofstream(folder_ / "empty.txt").flush();
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string check(const std::string& text, const std::vector<std::string>& overrides) const {
    return message_of([&] { check_files(parse(text, overrides)); });
  }
  std::string path(const char* name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

TEST_F(RecipeFiles, AreNamedWithTheirKey) {
  EXPECT_EQ(check(kDecoderOnlyText, {"data.source=" + path("text.txt")}), "no error");
  EXPECT_EQ(check(kDecoderOnlyText, {}), "data.source is missing: data.kind = \"text\" reads it; name a file with --set data.source=FILE.");
  EXPECT_EQ(check(kDecoderOnlyText, {"data.source=" + path("no.txt")}),
            "data.source = \"" + path("no.txt") + "\" is not there; name another file with --set data.source=FILE.");
  EXPECT_EQ(check(kDecoderOnlyText, {"data.source=" + path("empty.txt")}),
            "data.source = \"" + path("empty.txt") + "\" is empty; name a file with text.");
  EXPECT_EQ(check(kDecoderOnlyText, {"data.source=" + folder_.string()}),
            "data.source = \"" + folder_.string() + "\" is a directory; name a file.");
  EXPECT_EQ(check(kDecoderOnlyText, {"data.source=/dev/null"}),
            "data.source = \"/dev/null\" is no regular file; copy what it gives to one.");
  EXPECT_EQ(check(kDecoderOnlyText, {"data.source=" + path("text.txt"), "data.validation_source=" + path("no.txt")}),
            "data.validation_source = \"" + path("no.txt") + "\" is not there; name another file with --set data.validation_source=FILE.");
}

TEST_F(RecipeFiles, OfTokensMayBeSeveral) {
  const std::string tokens = with("model", "architecture = \"decoder_only\"\nencoder_layers = 0") + with("batch", "source_tokens = 0") +
                             with("data", "kind = \"tokens\"");
  EXPECT_EQ(check(tokens, {"data.source=" + path("t*t.txt")}), "no error");
  EXPECT_EQ(check(tokens, {"data.source=" + path("*.txt")}),
            "data.source = \"" + path("empty.txt") + "\" is empty; name a file with text.");
  EXPECT_EQ(check(tokens, {"data.source=" + path("*.bin")}),
            "data.source = \"" + path("*.bin") + "\" is not there; name another file with --set data.source=FILE.");
  EXPECT_EQ(check(kDecoderOnlyText, {"data.source=" + path("t*t.txt")}),
            "data.source = \"" + path("t*t.txt") + "\" is not there; name another file with --set data.source=FILE.");
}

TEST_F(RecipeFiles, ParallelOnesComeInPairs) {
  const std::string parallel = with("data", "kind = \"parallel\"");
  const std::string source = "data.source=" + path("text.txt"), target = "data.target=" + path("text.txt");
  EXPECT_EQ(check(parallel, {source, target}), "no error");
  EXPECT_TRUE(check(parallel, {source}).starts_with("data.target is missing"));
  EXPECT_TRUE(
      check(parallel, {source, target, "data.validation_source=" + path("text.txt")}).starts_with("data.validation_target is missing"));
  EXPECT_TRUE(
      check(parallel, {source, target, "data.validation_target=" + path("text.txt")}).starts_with("data.validation_source is missing"));
}

TEST_F(RecipeFiles, GiveTheRecipeItsName) {
  std::ofstream(folder_ / "my_run.v2.toml") << "[run]\nsteps = 5\n";
  const Recipe recipe = read_recipe(folder_ / "my_run.v2.toml");
  EXPECT_EQ(recipe.name, "my_run.v2");
  EXPECT_EQ(recipe.run.steps, 5);
  EXPECT_EQ(to_toml(recipe).find("my_run"), std::string::npos);
}

// Every field random within its range, whatever that means for the whole.
void randomize(Recipe& recipe, std::mt19937_64& random) {
  const auto within = [&](const Range& range) {
    const double least = std::isfinite(range.least) ? range.least : -1e12, most = std::isfinite(range.most) ? range.most : 1e12;
    double value = 0.0;
    do {
      const double fraction = std::uniform_real_distribution<double>(0.0, 1.0)(random);
      value = random() % 2 == 0 ? least + (most - least) * fraction : least + (most - least) * fraction * 1e-9;
    } while (!range.contains(value));
    return value;
  };
  for (Section& section : sections_of(recipe)) {
    for (Field& field : section.fields) {
      if (auto* boolean = std::get_if<bool*>(&field.member)) **boolean = random() % 2 == 0;
      if (auto* integer = std::get_if<std::int64_t*>(&field.member)) **integer = static_cast<std::int64_t>(within(field.key.range));
      if (auto* number = std::get_if<double*>(&field.member)) **number = within(field.key.range);
      if (auto* text = std::get_if<std::string*>(&field.member)) **text = "path/" + std::to_string(random() % 1000) + " \"q\" \\ ü\t";
      if (auto* choice = std::get_if<Choice>(&field.member)) choice->set(random() % choice->names.size());
    }
  }
}

TEST(RecipeText, AnyRecipeReadsBackBitForBit) {
  std::mt19937_64 random(19);
  for (int i = 0; i < 300; ++i) {
    Recipe recipe, back;
    randomize(recipe, random);
    std::vector<Section> sections = sections_of(back);
    read_toml({.source = "back.toml", .text = to_toml(recipe)}, sections);
    ASSERT_EQ(back, recipe) << to_toml(recipe);
    ASSERT_EQ(to_toml(back), to_toml(recipe));
    ASSERT_EQ(hash_of(back), hash_of(recipe));
    ASSERT_TRUE(differences(back, recipe).empty());
  }
}

TEST(RecipeText, EveryKeyIsInTextHashAndDifferences) {
  std::mt19937_64 random(23);
  Recipe first;
  std::vector<Section> sections = sections_of(first);
  for (std::size_t s = 0; s < sections.size(); ++s) {
    for (std::size_t f = 0; f < sections[s].fields.size(); ++f) {
      const auto* const choice = std::get_if<Choice>(&sections[s].fields[f].member);
      if (choice != nullptr && choice->names.size() == 1) continue;  // it has no other value
      Recipe second, other;
      std::vector<Section> changed = sections_of(second), donor = sections_of(other);
      do {
        randomize(other, random);
      } while (value_text(donor[s].fields[f]) == value_text(changed[s].fields[f]));
      const std::string key = std::string(changed[s].name) + "." + std::string(changed[s].fields[f].name);
      set_key(key + "=" + value_text(donor[s].fields[f]), changed);
      EXPECT_NE(hash_of(second), hash_of(first)) << key;
      EXPECT_FALSE(second == first) << key;
      const std::vector<KeyDifference> found = differences(first, second);
      ASSERT_EQ(found.size(), 1u) << key;
      EXPECT_EQ(found.front().key, key);
      EXPECT_EQ(found.front().second, value_text(donor[s].fields[f]));
    }
  }
}

TEST(RecipeText, TheHashIsFnv1aOfTheTextAlone) {
  Recipe recipe;
  recipe.name = "another";
  EXPECT_EQ(hash_of(recipe), hash_of(Recipe()));
  std::vector<Section> sections = sections_of(recipe);
  for (Section& section : sections) std::erase_if(section.fields, [](const Field& field) { return field.key.hashed == Hashed::where_set; });
  std::uint64_t hash = 14695981039346656037u;
  for (const unsigned char byte : to_toml(sections, Words::former)) {
    hash ^= byte;
    hash *= 1099511628211u;
  }
  std::ostringstream digits;
  digits << std::hex << std::setw(16) << std::setfill('0') << hash;
  EXPECT_EQ(hash_of(recipe), digits.str());
}

// What version 0.2 hashed before keys of later models and schedules were there: a run of then goes on.
TEST(RecipeText, KeysThatCameLaterLeaveTheHashAsItWas) {
  EXPECT_EQ(hash_of(Recipe()), "6a8c6b99df0c38c1");
  Recipe recipe;
  recipe.model.d_model = 256;
  recipe.model.heads = 4;
  EXPECT_EQ(hash_of(recipe), "d5d9d46f58ccb2e1");
  recipe.model.kv_heads = 2;
  EXPECT_NE(hash_of(recipe), "d5d9d46f58ccb2e1");
}

TEST(Resolve, SchedulesThatFallHaveAnEndAndABeginning) {
  const auto schedule = [](const std::string& keys) { return resolve(parse(with("schedule", keys))).recipe.schedule; };
  EXPECT_EQ(schedule("kind = \"linear\"").decay_steps, 1000);
  const ScheduleConfig stable = schedule("kind = \"warmup_stable_decay\"");
  EXPECT_EQ(stable.decay_steps, 1000);
  EXPECT_EQ(stable.decay_from, 900);
  EXPECT_EQ(schedule("kind = \"warmup_stable_decay\"\nwarmup_steps = 950").decay_from, 950);
  EXPECT_EQ(schedule("kind = \"warmup_stable_decay\"\ndecay_from = 4000").decay_steps, 4001);
  EXPECT_EQ(schedule("kind = \"warmup_stable_decay\"\nwarmup_steps = 0\ndecay_steps = 1").decay_from, 0);
  EXPECT_EQ(schedule("kind = \"constant\"").decay_steps, 0);
}

TEST(Resolve, FillsInNumbers) {
  const ResolvedRecipe bpe = resolve(parse(with("schedule", "kind = \"cosine\"")));
  EXPECT_EQ(bpe.recipe.data.tokenizer_vocabulary, 128);
  EXPECT_EQ(bpe.recipe.schedule.decay_steps, 1000);
  EXPECT_EQ(resolve(parse(with("schedule", "kind = \"cosine\"\nwarmup_steps = 1500"))).recipe.schedule.decay_steps, 1501);
  const ResolvedRecipe bytes = resolve(parse(kDecoderOnlyText));
  EXPECT_EQ(bytes.recipe.data.tokenizer_vocabulary, 0);
  EXPECT_EQ(bytes.recipe.schedule.decay_steps, 0);
}

TEST(Resolve, ModelsMayHaveMoreThanTheTokenizer) {
  const ResolvedRecipe resolved =
      resolve(parse(kDecoderOnlyText, {"model.vocabulary=263", "guidelines.pad_vocabulary_to=8"}), {.vocabulary = 260});
  EXPECT_EQ(resolved.shapes.vocabulary, 263);
  EXPECT_EQ(resolved.shapes.vocabulary_padded, 264);
}

TEST(Resolve, AResolvedRecipeResolvesToItself) {
  std::mt19937_64 random(29);
  const auto draw = [&](std::int64_t least, std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(least, most)(random); };
  for (int i = 0; i < 200; ++i) {
    Recipe recipe;
    recipe.name = "r";
    recipe.model.heads = draw(1, 8);
    recipe.model.d_model = recipe.model.heads * draw(1, 64);
    recipe.model.vocabulary = draw(300, 40000);
    recipe.data.tokenizer_vocabulary = draw(0, 1) * draw(1, 300);
    recipe.data.tokenizer = std::array{"bytes", "bpe", "models/gpt2"}.at(static_cast<std::size_t>(draw(0, 2)));
    recipe.batch.source_tokens = draw(64, 5000);
    recipe.batch.target_tokens = draw(64, 5000);
    recipe.run.steps = draw(101, 5000);
    recipe.schedule.kind = kNames<ScheduleKind>[static_cast<std::size_t>(draw(0, std::ssize(kNames<ScheduleKind>) - 1))].value;
    recipe.guidelines.pad_vocabulary_to = draw(1, 128);
    recipe.guidelines.batch_multiple_of = draw(1, 128);
    recipe.guidelines.row_pitch = draw(0, 1) == 0 ? PitchPolicy::aligned : PitchPolicy::packed;
    const ResolvedRecipe once = resolve(recipe, {.vocabulary = 300});
    EXPECT_EQ(resolve(once.recipe, {.vocabulary = 300}), once);
    EXPECT_EQ(parse(to_toml(once.recipe)), once.recipe);
  }
}

TEST(Recipes, AllReadResolveAndRunOnACpu) {
  if (!fs::exists(beside_tests("recipes"))) GTEST_SKIP() << "recipes/ is not beside --data";
  std::size_t count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(beside_tests("recipes"))) {
    if (entry.path().extension() != ".toml") continue;
    ++count;
    EXPECT_NO_THROW(check_supported(resolve(read_recipe(entry.path())).recipe, Backend::cuda)) << entry.path();
    EXPECT_EQ(text_of(entry.path()).find('\r'), std::string::npos);
  }
  EXPECT_GE(count, 4u);
}

TEST(Recipes, ToyTranslationIsTheMainJob) {
  if (!fs::exists(beside_tests("recipes"))) GTEST_SKIP() << "recipes/ is not beside --data";
  const Recipe recipe = read_recipe(beside_tests("recipes/toy_translation.toml"));
  EXPECT_NO_THROW(check_supported(recipe, Backend::cpu));
  EXPECT_NO_THROW(check_files(recipe));
  EXPECT_EQ(recipe.data.kind, DataKind::number_names);
  EXPECT_EQ(recipe.model.vocabulary, 128);
  EXPECT_EQ(recipe.model.d_model, 128);
  EXPECT_EQ(recipe.optimizer.label_smoothing, 0.1);
}

// TILEWAVE_WRITE_DOCS=1 tilewave_tests --gtest_filter=RecipeDocument.Keys --data tests writes the tables instead.
TEST(RecipeDocument, Keys) {
  const fs::path path = beside_tests("docs/use/recipes.md");
  if (!fs::exists(path)) GTEST_SKIP() << "docs/ is not beside --data";
  const std::string document = text_of(path);
  const std::string expected = with_reference(document, recipe_reference());
  if (std::getenv("TILEWAVE_WRITE_DOCS") != nullptr) std::ofstream(path, std::ios::binary) << expected;
  EXPECT_TRUE(text_of(path) == expected) << "docs/use/recipes.md is older than models/recipe/config.h; run\n"
                                         << "  TILEWAVE_WRITE_DOCS=1 tilewave_tests --gtest_filter=RecipeDocument.Keys --data tests";
}

TEST(RecipeDocument, ExamplesAreRecipes) {
  const fs::path path = beside_tests("docs/use/recipes.md");
  if (!fs::exists(path)) GTEST_SKIP() << "docs/ is not beside --data";
  const std::string document = text_of(path), fence = "```toml\n";
  std::size_t count = 0;
  for (std::size_t at = document.find(fence); at != std::string::npos; at = document.find(fence, at + 1)) {
    const std::size_t begin = at + fence.size();
    const std::string example = document.substr(begin, document.find("```", begin) - begin);
    EXPECT_NO_THROW(resolve(parse(example))) << example;
    ++count;
  }
  EXPECT_GE(count, 1u);
}

}  // namespace
}  // namespace tilewave
