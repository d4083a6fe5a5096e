// tilewave caption RUN FILES...: what a run with a stem and a decoder says that pictures show.
#include <iostream>

#include "app/options/command.h"
#include "app/text/terminal.h"
#include "framework/io/json_lines.h"
#include "models/training/captioning.h"

namespace tilewave {
namespace {

struct CaptionArguments {
  std::filesystem::path run;
  std::vector<std::filesystem::path> files;
  std::int64_t beams = 1;
  DeviceOptions device;
  Output output = Output::table;
};

int caption_pictures(const CaptionArguments& options) {
  const DeviceInfo device = options.device.probe();
  const Captioning said = caption_files(
      {.run = options.run, .files = options.files, .beams = options.beams, .queue = options.device.make_queue(device), .device = device});
  print_notes(said.notes);
  for (const CaptionedPicture& picture : said.pictures) {
    if (options.output == Output::json) {
      std::cout << JsonObject().add("file", picture.name).add("step", said.step).add("caption", picture.caption).text() << '\n';
    } else {
      std::cout << for_stdout(picture.name, LineEnds::escaped) << '\t' << for_stdout(picture.caption, LineEnds::escaped) << '\n';
    }
  }
  return 0;
}

}  // namespace

Command add_caption(CLI::App& program) {
  CLI::App* command = program.add_subcommand("caption", "say in words what pictures show, by a run that has learned captions");
  const auto options = std::make_shared<CaptionArguments>();
  command->add_option("run", options->run, "the run's folder")->required();
  command->add_option("files", options->files, "pictures: PNG, PGM, PPM, or IDX files of many")->required();
  command->add_option("--beams", options->beams, "hypotheses of beam search; 1: greedy")->check(CLI::Range(1, 1024))->capture_default_str();
  options->device.add_to(*command);
  command->add_flag_callback(
      "--json", [options] { options->output = Output::json; }, "print a JSON object for each picture");
  return {command, [options] { return caption_pictures(*options); }};
}

}  // namespace tilewave
