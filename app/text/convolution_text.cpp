#include "app/text/convolution_text.h"

#include <cmath>
#include <ostream>

#include "app/text/table.h"
#include "app/text/units.h"
#include "framework/io/json_lines.h"
#include "models/planning/plan_json.h"

namespace tilewave {
namespace {

Cost cost_of(const ConvolutionPhase& phase) { return {.flops = phase.flops, .bytes = phase.bytes}; }

std::string tile_text(Tile tile) { return concat(tile.m, 'x', tile.n); }

// One number for both axes, or "2x1".
std::string axes_text(std::int64_t down, std::int64_t across) { return down == across ? concat(down) : concat(down, 'x', across); }

std::string question_text(const ConvolutionQuestion& question) {
  const Images& images = question.images;
  const ConvolutionFilter& f = question.filter;
  const Images result = question.result();
  std::string text =
      concat("a ", f.height, 'x', f.width, " convolution of ", images.count, 'x', images.height, 'x', images.width, 'x', images.channels,
             " into ", result.count, 'x', result.height, 'x', result.width, 'x', question.outputs, ", stride ",
             axes_text(f.stride_down, f.stride_across), ", padding ", axes_text(f.padding_down, f.padding_across));
  if (f.dilation_down > 1 || f.dilation_across > 1)
    text += concat(", dilation ", axes_text(f.dilation_down, f.dilation_across), " (it reaches over ", f.effective_height(), 'x',
                   f.effective_width(), ')');
  return text;
}

// NAN where it is not known.
double seconds_or_nan(double seconds, const DeviceInfo& device) { return seconds > 0.0 ? predicted_or_nan(seconds, device) : NAN; }

std::string launches_text(const ConvolutionPhase& phase, const DeviceInfo& device) {
  const double seconds = seconds_or_nan(phase.launched_s(), device);
  if (phase.launches.size() == 1) return concat("tilewave's ", phase.launches.front().operation, " takes ", time_text(seconds));
  std::string names, times;
  for (const ConvolutionLaunch& launch : phase.launches) {
    names += concat(names.empty() ? "" : " and ", launch.operation);
    times += concat(times.empty() ? "" : " + ", launch.operation, ' ', time_text(launch.predicted_s));
  }
  return std::isfinite(seconds) ? concat("tilewave's ", times, " take ", time_text(seconds))
                                : concat("what tilewave's ", names, " take is not known");
}

// The waves, and their tail where there is one.
std::string waves_text(const ConvolutionPhase& phase) {
  std::string text = number_text(phase.waves, "%.2f");
  if (phase.tail_tiles > 0) text += concat(", tail ", count_text(phase.tail_tiles), " of ", count_text(phase.slots));
  return text;
}

}  // namespace

void print_convolution(std::ostream& stream, const ConvolutionText& text, const Page& page) {
  const auto& [question, phases, device] = text;
  const auto line = [&](const std::string& sentence) { stream << wrapped(sentence, page) << '\n'; };
  line(concat(question_text(question), " on ", device_text(device)));
  line(concat("each output is a dot product of ", count_text(question.dot_product()), " elements"));
  for (const ConvolutionPhase& phase : phases) {
    std::string sentence =
        concat(name_of(phase.role), ": an implicit GEMM is predicted to take ", time_text(seconds_or_nan(phase.implicit_s, device)));
    if (phase.floor_s > 0.0) sentence += concat(", the roofline time is ", time_text(phase.floor_s));
    line(concat(sentence, "; ", launches_text(phase, device)));
    if (phase.gemm_flops > phase.flops)
      line(concat("  its GEMM of M x N x K has ",
                  number_text(static_cast<double>(phase.gemm_flops) / static_cast<double>(phase.flops), "%.3g"),
                  " times the convolution's products; the others are with zeros, beside the outputs or between those of a stride"));
  }
  line(
      "an implicit GEMM reads pixels where they lie. tilewave has none yet: its time is a plan's for a GEMM of that size, and no kernel's");
  stream << '\n';
  Table table({{.heading = "phase", .align = Align::left},
               {.heading = "M"},
               {.heading = "N"},
               {.heading = "K"},
               {.heading = "tile"},
               {.heading = "tiles"},
               {.heading = "useful", .rank = 2},
               {.heading = "waves", .rank = 3},
               {.heading = "FLOP/B", .rank = 1},
               {.heading = "implicit GEMM"},
               {.heading = "tilewave's"}});
  for (const ConvolutionPhase& phase : phases) {
    table.add({std::string(name_of(phase.role)), count_text(phase.m), count_text(phase.n), count_text(phase.k), tile_text(phase.tile),
               count_text(phase.tiles), percent_text(phase.useful_fraction), waves_text(phase),
               number_text(intensity(cost_of(phase)), "%.4g"), time_text(seconds_or_nan(phase.implicit_s, device)),
               time_text(seconds_or_nan(phase.launched_s(), device))});
  }
  table.print(stream, page);
}

void print_convolution_json(std::ostream& stream, const ConvolutionText& text) {
  const ConvolutionQuestion& question = text.question;
  const DeviceInfo& device = text.device;
  const auto microseconds = [&](double seconds) { return 1e6 * seconds_or_nan(seconds, device); };
  const ConvolutionFilter& f = question.filter;
  const Images result = question.result();
  JsonObject whole;
  whole.add("kind", "convolution").add("device", device.name).add("sm_count", device.sm_count);
  whole.add("images", question.images.count).add("height", question.images.height).add("width", question.images.width);
  whole.add("channels", question.images.channels).add("filter_height", f.height).add("filter_width", f.width);
  whole.add("stride_down", f.stride_down).add("stride_across", f.stride_across);
  whole.add("padding_down", f.padding_down).add("padding_across", f.padding_across);
  whole.add("dilation_down", f.dilation_down).add("dilation_across", f.dilation_across);
  whole.add("effective_height", f.effective_height()).add("effective_width", f.effective_width());
  whole.add("output_height", result.height).add("output_width", result.width).add("output_channels", question.outputs);
  whole.add("dot_product", question.dot_product());
  stream << whole.text() << '\n';
  for (const ConvolutionPhase& phase : text.phases) {
    JsonObject object;
    object.add("kind", "convolution_gemm").add("device", device.name).add("role", name_of(phase.role));
    object.add("m", phase.m).add("n", phase.n).add("k", phase.k);
    object.add("flops", phase.flops).add("gemm_flops", phase.gemm_flops).add("bytes", phase.bytes);
    object.add("flops_per_byte", intensity(cost_of(phase)));
    object.add("kernel", name_of(phase.plan.composition)).add("tile", tile_text(phase.tile)).add("split", phase.plan.split);
    object.add("tiles", phase.tiles).add("tail_tiles", phase.tail_tiles).add("blocks_per_sm", ctas_per_sm(phase.plan, device));
    object.add("useful_fraction", phase.useful_fraction).add("waves", phase.waves).add("wave_fraction", phase.wave_fraction);
    object.add("least_us", phase.floor_s > 0.0 ? 1e6 * phase.floor_s : NAN).add("implicit_us", microseconds(phase.implicit_s));
    std::vector<JsonObject> launches;
    for (const ConvolutionLaunch& launch : phase.launches)
      launches.emplace_back().add("operation", launch.operation).add("predicted_us", microseconds(launch.predicted_s));
    object.add("predicted_us", microseconds(phase.launched_s())).add("launches", launches);
    stream << object.text() << '\n';
  }
}

}  // namespace tilewave
