// tilewave translate RUN < lines: one translation a line, in the order of the input, whatever the lines are. What could not be translated
// leaves its line empty and is counted on stderr at the end.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <utility>

#include "app/options/command.h"
#include "app/options/weight_options.h"
#include "app/text/terminal.h"
#include "framework/data/prepared_text.h"
#include "framework/data/unknown_characters.h"
#include "framework/io/text_file.h"
#include "models/decoding/decode.h"
#include "models/decoding/trained_model.h"

namespace tilewave {
namespace {

enum class LongLines : std::uint8_t { left_empty, truncated };

struct TranslateArguments {
  std::filesystem::path run;
  TranslateOptions decode;
  LongLines long_lines = LongLines::left_empty;
  DeviceOptions device;
  WeightOptions weights;
};

constexpr std::size_t kLinesAtATime = 1024;

// Lines of one kind among those that were read.
struct CountedLines {
  std::int64_t count = 0, first = 0;

  void add(std::int64_t line) {
    if (count++ == 0) first = line;
  }
  // "2 of 10 lines WHAT, the first of them line 3"
  std::string told(std::int64_t lines, const std::string& what) const {
    return concat(count, " of ", lines, " lines ", what, ", the first of them line ", first);
  }
};

// Standard input as ids, and what of it no translation can be made of.
class SourceLines {
 public:
  SourceLines(const Tokenizer& tokenizer, std::int64_t positions, LongLines long_lines)
      : tokenizer_(tokenizer), positions_(positions), long_lines_(long_lines) {}

  std::optional<std::vector<std::int32_t>> next() {
    const std::optional<std::string> line = reader_.next();
    if (!line) return std::nullopt;
    if (tokenizer_.kind() != TokenizerKind::bytes && find_invalid_utf8(*line)) {
      broken_.add(reader_.number());
      return std::vector<std::int32_t>();
    }
    std::vector<std::int32_t> ids = tokenizer_.encode_sentence(*line);
    if (std::ssize(ids) > positions_) {
      too_long_.add(reader_.number());
      ids.resize(long_lines_ == LongLines::truncated ? static_cast<std::size_t>(positions_) : 0);
    }
    unknown_.count(tokenizer_, {.text = *line, .ids = ids, .file = file_, .line = reader_.number()});
    return ids;
  }

  void tell(std::ostream& out) const {
    const std::int64_t lines = reader_.number();
    if (too_long_.count > 0) {
      out << too_long_.told(lines, concat("have more than the ", positions_, " tokens that the run was trained on (batch.sequence)"));
      out << (long_lines_ == LongLines::truncated ? "; their first tokens alone are translated.\n"
                                                  : "; their translations are empty. Split them, or have their first tokens translated "
                                                    "with --truncate.\n");
    }
    if (broken_.count > 0) {
      out << broken_.told(lines, "are not UTF-8") << "; their translations are empty. Convert the text, for example with iconv.\n";
    }
    if (unknown_.ids() > 0) out << unknown_.told("the lines") << ".\n";
  }

 private:
  const Tokenizer& tokenizer_;
  std::int64_t positions_;
  LongLines long_lines_;
  LineReader reader_ = LineReader(std::cin);
  std::filesystem::path file_ = "standard input";
  CountedLines too_long_, broken_;
  UnknownCharacters unknown_;
};

int translate_lines(const TranslateArguments& options) {
  TW_CHECK_INPUT(std::isfinite(options.decode.length_penalty), "--length-penalty ", options.decode.length_penalty,
                 ": it is a finite number, 0 to favour no length.");
  options.weights.check();
  const DeviceInfo device = options.device.probe();
  TrainedModel trained = open_trained_model(options.run, options.device.make_queue(device), device, options.weights.wanted);
  print_notes(trained.notes);
  TW_CHECK_INPUT(trained.tokenizer, options.run.string(), ": this model was trained on ids without a tokenizer, so it cannot read text.");
  TranslateOptions decode = options.decode;
  decode.drawn = target_ids(*trained.tokenizer);
  decode.vocabulary = trained.tokenizer->vocabulary();
  decode.positions = trained.resolved.recipe.batch.sequence;

  std::vector<std::vector<std::int32_t>> sources;
  const auto flush = [&] {
    for (const std::vector<std::int32_t>& target : translate(*trained.model, sources, decode)) {
      std::string translation = trained.tokenizer->decode(target);
      std::ranges::replace_if(
          translation, [](char c) { return c == '\n' || c == '\r'; }, ' ');  // a line is a line's translation
      std::cout << for_stdout(translation, LineEnds::kept) << '\n';
    }
    std::cout.flush();
    sources.clear();
  };
  flush();  // of nothing: a model that cannot translate is refused before a line is read
  SourceLines lines(*trained.tokenizer, decode.positions, options.long_lines);
  while (std::optional<std::vector<std::int32_t>> source = lines.next()) {
    sources.push_back(std::move(*source));
    if (sources.size() == kLinesAtATime) flush();
  }
  flush();
  lines.tell(std::cerr);
  TW_CHECK(!std::cin.bad() && std::ferror(stdin) == 0, "standard input could not be read to its end; what came before is translated.");
  return 0;
}

}  // namespace

Command add_translate(CLI::App& program) {
  CLI::App* command = program.add_subcommand("translate", "translate the lines of standard input with a trained run");
  const auto options = std::make_shared<TranslateArguments>();
  command->add_option("run", options->run, "the run's folder")->required();
  command->add_option("--beams", options->decode.beams, "hypotheses of the beam search; 1 is greedy")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--length-penalty", options->decode.length_penalty, "exponent that longer hypotheses are favoured by")
      ->capture_default_str();
  command->add_flag_callback(
      "--truncate", [options] { options->long_lines = LongLines::truncated; },
      "translate the first tokens of a line that is too long; without it, its translation is an empty line");
  options->weights.add_to(*command, "the run's newest checkpoint");
  options->device.add_to(*command);
  return {command, [options] { return translate_lines(*options); }};
}

}  // namespace tilewave
