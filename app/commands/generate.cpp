// tilewave generate RUN --prompt TEXT: the prompt and what a decoder-only model makes of it, shown as it is drawn.
#include <iostream>
#include <utility>

#include "app/options/command.h"
#include "app/options/weight_options.h"
#include "app/text/terminal.h"
#include "framework/data/prepared_text.h"
#include "framework/data/streamed_text.h"
#include "framework/data/unknown_characters.h"
#include "models/decoding/decode.h"
#include "models/decoding/trained_model.h"

namespace tilewave {
namespace {

struct GenerateArguments {
  std::filesystem::path run;
  std::string prompt;
  GenerateOptions decode;
  DeviceOptions device;
  WeightOptions weights;
};

// The prompt as the tokenizer has it; what it does not know is said.
std::vector<std::int32_t> prompt_ids(const Tokenizer& tokenizer, const std::string& prompt) {
  const std::string text = prepared_text(prompt, tokenizer.kind(), TextForm::document);
  std::vector<std::int32_t> ids = tokenizer.encode(text);
  UnknownCharacters unknown;
  unknown.count(tokenizer, {.text = text, .ids = ids, .file = {}});
  if (unknown.ids() > 0) std::cerr << unknown.told("the prompt") << ".\n";
  return ids;
}

int generate_text(const GenerateArguments& options) {
  options.weights.check();
  const DeviceInfo device = options.device.probe();
  TrainedModel trained = open_trained_model(options.run, options.device.make_queue(device), device, options.weights.wanted);
  print_notes(trained.notes);
  TW_CHECK_INPUT(trained.tokenizer, options.run.string(), ": this model was trained on ids without a tokenizer, so it cannot write text.");
  GenerateOptions decode = options.decode;
  decode.vocabulary = trained.tokenizer->vocabulary();
  decode.positions = trained.resolved.recipe.batch.sequence;

  const std::vector<std::int32_t> prompt = prompt_ids(*trained.tokenizer, options.prompt);
  StreamedText text(*trained.tokenizer);
  const auto show = [](const std::string& part) { std::cout << for_stdout(part, LineEnds::kept) << std::flush; };
  std::string beginning = text.add(prompt);
  generate(*trained.model, prompt, decode, [&](std::int32_t id) { show(std::exchange(beginning, {}) + text.add(std::span(&id, 1))); });
  show(beginning + text.rest() + '\n');
  return 0;
}

}  // namespace

Command add_generate(CLI::App& program) {
  CLI::App* command = program.add_subcommand("generate", "continue a text with a trained decoder-only run");
  const auto options = std::make_shared<GenerateArguments>();
  const auto count = CLI::Range(0, 1 << 30);
  command->add_option("run", options->run, "the run's folder")->required();
  command->add_option("--prompt", options->prompt, "the text to continue");
  command->add_option("--tokens", options->decode.tokens, "how many tokens to add at most")->check(count)->capture_default_str();
  command->add_option("--temperature", options->decode.temperature, "0: always the most probable token")->capture_default_str();
  command->add_option("--top-k", options->decode.top_k, "draw among so many of the most probable tokens; 0: among all")
      ->check(count)
      ->capture_default_str();
  command->add_option("--seed", options->decode.seed, "of the draws")->check(CLI::NonNegativeNumber)->capture_default_str();
  options->weights.add_to(*command, "the run's newest checkpoint");
  options->device.add_to(*command);
  return {command, [options] { return generate_text(*options); }};
}

}  // namespace tilewave
