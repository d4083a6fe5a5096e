// Each call goes to its queue's back end. A trace hands out addresses from a range that is never mapped, and copies nothing.
#include "kernels/core/memory.h"

namespace tilewave {
namespace {

constexpr std::int64_t rounded(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// back_end(queue) where the queue has memory of its own.
template <class Fn>
void forward(Queue& queue, Fn&& back_end) {
  std::visit(
      [&]<class Q>(Q& q) {
        if constexpr (!std::is_same_v<Q, TraceQueue>) back_end(q);
      },
      queue);
}

}  // namespace

std::optional<std::int64_t> free_bytes(Queue& queue) {
  std::optional<std::int64_t> bytes;
  forward(queue, [&](auto& q) { bytes = free_bytes(q); });
  return bytes;
}

void* allocate(Queue& queue, std::int64_t bytes) {
  void* data = nullptr;
  if (auto* trace = std::get_if<TraceQueue>(&queue)) {
    data = reinterpret_cast<void*>(trace->next_address);  // NOLINT: an address nobody reads
    trace->next_address += static_cast<std::uintptr_t>(rounded(bytes));
  }
  forward(queue, [&](auto& q) { data = allocate(q, rounded(bytes)); });
  return data;
}

void release(Queue& queue, void* data) noexcept {
  forward(queue, [&](auto& q) { release(q, data); });
}

void copy_to_host(Queue& queue, void* host, const void* device, std::int64_t bytes) {
  forward(queue, [&](auto& q) { copy_to_host(q, host, device, bytes); });
}

void copy_to_device(Queue& queue, void* device, const void* host, std::int64_t bytes) {
  forward(queue, [&](auto& q) { copy_to_device(q, device, host, bytes); });
}

void copy_on_device(Queue& queue, void* to, const void* from, std::int64_t bytes) {
  forward(queue, [&](auto& q) { copy_on_device(q, to, from, bytes); });
}

void fill_bytes(Queue& queue, void* device, int value, std::int64_t bytes) {
  forward(queue, [&](auto& q) { fill_bytes(q, device, value, bytes); });
}

void copy_rows_to_host(Queue& queue, void* host, const RowsInMemory& rows) {
  forward(queue, [&](auto& q) { copy_rows_to_host(q, host, rows); });
}

void copy_rows_to_device(Queue& queue, const RowsInMemory& rows, const void* host) {
  forward(queue, [&](auto& q) { copy_rows_to_device(q, rows, host); });
}

}  // namespace tilewave
