// tilewave generate RUN --prompt TEXT, or --ids: the prompt and what a decoder-only model makes of it, shown as it is drawn.
#include <algorithm>
#include <charconv>
#include <iostream>
#include <optional>
#include <utility>

#include "app/options/command.h"
#include "app/options/weight_options.h"
#include "app/text/terminal.h"
#include "framework/data/prepared_text.h"
#include "framework/data/streamed_text.h"
#include "framework/data/text_encoder.h"
#include "framework/data/unknown_characters.h"
#include "framework/io/file.h"
#include "framework/io/text_file.h"
#include "models/decoding/decode.h"
#include "models/decoding/trained_model.h"

namespace tilewave {
namespace {

struct GenerateArguments {
  std::filesystem::path run;
  std::string prompt;
  std::string ids;  // instead of it
  bool by_ids = false;
  std::string tokenizer;  // of the token files that the run was trained on
  std::string end;        // the token that ends the text, or none; empty: the tokenizer's own
  GenerateOptions decode;
  DeviceOptions device;
  WeightOptions weights;
};

constexpr std::string_view kNoEnd = "none";

// What ends the text: --end, or what the tokenizer says.
std::optional<std::int32_t> end_of_text(const GenerateArguments& options, const Tokenizer* tokenizer) {
  if (options.end == kNoEnd) return std::nullopt;
  if (options.end.empty()) return tokenizer != nullptr ? tokenizer->end() : std::nullopt;
  TW_CHECK_INPUT(tokenizer != nullptr, "--end ", printable(options.end),
                 ": this model was trained on ids without a tokenizer, so no token has a name; name the tokenizer with --tokenizer.");
  const std::optional<std::int32_t> id = tokenizer->find(options.end);
  TW_CHECK_INPUT(id, "--end ", printable(options.end), " is no token of the tokenizer; name one of its tokens, such as ",
                 tokenizer->end() ? tokenizer->piece(*tokenizer->end()) : "one that ends a line", ", or none.");
  return id;
}

// The prompt as the tokenizer has it, behind what the tokenizer's file puts before a text; what it does not know is said.
std::vector<std::int32_t> prompt_ids(const Tokenizer& tokenizer, const std::string& prompt) {
  const std::string text = prepared_text(prompt, tokenizer.kind(), TextForm::document);
  std::vector<std::int32_t> ids = tokenizer.before();
  const std::vector<std::int32_t> of_text = tokenizer.encode(text);
  ids.insert(ids.end(), of_text.begin(), of_text.end());
  UnknownCharacters unknown;
  unknown.count(tokenizer, {.text = text, .ids = ids, .file = {}});
  if (unknown.ids() > 0) std::cerr << unknown.told("the prompt") << ".\n";
  return ids;
}

// Numbers, as many as there are between spaces and commas.
std::vector<std::int32_t> given_ids(std::string_view text, std::int64_t vocabulary) {
  constexpr std::string_view between = " ,\t\n";
  std::vector<std::int32_t> ids;
  for (std::size_t at = text.find_first_not_of(between); at != std::string_view::npos; at = text.find_first_not_of(between, at)) {
    const std::string_view word = text.substr(at, std::min(text.find_first_of(between, at), text.size()) - at);
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    TW_CHECK_INPUT(error == std::errc() && end == word.data() + word.size() && id >= 0 && id < vocabulary, "--ids: ", printable(word),
                   " is no id of this model, which has 0 to ", vocabulary - 1, "; write them as --ids '464 3290'.");
    ids.push_back(id);
    at += word.size();
  }
  TW_CHECK_INPUT(!ids.empty(), "--ids names no id; a model of token files needs one at least to go on from.");
  return ids;
}

// Ids in and ids out, one space between them.
int generate_ids(const GenerateArguments& options, TrainedModel& trained, GenerateOptions decode) {
  const std::int64_t vocabulary = trained.tokenizer ? trained.tokenizer->vocabulary() : trained.resolved.recipe.model.vocabulary;
  const std::vector<std::int32_t> prompt = given_ids(options.ids, vocabulary);
  std::string_view space;
  const auto show = [&](std::int32_t id) {
    std::cout << space << id << std::flush;
    space = " ";
  };
  bool shown = false;
  const auto show_prompt = [&] {
    if (!std::exchange(shown, true)) std::ranges::for_each(prompt, show);
  };
  generate(*trained.model, prompt, decode, [&](std::int32_t id) {
    show_prompt();
    show(id);
  });
  show_prompt();
  std::cout << '\n';
  return 0;
}

// A model of token files, with the tokenizer that they were made by.
int generate_by(const TextEncoder& encoder, const GenerateArguments& options, TrainedModel& trained, GenerateOptions decode) {
  const std::int64_t vocabulary = trained.resolved.recipe.model.vocabulary;
  TW_CHECK_INPUT(encoder.vocabulary() <= vocabulary, "--tokenizer ", printable(options.tokenizer), " has ", encoder.vocabulary(),
                 " ids, more than the model's ", vocabulary, "; name the one that made the run's token files.");
  decode.vocabulary = encoder.vocabulary();
  std::vector<std::int32_t> prompt = encoder.before();
  const std::vector<std::int32_t> text_ids = encoder.encode(encoder.prepared(options.prompt));
  prompt.insert(prompt.end(), text_ids.begin(), text_ids.end());
  TW_CHECK_INPUT(!prompt.empty(), "--prompt is empty, and a model of token files needs a token to go on from; write a word.");
  std::string pending = encoder.decode(prompt);
  const auto show_finished = [&] {
    const std::size_t finished = finished_characters(pending).size();
    std::cout << for_stdout(pending.substr(0, finished), LineEnds::kept) << std::flush;
    pending.erase(0, finished);
  };
  std::int32_t last = prompt.back();
  generate(*trained.model, prompt, decode, [&](std::int32_t id) {
    const std::int32_t two[] = {last, id};  // a token may lose a space where a text begins
    pending += encoder.decode(two).substr(encoder.decode(std::span(two).first(1)).size());
    last = id;
    show_finished();
  });
  std::cout << for_stdout(pending, LineEnds::kept) << '\n';
  return 0;
}

int generate_text(const GenerateArguments& options) {
  options.weights.check();
  std::optional<TextEncoder> encoder;
  if (!options.tokenizer.empty()) encoder.emplace(options.tokenizer);
  const DeviceInfo device = options.device.probe();
  TrainedModel trained = open_trained_model(options.run, options.device.make_queue(device), device, options.weights.wanted);
  print_notes(trained.notes);
  GenerateOptions decode = options.decode;
  decode.positions = trained.resolved.recipe.batch.sequence;
  decode.drawn = trained.tokenizer ? drawn_ids(*trained.tokenizer) : any_ids();
  if (trained.tokenizer) decode.vocabulary = trained.tokenizer->vocabulary();
  decode.drawn.end = end_of_text(options, trained.tokenizer ? &*trained.tokenizer : encoder ? &encoder->tokenizer() : nullptr);
  if (options.by_ids) return generate_ids(options, trained, decode);
  TW_CHECK_INPUT(!trained.tokenizer || options.tokenizer.empty(), options.run.string(),
                 ": this model has a tokenizer of its own; leave --tokenizer out.");
  if (encoder) return generate_by(*encoder, options, trained, decode);
  TW_CHECK_INPUT(
      trained.tokenizer, options.run.string(),
      ": this model was trained on ids without a tokenizer; give ids by --ids, or name the tokenizer that made them by --tokenizer.");

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
  CLI::Option* prompt = command->add_option("--prompt", options->prompt, "the text to continue");
  CLI::Option* ids =
      command->add_option("--ids", options->ids, "the ids to continue, as '464 3290'; ids are printed then")->excludes(prompt);
  command->add_option("--tokenizer", options->tokenizer, "that made the token files which the run was trained on (tilewave tokenize)")
      ->excludes(ids);
  command->add_option("--end", options->end, "a token that ends the text, or none; without it, the tokenizer's own")->type_name("TOKEN");
  command->add_option("--tokens", options->decode.tokens, "how many tokens to add at most")->check(count)->capture_default_str();
  command->add_option("--temperature", options->decode.temperature, "0: always the most probable token")->capture_default_str();
  command->add_option("--top-k", options->decode.top_k, "draw among so many of the most probable tokens; 0: among all")
      ->check(count)
      ->capture_default_str();
  command->add_option("--seed", options->decode.seed, "of the draws")->check(CLI::NonNegativeNumber)->capture_default_str();
  options->weights.add_to(*command, "the run's newest checkpoint");
  options->device.add_to(*command);
  return {command, [options, ids] {
            options->by_ids = ids->count() > 0;
            return generate_text(*options);
          }};
}

}  // namespace tilewave
