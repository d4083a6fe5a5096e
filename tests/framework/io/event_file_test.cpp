// Event files byte by byte, and as TensorBoard itself reads them where a Python has it.
#include "framework/io/event_file.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

#include "tests/shell.h"

namespace tilewave {
namespace {

std::string hex_of(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kHex[static_cast<unsigned char>(c) >> 4];
    text += kHex[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

// Taken apart by hand: 24 bytes, their checksum; wall_time 1.0, file_version "brain.Event:2"; the checksum of those.
TEST(EventFile, BeginsWithItsVersion) {
  EXPECT_EQ(hex_of(event_version_record(1.0)),
            "1800000000000000"
            "a37f4b22"
            "09000000000000f03f"
            "1a0d627261696e2e4576656e743a32"
            "86bf577a");
}

// wall_time 2.5, step 300 (a varint of two bytes), a summary of one value: tag "a/b", simple_value 0.5.
TEST(EventFile, HoldsNumbersOfAStep) {
  const EventScalar scalar{.tag = "a/b", .value = 0.5};
  EXPECT_EQ(hex_of(event_record({.wall_time_s = 2.5, .step = 300, .scalars = std::span(&scalar, 1)})),
            "1a00000000000000"
            "129bd82d"
            "090000000000000440"
            "10ac02"
            "2a0c0a0a0a03612f62150000003f"
            "2877e157");
}

TEST(EventFile, TensorBoardReadsIt) {
  const char* named = std::getenv("TILEWAVE_PYTHON");
  const std::string python = named != nullptr ? named : "python3";
  if (shell(quoted(python) + " -c 'import tensorboard'", "/").status != 0)
    GTEST_SKIP() << python << " has no tensorboard, so an event file was NOT read by it (TILEWAVE_PYTHON names one that has)";
  const TemporaryFolder folder;
  std::string file = event_version_record(1.7e9);
  for (int step = 1; step <= 300; ++step) {
    const EventScalar scalars[] = {{.tag = "loss/training", .value = 1.0 / step}, {.tag = "optimizer/learning_rate", .value = 1e-3 * step}};
    file += event_record({.wall_time_s = 1.7e9 + step, .step = step, .scalars = scalars});
  }
  write_text(folder.path() / "events.out.tfevents.tilewave", file);
  const Outcome read = shell(quoted(python) + R"( -c '
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(".", size_guidance={"scalars": 0})
events.Reload()
print(sorted(events.Tags()["scalars"]))
for tag in sorted(events.Tags()["scalars"]):
    points = events.Scalars(tag)
    print(len(points), points[-1].step, points[-1].wall_time, round(points[-1].value, 6))
' 2>errors || cat errors)",
                             folder.path());
  EXPECT_EQ(read.output, "['loss/training', 'optimizer/learning_rate']\n300 300 1700000300.0 0.003333\n300 300 1700000300.0 0.3\n");
}

}  // namespace
}  // namespace tilewave
