// tilewave evaluate RUN: loss and perplexity on what the run validated on, or on other data; of pairs BLEU and chrF too.
#include <cmath>
#include <iostream>
#include <unistd.h>

#include "app/options/command.h"
#include "app/options/weight_options.h"
#include "app/process/stop_signals.h"
#include "app/text/losses.h"
#include "app/text/translation_scores.h"
#include "app/text/units.h"
#include "framework/io/json_lines.h"
#include "models/training/evaluation.h"

namespace tilewave {
namespace {

struct EvaluateArguments {
  std::filesystem::path run, data, target;
  std::int64_t beams = 1;
  DeviceOptions device;
  WeightOptions weights;
  Output output = Output::table;
};

void print_evaluation(const Evaluation& found, const ScoredTranslations& scored) {
  const Page page = page_of(STDOUT_FILENO, Columns::fitting);
  const auto line = [&](const std::string& text) { std::cout << wrapped(text, page) << '\n'; };
  if (const std::optional<double> accuracy = found.loss.accuracy()) {
    line(concat(kValidationAccuracy, ' ', accuracy_text(found.loss)));
    line(concat(kValidationLoss, number_text(found.loss.loss, " %.4f nats per picture")));
    return;
  }
  line(concat(kValidationLoss, number_text(found.loss.loss, " %.4f nats per target token"), " (over ", count_text(found.loss.target_tokens),
              " tokens)"));
  line(concat("perplexity ", number_text(std::exp(found.loss.loss), "%.4g")));
  if (!scored.scores) return;
  const TranslationScores& scores = *scored.scores;
  line(concat("BLEU ", number_text(scores.bleu, "%.2f"), ", chrF ", number_text(scores.chrf, "%.2f"), " of ",
              count_text(std::ssize(found.translations)), " translations (", scores.bleu_signature, "; ", scores.chrf_signature, ")"));
}

void print_json(const Evaluation& found, const ScoredTranslations& scored) {
  JsonObject object;
  object.add("step", found.step)
      .add("loss", found.loss.loss)
      .add("perplexity", std::exp(found.loss.loss))
      .add(found.loss.right ? "pictures" : "target_tokens", found.loss.target_tokens);
  if (const std::optional<double> accuracy = found.loss.accuracy()) object.add("accuracy", *accuracy);
  if (found.pairs.all > 0) object.add("pairs", found.pairs.all).add("pairs_left_out", found.pairs.left_out);
  if (!found.translations.empty()) object.add("translations", std::ssize(found.translations));
  if (scored.scores) {
    const TranslationScores& scores = *scored.scores;
    object.add("bleu", scores.bleu).add("chrf", scores.chrf);
    object.add("bleu_signature", scores.bleu_signature).add("chrf_signature", scores.chrf_signature);
  }
  std::cout << object.text() << '\n';
}

int evaluate(const EvaluateArguments& options) {
  options.weights.check();
  const DeviceInfo device = options.device.probe();
  catch_stop_signals();
  answer_first_signal(FirstSignal::is_asked_for, "caught a signal: the evaluation stops behind the batch under way");
  const Evaluation found = evaluate_run({.run = options.run,
                                         .data = options.data,
                                         .target = options.target,
                                         .weights = options.weights.wanted,
                                         .beams = options.beams,
                                         .queue = options.device.make_queue(device),
                                         .device = device,
                                         .interrupted = [] { return caught_signal() != 0; }});
  if (found.interrupted) return 128 + caught_signal();
  print_notes(found.notes);
  const ScoredTranslations scored =
      found.translations.empty() ? ScoredTranslations{} : score_translations(found.translations, found.references);
  if (!scored.absent.empty()) print_notes({scored.absent});
  options.output == Output::json ? print_json(found, scored) : print_evaluation(found, scored);
  return 0;
}

}  // namespace

Command add_evaluate(CLI::App& program) {
  CLI::App* command = program.add_subcommand("evaluate", "measure a trained run on data: loss, perplexity, BLEU and chrF");
  const auto options = std::make_shared<EvaluateArguments>();
  command->add_option("run", options->run, "the run's folder")->required();
  command->add_option("--data", options->data, "a file of the run's kind of data; without it, what the run validated on")
      ->type_name("FILE");
  command->add_option("--target", options->target, "of pairs: the file that translates --data, line by line")->type_name("FILE");
  command->add_option("--beams", options->beams, "hypotheses of the beam search that translates; 1 is greedy")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  options->weights.add_to(*command, "the run's newest checkpoint");
  options->device.add_to(*command);
  command->add_flag_callback(
      "--json", [options] { options->output = Output::json; }, "print the result as one JSON object");
  return {command, [options] { return evaluate(*options); }};
}

}  // namespace tilewave
