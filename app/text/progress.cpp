// Progress on stderr.
#include "app/text/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <unistd.h>

#include "app/text/losses.h"
#include "app/text/terminal.h"
#include "app/text/units.h"

namespace tilewave {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr std::int64_t kPlainLines = 20;
constexpr std::size_t kBarWidth = 24;

std::string format(const char* pattern, auto... values) {
  char text[160];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::lround(std::clamp(seconds, 0.0, 359999.0)));
  if (whole >= 3600) return format("%ld:%02ld:%02ld", long{whole / 3600}, long{whole / 60 % 60}, long{whole % 60});
  return format("%ld:%02ld", long{whole / 60}, long{whole % 60});
}

std::size_t terminal_width() { return terminal_columns(STDERR_FILENO).value_or(1); }

std::string bar(double done) {
  const auto full = static_cast<std::size_t>(done * static_cast<double>(kBarWidth));
  return "[" + std::string(full, '#') + std::string(kBarWidth - full, '.') + "] ";
}

}  // namespace

ProgressDisplay::ProgressDisplay(std::int64_t steps) : steps_(steps), terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressDisplay::~ProgressDisplay() { clear(); }

void ProgressDisplay::clear() {
  if (drawn_) std::cerr << '\r' << std::string(terminal_width() - 1, ' ') << '\r' << std::flush;
  drawn_ = false;
}

void ProgressDisplay::show(const TrainingProgress& progress) {
  const auto now = std::chrono::steady_clock::now();
  const std::int64_t step = progress.step.step;
  const bool last = step == steps_;
  if (terminal_ ? now - redrawn_ < kRedraw && !last : step % std::max<std::int64_t>(1, steps_ / kPlainLines) != 0 && !last) return;
  redrawn_ = now;
  const double taken = std::chrono::duration<double>(now - begun_).count();
  const double left = taken / static_cast<double>(step - first_step_ + 1) * static_cast<double>(steps_ - step);
  const std::string counts = format("step %ld/%ld", long{step}, long{steps_});
  const std::string loss = concat("  ", kTrainingLoss, format(" %.4f", progress.step.loss));
  const std::string rest = concat("  ", rate_text(progress.target_tokens_per_s), " ", unit_, "/s  ", duration(left), " left");
  if (!terminal_) {
    std::cerr << counts << loss << rest << '\n';
    return;
  }
  // What does not fit is left out, the least telling first.
  const std::size_t width = terminal_width() - 1;
  const std::string drawing = bar(static_cast<double>(step) / static_cast<double>(steps_));
  std::string line = counts;
  if (line.size() + loss.size() <= width) line += loss;
  if (line.size() + rest.size() <= width) line += rest;
  if (line.size() + drawing.size() <= width) line.insert(0, drawing);
  line.resize(width, ' ');
  std::cerr << '\r' << line << std::flush;
  drawn_ = true;
}

void ProgressDisplay::say(const std::string& line) {
  clear();
  std::cerr << line << '\n';
}

}  // namespace tilewave
