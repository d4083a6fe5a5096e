// tilewave figures: the guides' figures for this device or another one: predicted, and measured where there is the device. Without a name
// it lists them. Points that a folder has are not measured again, so a run that was stopped goes on where it was.
#include "models/figures/figures.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>

#include "app/bench/bench_operands.h"
#include "app/commands/figure_folder.h"
#include "app/options/command.h"
#include "app/options/literals.h"
#include "app/process/stop_signals.h"
#include "app/text/figure_text.h"
#include "app/text/table.h"
#include "app/text/tile_life_svg.h"
#include "app/text/units.h"
#include "framework/io/file.h"
#include "framework/io/json_lines.h"
#include "kernels/core/device_profiles.h"
#include "kernels/gemm/catalog.h"
#include "models/figures/effects.h"
#include "models/figures/gemm_points.h"
#include "models/figures/run_figure.h"
#include "models/figures/sweep.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct FiguresArguments {
  std::vector<std::string> names;
  DeviceOptions device;
  std::string profile, against, precision;
  std::string gemm, layer, phase, pitch = "packed", choice;
  int split = 0, rounds = 5;
  fs::path out, recipe;
  std::string commit;  // of the program
  PageOptions page;
  bool printed = false, json = false;

  bool sweeps() const { return !gemm.empty() || !layer.empty(); }
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// What holds for every figure of a run.
struct Session {
  FigureSetting setting;
  bool runs = false;  // there is the device, so that points are measured
  std::vector<std::string> notes;
};

// Why a library's curve cannot be drawn; empty where it can.
std::string library_refusal(const FiguresArguments& options, const DeviceInfo& device) {
  if (!options.profile.empty()) return concat("it is measured, and ", device.name, " is planned for");
  if (device.backend == Backend::cpu) return concat("it runs on a GPU, and ", device.name, " is none");
  const GemmKernel* const library = find_gemm_kernel(Backend::cuda, options.against);
  const GemmProblem small = blas_gemm({.m = 256, .n = 256, .k = 256}, Precision::fp16, PitchPolicy::packed);
  return library == nullptr ? "this build does not know it" : library->refuse(small, device);
}

Session session_of(const FiguresArguments& options) {
  TW_CHECK_INPUT(options.profile.empty() || options.device.device == "auto", "--for ", options.profile, " and --device ",
                 options.device.device, " name two devices; figures are of one.");
  Session session;
  FigureSetting& setting = session.setting;
  setting.device = options.profile.empty() ? options.device.probe() : profile_named(options.profile);
  session.runs = options.profile.empty();
  const DeviceInfo& device = setting.device;
  setting.precision = !options.precision.empty()        ? precision_of(options.precision, device.backend)
                      : device.backend == Backend::cuda ? Precision::fp16
                                                        : Precision::fp32;
  const std::optional<Precision> instead = precision_instead(setting.precision, device);
  TW_CHECK_INPUT(!instead, device.name, " has no units for --precision ", name_of(setting.precision), "; use --precision ",
                 name_of(*instead), ".");
  setting.sizes = options.printed ? FigureSizes::printed : FigureSizes::scaled;
  if (!session.runs) session.notes.push_back(concat("Predicted: nothing was measured, since ", device.name, " is planned for."));
  if (setting.toy()) {
    session.notes.push_back(
        concat("Measured on a CPU at toy sizes, a sixteenth of the guides'. They show how the command works; the effects are "
               "a CPU's and not a GPU's. --for names a GPU to predict for, and --as-printed takes the guides' sizes."));
  }
  if (!options.against.empty()) {
    const std::string refusal = library_refusal(options, device);
    setting.library = refusal.empty();
    if (!refusal.empty()) session.notes.push_back(concat("Without the curve of ", options.against, ": ", refusal, '.'));
  }
  return session;
}

Figure own_sweep(const FiguresArguments& options) {
  TW_CHECK_INPUT(options.gemm.empty() || options.layer.empty(), "--gemm and --layer are two sweeps; a figure has one.");
  const SweptLayer swept = options.gemm.empty() ? swept_layer_of({"--layer", options.layer}) : swept_gemm_of({"--gemm", options.gemm});
  Sweep sweep = {.text = options.gemm.empty() ? options.layer : options.gemm,
                 .axis = swept.axis,
                 .at = swept.at,
                 .layers = {},
                 .phases = {GemmRole::forward},
                 .pitch = options.pitch == "aligned" ? PitchPolicy::aligned : PitchPolicy::packed,
                 .choice = {.forced = options.choice, .split = options.split}};
  for (const Layer& layer : swept.layers) sweep.layers.push_back({.out = layer.out, .in = layer.in, .tokens = layer.tokens});
  const auto phases = {GemmRole::forward, GemmRole::dgrad, GemmRole::wgrad};
  if (options.phase == "all") sweep.phases = phases;
  for (const GemmRole phase : phases) {
    if (options.phase == name_of(phase)) sweep.phases = {phase};
  }
  return sweep_figure(sweep);
}

// The figures named, each once, in the guides' order; all of those that are here for "all".
std::vector<const Figure*> asked_figures(const std::vector<std::string>& names) {
  std::vector<const Figure*> asked;
  const bool all = std::ranges::find(names, "all") != names.end();
  for (const std::string& name : names) {
    if (name != "all") figure_named(name);
  }
  for (const Figure* figure : figures()) {
    const bool named = std::ranges::find(names, figure->name) != names.end();
    if (figure->absent.empty() && (all || named)) asked.push_back(figure);
  }
  return asked;
}

std::string slug_of(const std::string& name) {
  std::string slug;
  for (const char c : name) {
    const bool letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (letter) slug += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!letter && !slug.empty() && slug.back() != '-') slug += '-';
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug;
}

fs::path folder_of(const FiguresArguments& options, const DeviceInfo& device) {
  if (!options.out.empty()) return options.out;
  const std::string name = !options.profile.empty() ? options.profile : device.backend == Backend::cpu ? "cpu" : slug_of(device.name);
  return fs::path("runs") / concat("figures-", name, options.printed ? "-as-printed" : "");
}

// The command that makes one of the figures again.
std::string command_of(const FiguresArguments& options, const Figure& figure) {
  std::string text = "tilewave figures";
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty())
      text += concat(' ', name, value.find_first_of("<>|*$ ") == std::string::npos ? " " + value : concat(" '", value, "'"));
  };
  if (figure.name != "sweep") text += concat(' ', figure.name);
  add("--for", options.profile);
  if (options.device.device != "auto") add("--device", options.device.device);
  if (options.printed) text += " --as-printed";
  add("--against", options.against);
  add("--precision", options.precision);
  if (figure.name == "summary") add("--recipe", options.recipe.string());
  if (figure.name != "sweep") return text;
  add("--gemm", options.gemm);
  add("--layer", options.layer);
  add("--phase", options.phase);
  if (options.pitch != "packed") add("--pitch", options.pitch);
  add("--choice", options.choice);
  if (options.split > 0) add("--split", std::to_string(options.split));
  return text;
}

// Says how far a run is and what is left, now and then.
class FigureProgress {
 public:
  explicit FigureProgress(std::size_t figures) : figures_(figures) {}

  void next(const Figure& figure) {
    name_ = figure.name;
    ++begun_;
    figure_from_ = Clock::now();
  }
  void show(std::size_t points, std::size_t all) {
    constexpr double kEvery = 5.0;
    if (seconds_since(told_) < kEvery || points == 0) return;
    told_ = Clock::now();
    const double left = seconds_since(figure_from_) * static_cast<double>(all - points) / static_cast<double>(points);
    std::cerr << concat(name_, " (", begun_, " of ", figures_, "): ", points, " of ", all, " points, ", std::llround(std::ceil(left)), " s",
                        " left in this one\n");
  }

 private:
  std::size_t figures_, begun_ = 0;
  std::string_view name_;
  Clock::time_point figure_from_ = Clock::now(), told_ = Clock::now();
};

struct Drawn {
  std::vector<PagedFigure> figures;
  std::vector<Chart> charts;
  bool some_point = false;
  int signal = 0;
};

class FigureMaker {
 public:
  FigureMaker(const FiguresArguments& options, const Session& session, const FigureFolder& folder, std::size_t figures)
      : options_(options), session_(session), folder_(folder), progress_(figures) {
    if (session.runs) queue_ = options.device.make_queue(session.setting.device);
  }

  void make(const Figure& figure, Drawn& drawn) {
    progress_.next(figure);
    PagedFigure paged = {.figure = &figure, .how = {}, .command = command_of(options_, figure)};
    if (figure.points) make_chart(figure, paged, drawn);
    if (figure.diagrams) make_diagrams(figure, paged, drawn);
    if (figure.name == "summary") make_summary(paged, drawn);
    drawn.figures.push_back(std::move(paged));
  }

 private:
  void make_chart(const Figure& figure, PagedFigure& paged, Drawn& drawn) {
    const FigureSetting& setting = session_.setting;
    FigureHead head = {.figure = std::string(figure.name),
                       .device = setting.device.name,
                       .sm_count = setting.device.sm_count,
                       .precision = std::string(name_of(setting.precision)),
                       .printed = setting.printed(),
                       .how = {},
                       .command = paged.command,
                       .commit = options_.commit};
    Clock::time_point kept = Clock::now();
    const auto place_done = [&](const FigureRecords& records, std::size_t all) {
      constexpr double kEvery = 2.0;
      progress_.show(records.size(), all);
      if (session_.runs && seconds_since(kept) > kEvery) {
        folder_.keep(head, records);
        kept = Clock::now();
      }
      return caught_signal() != 0;
    };
    const FigureRecords known = folder_.known(head);
    FigureRun run = run_figure(
        {.figure = figure, .setting = setting, .queue = queue_, .rounds = options_.rounds, .known = known, .place_done = place_done});
    head.how = run.asked.how;
    if (run.stopped) keep_rest(run.records, known);
    folder_.keep(head, run.records);
    drawn.signal = caught_signal();
    if (run.stopped) return;
    folder_.write(head.figure + ".csv", csv_of(run.records));
    drawn.some_point = drawn.some_point || !is_empty(figure, run.records);
    const Chart chart = chart_of({.figure = figure,
                                  .asked = run.asked,
                                  .records = run.records,
                                  .device = concat(device_text(setting.device), ", ", head.precision)});
    if (!chart.panels.empty()) {
      drawn.charts.push_back(chart);
      paged.pictures.push_back(svg_of(chart));
    }
    paged.how = run.asked.how;
    if (figure.effects) paged.effects = figure.effects(run.records);
    paged.records = std::move(run.records);
  }

  // A run that was stopped keeps what an earlier one measured of the points that it did not come to.
  static void keep_rest(FigureRecords& records, const FigureRecords& known) {
    for (const FigureRecord& one : known) {
      const bool there = std::ranges::any_of(records, [&](const FigureRecord& other) { return other.same_question(one); });
      if (!there && one.measured()) records.push_back(one);
    }
  }

  void make_diagrams(const Figure& figure, PagedFigure& paged, Drawn& drawn) {
    for (const TileDiagram& diagram : figure.diagrams(session_.setting)) {
      paged.pictures.push_back(svg_of(diagram));
      folder_.write(diagram.name + ".svg", paged.pictures.back());
    }
    if (const std::vector<TileLife> lives = figure.lives ? figure.lives(session_.setting) : std::vector<TileLife>(); !lives.empty()) {
      paged.pictures.push_back(svg_of(lives, concat("Three tiles of a CTA on ", session_.setting.device.name)));
      folder_.write("tile_life.svg", paged.pictures.back());
    }
    drawn.some_point = true;
  }

  void make_summary(PagedFigure& paged, Drawn& drawn) {
    if (options_.recipe.empty()) {
      paged.absent = "The checklist is a recipe's: name one with --recipe FILE.";
      return;
    }
    const Recipe recipe = read_recipe(options_.recipe, {});
    check_reads_tokens(recipe, "the checklist of tilewave figures");
    paged.how = concat(recipe.name, " on ", device_text(session_.setting.device), ", by predicted times.");
    paged.checklist = checklist_of(recipe, session_.setting.device);
    std::string text;
    for (const ChecklistLine& line : paged.checklist) {
      JsonObject object;
      object.add("kind", "check").add("recipe", recipe.name).add("device", session_.setting.device.name).add("chapter", line.chapter);
      object.add("question", line.guideline).add("answer", name_of(line.answer)).add("share_fraction", line.share);
      text += object.add("detail", line.detail).text() + '\n';
    }
    folder_.write("summary.jsonl", text);
    drawn.some_point = true;
  }

  const FiguresArguments& options_;
  const Session& session_;
  const FigureFolder& folder_;
  std::optional<Queue> queue_;
  FigureProgress progress_;
};

void print_lines(const PagedFigure& paged, const FigureFolder& folder) {
  const std::string name(paged.figure->name);
  const fs::path lines = folder.path() / (name + ".jsonl");
  if (is_there(lines)) std::cout << read_file(lines, std::int64_t{64} << 20);
  for (const Effect& effect : paged.effects) {
    JsonObject object;
    object.add("kind", "effect").add("figure", name).add("what", effect.what).add("unit", effect.unit);
    object.add("predicted", effect.predicted).add("measured", effect.measured).add("low", effect.low).add("high", effect.high);
    std::cout << object.text() << '\n';
  }
}

void print_figures(const Drawn& drawn, const FigureFolder& folder, const Page& page) {
  const auto line = [&](const std::string& text) { std::cout << wrapped(text, page) << '\n'; };
  for (const PagedFigure& paged : drawn.figures) {
    line(concat(paged.figure->name, ": ", paged.figure->shows));
    for (const Effect& effect : paged.effects) line("  " + effect_text(effect));
    for (const ChecklistLine& check : paged.checklist) {
      line(concat("  ", name_of(check.answer), ", ", percent_text(check.share), ": ", check.guideline,
                  check.detail.empty() ? "" : concat(' ', check.detail)));
    }
    if (!paged.absent.empty()) line("  " + paged.absent);
    const std::string error = error_text(paged.records);
    if (!error.empty()) line("  " + error);
    for (const std::string& gap : gap_texts(paged.records)) line("  " + gap);
    if (!paged.how.empty()) line("  " + paged.how);
    std::cout << '\n';
  }
  std::cout << "pictures, points and the page: " << (folder.path() / "figures.html").string() << '\n';
}

int make_figures(const FiguresArguments& options, const std::vector<const Figure*>& asked) {
  const Session session = session_of(options);
  for (const std::string& note : session.notes) std::cerr << note << '\n';
  const FigureFolder folder(folder_of(options, session.setting.device));
  answer_first_signal(FirstSignal::is_asked_for,
                      "tilewave figures: stopping behind the points under way, which are kept; the same command goes on from there");
  catch_stop_signals();
  Drawn drawn;
  FigureMaker maker(options, session, folder, asked.size());
  for (const Figure* figure : asked) {
    maker.make(*figure, drawn);
    if (drawn.signal != 0) return 128 + drawn.signal;
  }
  folder.draw_charts(drawn.charts);
  folder.write("figures.html", figures_page({.title = concat("The guides' figures on ", device_text(session.setting.device), ", ",
                                                             name_of(session.setting.precision)),
                                             .notes = session.notes,
                                             .figures = drawn.figures}));
  if (options.json) {
    for (const PagedFigure& paged : drawn.figures) print_lines(paged, folder);
  } else {
    print_figures(drawn, folder, options.page.of_stdout());
  }
  if (!drawn.some_point) std::cerr << "tilewave: no point of these figures could be made.\n";
  return drawn.some_point ? 0 : 1;
}

// What a figure takes here: the measuring of its points, as they are predicted; nothing where they are predicted alone.
double seconds_here(const Figure& figure, const Session& session, int rounds) {
  if (!session.runs || !figure.runs || !figure.points) return 0.0;
  return estimated_seconds(run_figure({.figure = figure, .setting = session.setting}).records, rounds);
}

int list_figures(const FiguresArguments& options) {
  const Session session = session_of(options);
  Table table({{.heading = "figure", .align = Align::left},
               {.heading = "in the guides", .align = Align::left, .rank = 1},
               {.heading = "shows", .align = Align::left},
               {.heading = "takes here"}});
  for (const Figure* figure : figures()) {
    const bool here = figure->absent.empty();
    const double seconds = here ? seconds_here(*figure, session, options.rounds) : 0.0;
    if (options.json) {
      JsonObject object;
      object.add("figure", figure->name).add("references", figure->references).add("shows", figure->shows).add("here", here);
      object.add("why_not", figure->absent).add("estimated_s", seconds);
      std::cout << object.text() << '\n';
      continue;
    }
    const std::string takes = !here ? "not here yet" : seconds < 1.0 ? "no time" : concat("about ", std::llround(std::ceil(seconds)), " s");
    table.add({std::string(figure->name), std::string(figure->references), concat(figure->shows, here ? "" : ": ", figure->absent), takes});
  }
  if (options.json) return 0;
  table.print(std::cout, options.page.of_stdout());
  std::cout << '\n'
            << wrapped(concat("tilewave figures NAME ... draws some of them, all draws every one that is here; on ",
                              device_text(session.setting.device), session.runs ? "." : ", predicted."),
                       options.page.of_stdout())
            << '\n';
  return 0;
}

int run_figures(const FiguresArguments& options) {
  const bool own = !options.phase.empty() || !options.choice.empty() || options.split > 0 || options.pitch != "packed";
  TW_CHECK_INPUT(options.sweeps() || !own,
                 "--phase, --pitch, --choice and --split say how --gemm or --layer are swept; name one of these.");
  std::vector<const Figure*> asked = asked_figures(options.names);
  Figure sweep;
  if (options.sweeps()) {
    sweep = own_sweep(options);
    asked.push_back(&sweep);
  }
  return asked.empty() ? list_figures(options) : make_figures(options, asked);
}

}  // namespace

Command add_figures(CLI::App& program, const std::string& commit) {
  CLI::App* command = program.add_subcommand("figures", "the guides' figures for a device, predicted and measured; without a name, a list");
  const auto options = std::make_shared<FiguresArguments>();
  options->commit = commit;
  command->add_option("name", options->names, "figures, or all");
  std::string keys;
  for (const DeviceProfile& profile : device_profiles()) keys += concat(keys.empty() ? "" : ", ", profile.key);
  command->add_option("--for", options->profile, "predict for a GPU that need not be here: " + keys)->type_name("NAME");
  command->add_flag("--as-printed", options->printed, "the guides' own sizes, which fill the waves of the guides' GPU");
  command->add_option("--against", options->against, "a library's curve beside ours, where there is one to measure")
      ->check(CLI::IsMember({"cublaslt"}));
  command->add_option("--precision", options->precision, "fp32, tf32, bf16, fp16 or fp64 (default: fp16 on a GPU, else fp32)");
  command->add_option("--rounds", options->rounds, "measured rounds of each point")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_option("--recipe", options->recipe, "of summary: the recipe whose checklist it is");
  command->add_option("--gemm", options->gemm, "a figure of one's own: MxNxK, one of them first:last:step")->type_name("MxNxK");
  command->add_option("--layer", options->layer, "the same of a layer")->type_name("OUT<-IN@TOKENS");
  command->add_option("--phase", options->phase, "with --layer or --gemm: forward (default), dgrad, wgrad or all")
      ->check(CLI::IsMember({"forward", "dgrad", "wgrad", "all"}));
  command->add_option("--pitch", options->pitch, "with --layer or --gemm: how rows follow one another")
      ->check(CLI::IsMember({"packed", "aligned"}))
      ->capture_default_str();
  command->add_option("--choice", options->choice, "with --layer or --gemm: a kernel, or <kernel>/<tile> (default: the model's choice)");
  command->add_option("--split", options->split, "with --layer or --gemm: parts that K is taken in; 1: never split (default: the model's)")
      ->check(CLI::Range(1, 64));
  command->add_option("--out", options->out, "the folder, which is continued where it has points (default: runs/figures-<device>)");
  command->add_flag("--json", options->json, "points and effects as one JSON object a line");
  options->page.add_to(*command);
  options->device.add_to(*command);
  return {command, [options] { return run_figures(*options); }};
}

}  // namespace tilewave
