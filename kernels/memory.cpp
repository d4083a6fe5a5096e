// Memory of each queue. A trace hands out addresses from a range that is never mapped.
#include "kernels/memory.h"

#include <cstring>
#include <new>

namespace tilewave {
namespace {

[[noreturn]] void no_cuda() { throw Error("this build of tilewave has no CUDA memory; use --device cpu."); }

}  // namespace

void* allocate(Queue& queue, std::int64_t bytes) {
  const std::int64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (std::holds_alternative<CpuQueue>(queue)) {
    void* data = ::operator new (static_cast<std::size_t>(rounded), std::align_val_t{kAlignment}, std::nothrow);
    TW_CHECK(data != nullptr, "out of memory: ", rounded, " bytes could not be allocated; use a smaller batch.target_tokens or model.");
    return data;
  }
  if (auto* trace = std::get_if<TraceQueue>(&queue)) {
    void* data = reinterpret_cast<void*>(trace->next_address);  // NOLINT: an address nobody reads
    trace->next_address += static_cast<std::uintptr_t>(rounded);
    return data;
  }
  no_cuda();
}

void release(Queue& queue, void* data) noexcept {
  if (std::holds_alternative<CpuQueue>(queue)) ::operator delete (data, std::align_val_t{kAlignment});
}

void copy_to_host(Queue& queue, void* host, const void* device, std::int64_t bytes) {
  if (std::holds_alternative<CudaQueue>(queue)) no_cuda();
  if (std::holds_alternative<CpuQueue>(queue)) std::memcpy(host, device, static_cast<std::size_t>(bytes));
}

void copy_to_device(Queue& queue, void* device, const void* host, std::int64_t bytes) {
  if (std::holds_alternative<CudaQueue>(queue)) no_cuda();
  if (std::holds_alternative<CpuQueue>(queue)) std::memcpy(device, host, static_cast<std::size_t>(bytes));
}

void fill_bytes(Queue& queue, void* device, int value, std::int64_t bytes) {
  if (std::holds_alternative<CudaQueue>(queue)) no_cuda();
  if (std::holds_alternative<CpuQueue>(queue)) std::memset(device, value, static_cast<std::size_t>(bytes));
}

}  // namespace tilewave
