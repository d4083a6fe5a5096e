// tilewave translate RUN < lines: one translation a line, in the order of the input.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <utility>

#include "app/command.h"
#include "framework/data/text_file.h"
#include "models/decode.h"
#include "models/trained_model.h"

namespace tilewave {
namespace {

struct Options {
  std::filesystem::path run;
  TranslateOptions decode;
  DeviceOptions device;
};

constexpr std::size_t kLinesAtATime = 1024;

int translate_lines(const Options& options) {
  TW_CHECK_INPUT(std::isfinite(options.decode.length_penalty), "--length-penalty ", options.decode.length_penalty,
                 ": it is a finite number, 0 to favour no length.");
  const DeviceInfo device = options.device.probe();
  TrainedModel trained = open_trained_model(options.run, options.device.make_queue(device), device);
  print_notes(trained.notes);
  TW_CHECK_INPUT(trained.tokenizer, options.run.string(), ": this model was trained on ids without a tokenizer, so it cannot read text.");
  TranslateOptions decode = options.decode;
  decode.vocabulary = trained.tokenizer->vocabulary();
  const std::int64_t positions = decode.positions = trained.resolved.recipe.batch.sequence;

  std::vector<std::vector<std::int32_t>> sources;
  const auto flush = [&] {
    for (const std::vector<std::int32_t>& target : translate(*trained.model, sources, decode)) {
      std::string translation = trained.tokenizer->decode(target);
      std::ranges::replace_if(
          translation, [](char c) { return c == '\n' || c == '\r'; }, ' ');  // a line is a line's translation
      std::cout << translation << '\n';
    }
    std::cout.flush();
    sources.clear();
  };
  flush();  // of nothing: a model that cannot translate is refused before a line is read
  std::string line;
  for (std::int64_t number = 1; std::getline(std::cin, line); ++number) {
    const auto check = [&](bool holds, const auto&... parts) {
      if (holds) return;
      flush();  // the lines before it
      throw InputError(sentence("standard input, line ", number, ": ", parts...));
    };
    if (line.ends_with('\r')) line.pop_back();
    if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // as in training's files
    check(trained.tokenizer->kind() == TokenizerKind::bytes || !find_invalid_utf8(line),
          "this is not UTF-8; convert the text, for example with iconv.");
    std::vector<std::int32_t> source = trained.tokenizer->encode(line);
    check(static_cast<std::int64_t>(source.size()) <= positions, "the line has ", source.size(),
          " tokens, but the run was trained on at most ", positions, " (batch.sequence); split it.");
    sources.push_back(std::move(source));
    if (sources.size() == kLinesAtATime) flush();
  }
  flush();
  TW_CHECK(!std::cin.bad() && std::ferror(stdin) == 0, "standard input could not be read to its end; what came before is translated.");
  return 0;
}

}  // namespace

Command add_translate(CLI::App& program) {
  CLI::App* command = program.add_subcommand("translate", "translate the lines of standard input with a trained run");
  const auto options = std::make_shared<Options>();
  command->add_option("run", options->run, "the run's folder")->required();
  command->add_option("--beams", options->decode.beams, "hypotheses of the beam search; 1 is greedy")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--length-penalty", options->decode.length_penalty, "exponent that longer hypotheses are favoured by")
      ->capture_default_str();
  options->device.add_to(*command);
  return {command, [options] { return translate_lines(*options); }};
}

}  // namespace tilewave
