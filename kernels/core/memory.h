// Device memory of a queue: allocate, copy, fill. Allocations are aligned to kAlignment bytes. Copies and fills are ordered
// with the queue's launches; copies to the host have arrived when the call returns. Under a TraceQueue addresses are
// distinct, aligned and never dereferenced, and copies and fills do nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "kernels/core/error.h"
#include "kernels/core/queue.h"

namespace tilewave {

inline constexpr std::int64_t kAlignment = 256;

class OutOfMemory : public Error {
 public:
  using Error::Error;
};

void* allocate(Queue& queue, std::int64_t bytes);  // throws OutOfMemory where there is not enough
void release(Queue& queue, void* data) noexcept;
void copy_to_host(Queue& queue, void* host, const void* device, std::int64_t bytes);
void copy_to_device(Queue& queue, void* device, const void* host, std::int64_t bytes);
void copy_on_device(Queue& queue, void* to, const void* from, std::int64_t bytes);
void fill_bytes(Queue& queue, void* device, int value, std::int64_t bytes);

// Rows that lie `pitch` bytes apart on the device and one behind another on the host.
struct RowsInMemory {
  void* device = nullptr;
  std::int64_t pitch = 0, row_bytes = 0, rows = 0;
};
void copy_rows_to_host(Queue& queue, void* host, const RowsInMemory& rows);
void copy_rows_to_device(Queue& queue, const RowsInMemory& rows, const void* host);

// Memory of the host that a GPU reads by itself: a copy from it to the device returns before it is done.
std::shared_ptr<void> allocate_staging(CudaQueue& queue, std::int64_t bytes);

// What can be had now. Absent where nothing tells, as under a TraceQueue.
std::optional<std::int64_t> free_bytes(Queue& queue);
std::optional<std::int64_t> free_bytes(CpuQueue& queue);
std::int64_t free_bytes(CudaQueue& queue);

// The back ends' own, which the functions above forward to.
void* allocate(CpuQueue& queue, std::int64_t bytes);
void release(CpuQueue& queue, void* data) noexcept;
void copy_to_host(CpuQueue& queue, void* host, const void* device, std::int64_t bytes);
void copy_to_device(CpuQueue& queue, void* device, const void* host, std::int64_t bytes);
void copy_on_device(CpuQueue& queue, void* to, const void* from, std::int64_t bytes);
void fill_bytes(CpuQueue& queue, void* device, int value, std::int64_t bytes);
void copy_rows_to_host(CpuQueue& queue, void* host, const RowsInMemory& rows);
void copy_rows_to_device(CpuQueue& queue, const RowsInMemory& rows, const void* host);
void* allocate(CudaQueue& queue, std::int64_t bytes);
void release(CudaQueue& queue, void* data) noexcept;
void copy_to_host(CudaQueue& queue, void* host, const void* device, std::int64_t bytes);
void copy_to_device(CudaQueue& queue, void* device, const void* host, std::int64_t bytes);
void copy_on_device(CudaQueue& queue, void* to, const void* from, std::int64_t bytes);
void fill_bytes(CudaQueue& queue, void* device, int value, std::int64_t bytes);
void copy_rows_to_host(CudaQueue& queue, void* host, const RowsInMemory& rows);
void copy_rows_to_device(CudaQueue& queue, const RowsInMemory& rows, const void* host);

}  // namespace tilewave
