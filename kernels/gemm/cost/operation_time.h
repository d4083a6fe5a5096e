// What an operation that is no GEMM takes on a GPU, predicted: its launches, and then
//   bound by memory   its bytes, at a share of the rate at which a device copy moves them
//   attention         blocks, each a window of queries whose time is linear in the keys that pass by; or its bytes, if they take longer
//   short attention   of segments that a block has whole: a start, its bytes, and draws
//   ranks together    hops around a ring of them, and the bytes that pass each link, or its own memory's, if they take longer
// The numbers are operation_model.h's; an operation's launches, and which share is its own, stand beside its cost() (core/trace.h).
#pragma once

#include <cstdint>

#include "kernels/core/device.h"
#include "kernels/core/trace.h"

namespace tilewave {

// A ring: each rank sends to the next one. A sum that all have goes around twice, the first time as shares that are added to; a broadcast's
// pieces follow each other.
struct Ring {
  std::int64_t hops = 0;
  double link_bytes = 0.0;  // that pass a link, in one direction
};
Ring ring_of(const CollectiveWork& work);

// 0 where the device's bandwidth is not known, as a CPU's, or the links' of ranks that need them. Error for a GEMM, whose plan says what it
// takes.
double predicted_seconds(const TraceEntry& entry, const DeviceInfo& device);

}  // namespace tilewave
