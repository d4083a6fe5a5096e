// tilewave generate RUN --prompt TEXT: the prompt and what a decoder-only model makes of it.
#include <iostream>

#include "app/command.h"
#include "models/decode.h"
#include "models/trained_model.h"

namespace tilewave {
namespace {

struct Options {
  std::filesystem::path run;
  std::string prompt;
  GenerateOptions decode;
  DeviceOptions device;
};

int generate_text(const Options& options) {
  TrainedModel trained = open_trained_model(options.run, options.device.make_queue(), options.device.probe());
  TW_CHECK_INPUT(trained.tokenizer, options.run.string(), ": this model was trained on ids without a tokenizer, so it cannot write text.");
  GenerateOptions decode = options.decode;
  decode.vocabulary = trained.tokenizer->vocabulary();
  const Tokenizer& tokenizer = *trained.tokenizer;

  // Text appears as it is drawn: what the ids so far mean, less what was printed before. A character may take several ids.
  std::vector<std::int32_t> ids = tokenizer.encode(options.prompt);
  const std::vector<std::int32_t> prompt = ids;
  std::string printed;
  const auto print = [&](bool last) {
    std::string text = tokenizer.decode(ids);
    if (!last) {  // hold back the bytes of an unfinished UTF-8 character
      std::size_t whole = text.size();
      for (std::size_t back = 1; back <= std::min<std::size_t>(4, text.size()); ++back) {
        const auto byte = static_cast<unsigned char>(text[text.size() - back]);
        if (byte < 0x80) break;
        if (byte >= 0xC0) {
          const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
          if (back < length) whole = text.size() - back;
          break;
        }
      }
      text.resize(whole);
    }
    if (text.size() > printed.size() && text.starts_with(printed)) std::cout << text.substr(printed.size()) << std::flush;
    printed = std::move(text);
  };
  print(false);
  generate(*trained.model, prompt, decode, [&](std::int32_t id) {
    ids.push_back(id);
    print(false);
  });
  print(true);
  std::cout << '\n';
  return 0;
}

}  // namespace

Command add_generate(CLI::App& program) {
  CLI::App* command = program.add_subcommand("generate", "continue a text with a trained decoder-only run");
  const auto options = std::make_shared<Options>();
  command->add_option("run", options->run, "the run's folder")->required();
  command->add_option("--prompt", options->prompt, "the text to continue");
  command->add_option("--tokens", options->decode.tokens, "how many tokens to add at most")->check(CLI::NonNegativeNumber);
  command->add_option("--temperature", options->decode.temperature, "0: always the most probable token");
  command->add_option("--top-k", options->decode.top_k, "draw among so many of the most probable tokens; 0: among all")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seed", options->decode.seed, "of the draws");
  options->device.add_to(*command);
  return {command, [options] { return generate_text(*options); }};
}

}  // namespace tilewave
