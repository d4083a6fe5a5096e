// The event files that TensorBoard reads: records {length, its checksum, an Event, its checksum}, where an Event is a protocol buffer and a
// checksum a masked CRC-32C (TensorFlow: tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto and
// tensorflow/core/framework/summary.proto). Here an Event holds the file's version, or numbers of a step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tilewave {

struct EventScalar {
  std::string_view tag;  // "loss/training"; TensorBoard groups by what is before the slash
  double value = 0.0;    // stored as fp32
};

struct ScalarEvent {
  double wall_time_s = 0.0;  // since 1970
  std::int64_t step = 0;
  std::span<const EventScalar> scalars;
};

std::string event_version_record(double wall_time_s);  // the first one of a file
std::string event_record(const ScalarEvent& event);

}  // namespace tilewave
