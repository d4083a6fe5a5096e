#include "models/training/event_log.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "framework/io/event_file.h"
#include "framework/io/json_lines.h"
#include "framework/io/run_folder.h"

namespace tilewave {
namespace {

constexpr std::string_view kValidationTag = "loss/validation", kAccuracyTag = "accuracy/validation";

struct TaggedField {
  std::string_view tag, key;  // of metrics.jsonl
};
constexpr TaggedField kTagged[] = {{"loss/training", "loss"},
                                   {kValidationTag, "validation_loss"},
                                   {kAccuracyTag, "validation_accuracy"},
                                   {"optimizer/learning_rate", "learning_rate"},
                                   {"optimizer/gradient_norm", "gradient_norm"},
                                   {"speed/target_tokens_per_s", "target_tokens_per_s"}};

double seconds_since_1970() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// A loss that is not finite is null in metrics.jsonl.
std::optional<double> number_in(const nlohmann::json& line, std::string_view key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

// The lines of metrics.jsonl as events. The last one is of now, each other as long before as was trained between.
std::string events_of(const std::filesystem::path& run_folder) {
  std::vector<nlohmann::json> lines;
  const std::filesystem::path metrics = run_folder / "metrics.jsonl";
  const std::string text = is_there(metrics) ? read_file(metrics, kMaxJsonLinesBytes) : std::string();
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1)) {
    nlohmann::json line = nlohmann::json::parse(rest.substr(0, rest.find('\n')), nullptr, false);
    if (line.is_object() && number_in(line, "step")) lines.push_back(std::move(line));
  }
  const double now = seconds_since_1970(), trained = lines.empty() ? 0.0 : number_in(lines.back(), "elapsed_s").value_or(0.0);
  std::string events = event_version_record(now - trained);
  for (const nlohmann::json& line : lines) {
    std::vector<EventScalar> scalars;
    for (const TaggedField& field : kTagged) {
      if (const std::optional<double> value = number_in(line, field.key)) scalars.push_back({.tag = field.tag, .value = *value});
    }
    events += event_record({.wall_time_s = now - trained + number_in(line, "elapsed_s").value_or(0.0),
                            .step = line.at("step").get<std::int64_t>(),
                            .scalars = scalars});
  }
  return events;
}

void add_scalars(std::vector<EventScalar>& scalars, const ValidationLoss& validation) {
  scalars.push_back({.tag = kValidationTag, .value = validation.loss});
  if (const std::optional<double> accuracy = validation.accuracy()) scalars.push_back({.tag = kAccuracyTag, .value = *accuracy});
}

AppendedFile begun(const std::filesystem::path& run_folder) {
  const std::filesystem::path path = run_folder / kEventFile;
  const std::string events = events_of(run_folder);
  write_file_atomically(path, events);
  return {path, std::ssize(events)};
}

}  // namespace

EventLog::EventLog(const std::filesystem::path& run_folder) : file_(begun(run_folder)) {}

void EventLog::add(const TrainingProgress& progress, const std::optional<ValidationLoss>& validation) {
  const StepReport& step = progress.step;
  std::vector<EventScalar> scalars = {{.tag = "loss/training", .value = step.loss},
                                      {.tag = "optimizer/learning_rate", .value = step.learning_rate},
                                      {.tag = "optimizer/gradient_norm", .value = step.gradient_norm},
                                      {.tag = "speed/target_tokens_per_s", .value = progress.target_tokens_per_s}};
  if (validation) add_scalars(scalars, *validation);
  file_.append(event_record({.wall_time_s = seconds_since_1970(), .step = step.step, .scalars = scalars}));
}

void EventLog::add_validation(std::int64_t step, const ValidationLoss& validation) {
  std::vector<EventScalar> scalars;
  add_scalars(scalars, validation);
  file_.append(event_record({.wall_time_s = seconds_since_1970(), .step = step, .scalars = scalars}));
}

}  // namespace tilewave
