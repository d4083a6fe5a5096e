#include "framework/io/event_file.h"

#include <bit>

#include "framework/io/checksum.h"

namespace tilewave {
namespace {

// Numbers of fields in event.proto and summary.proto.
constexpr std::uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;  // of an Event
constexpr std::uint32_t kValue = 1;                                                // of its Summary
constexpr std::uint32_t kTag = 1, kSimpleValue = 2;                                // of a Value
// How a field's value is written.
enum class WireType : std::uint32_t { varint = 0, fixed64 = 1, length_delimited = 2, fixed32 = 5 };

template <class Word>
void add_little_endian(std::string& bytes, Word word) {
  for (std::size_t i = 0; i < sizeof word; ++i) bytes += static_cast<char>(word >> (8 * i) & 0xFF);
}

void add_varint(std::string& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  bytes += static_cast<char>(value);
}

void add_key(std::string& bytes, std::uint32_t field, WireType type) { add_varint(bytes, field << 3 | static_cast<std::uint32_t>(type)); }

void add_bytes(std::string& bytes, std::uint32_t field, std::string_view content) {
  add_key(bytes, field, WireType::length_delimited);
  add_varint(bytes, content.size());
  bytes += content;
}

std::uint32_t masked_checksum(std::string_view bytes) {
  constexpr std::uint32_t kMask = 0xa282ead8;
  return std::rotr(crc32c(std::as_bytes(std::span(bytes))), 15) + kMask;
}

std::string framed(std::string_view event) {
  std::string record;
  add_little_endian(record, static_cast<std::uint64_t>(event.size()));
  add_little_endian(record, masked_checksum(record));
  record += event;
  add_little_endian(record, masked_checksum(event));
  return record;
}

std::string event_at(double wall_time_s) {
  std::string event;
  add_key(event, kWallTime, WireType::fixed64);
  add_little_endian(event, std::bit_cast<std::uint64_t>(wall_time_s));
  return event;
}

}  // namespace

std::string event_version_record(double wall_time_s) {
  std::string event = event_at(wall_time_s);
  add_bytes(event, kFileVersion, "brain.Event:2");
  return framed(event);
}

std::string event_record(const ScalarEvent& event) {
  std::string bytes = event_at(event.wall_time_s);
  add_key(bytes, kStep, WireType::varint);
  add_varint(bytes, static_cast<std::uint64_t>(event.step));
  std::string summary;
  for (const EventScalar& scalar : event.scalars) {
    std::string value;
    add_bytes(value, kTag, scalar.tag);
    add_key(value, kSimpleValue, WireType::fixed32);
    add_little_endian(value, std::bit_cast<std::uint32_t>(static_cast<float>(scalar.value)));
    add_bytes(summary, kValue, value);
  }
  add_bytes(bytes, kSummary, summary);
  return framed(bytes);
}

}  // namespace tilewave
