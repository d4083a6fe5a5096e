// The CPU's side of kernels/core/memory.h.
#include "kernels/core/memory.h"

#include <cstring>
#include <new>

#include "kernels/cpu/core/free_memory.h"

namespace tilewave {

std::optional<std::int64_t> free_bytes(CpuQueue&) { return free_memory("/"); }

void* allocate(CpuQueue&, std::int64_t bytes) {
  void* data = ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{kAlignment}, std::nothrow);
  if (data == nullptr) {
    throw OutOfMemory(concat("out of memory: ", bytes,
                             " bytes could not be allocated; ask for less: a smaller batch.target_tokens, a smaller model, smaller "
                             "operands."));
  }
  return data;
}

void release(CpuQueue&, void* data) noexcept { ::operator delete (data, std::align_val_t{kAlignment}); }

void copy_to_host(CpuQueue&, void* host, const void* device, std::int64_t bytes) {
  std::memcpy(host, device, static_cast<std::size_t>(bytes));
}

void copy_to_device(CpuQueue&, void* device, const void* host, std::int64_t bytes) {
  std::memcpy(device, host, static_cast<std::size_t>(bytes));
}

void copy_on_device(CpuQueue&, void* to, const void* from, std::int64_t bytes) { std::memcpy(to, from, static_cast<std::size_t>(bytes)); }

void fill_bytes(CpuQueue&, void* device, int value, std::int64_t bytes) { std::memset(device, value, static_cast<std::size_t>(bytes)); }

void copy_rows_to_host(CpuQueue&, void* host, const RowsInMemory& rows) {
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    std::memcpy(static_cast<char*>(host) + r * rows.row_bytes, static_cast<const char*>(rows.device) + r * rows.pitch,
                static_cast<std::size_t>(rows.row_bytes));
  }
}

void copy_rows_to_device(CpuQueue&, const RowsInMemory& rows, const void* host) {
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    std::memcpy(static_cast<char*>(rows.device) + r * rows.pitch, static_cast<const char*>(host) + r * rows.row_bytes,
                static_cast<std::size_t>(rows.row_bytes));
  }
}

}  // namespace tilewave
