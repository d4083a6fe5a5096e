// tilewave classify RUN FILES...: which class a run that sees says each picture is of.
#include <iostream>

#include "app/options/command.h"
#include "app/text/terminal.h"
#include "app/text/units.h"
#include "framework/io/json_lines.h"
#include "models/training/classification.h"

namespace tilewave {
namespace {

struct ClassifyArguments {
  std::filesystem::path run;
  std::vector<std::filesystem::path> files;
  std::int64_t top = 1;
  DeviceOptions device;
  Output output = Output::table;
};

// A line for each picture: its file, then classes and their probabilities.
void print_lines(const Classification& found) {
  for (const ClassifiedPicture& picture : found.pictures) {
    std::cout << for_stdout(picture.name, LineEnds::escaped);
    for (const ClassProbability& one : picture.likeliest) std::cout << '\t' << one.label << '\t' << number_text(one.probability, "%.4f");
    std::cout << '\n';
  }
}

// A JSON object for each picture, one a line.
void print_json_lines(const Classification& found) {
  for (const ClassifiedPicture& picture : found.pictures) {
    std::vector<JsonObject> classes;
    for (const ClassProbability& one : picture.likeliest) {
      JsonObject object;
      object.add("class", one.label).add("probability", one.probability);
      classes.push_back(object);
    }
    JsonObject line;
    line.add("file", picture.name).add("step", found.step).add("classes", std::span<const JsonObject>(classes));
    std::cout << line.text() << '\n';
  }
}

int classify_files(const ClassifyArguments& options) {
  const DeviceInfo device = options.device.probe();
  const Classification found = classify(
      {.run = options.run, .files = options.files, .top = options.top, .queue = options.device.make_queue(device), .device = device});
  print_notes(found.notes);
  options.output == Output::json ? print_json_lines(found) : print_lines(found);
  return 0;
}

}  // namespace

Command add_classify(CLI::App& program) {
  CLI::App* command = program.add_subcommand("classify", "say which class each picture is of, by a run that sees");
  const auto options = std::make_shared<ClassifyArguments>();
  command->add_option("run", options->run, "the run's folder")->required();
  command->add_option("files", options->files, "pictures: PNG, PGM, PPM, or IDX files of many")->required();
  command->add_option("--top", options->top, "classes of each picture, the likeliest first")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  options->device.add_to(*command);
  command->add_flag_callback(
      "--json", [options] { options->output = Output::json; }, "print a JSON object for each picture");
  return {command, [options] { return classify_files(*options); }};
}

}  // namespace tilewave
