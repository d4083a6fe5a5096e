// The GPU's side of kernels/core/memory.h: device memory from the driver's pool, in the order of the queue's stream, as are copies and
// fills; so memory that is given back is taken again without waiting.
#include "kernels/core/memory.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"

namespace tilewave {

// What was given back stays in the pool, and the driver counts it as taken.
std::int64_t free_bytes(CudaQueue& queue) {
  TW_CUDA(cudaStreamSynchronize(stream_of(queue)));
  std::size_t free = 0, total = 0;
  TW_CUDA(cudaMemGetInfo(&free, &total));
  cudaMemPool_t pool = nullptr;
  std::uint64_t reserved = 0, used = 0;
  TW_CUDA(cudaDeviceGetDefaultMemPool(&pool, device_of(queue).index));
  TW_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  TW_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  return static_cast<std::int64_t>(free + (reserved - used));
}

void* allocate(CudaQueue& queue, std::int64_t bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaMallocAsync(&data, static_cast<std::size_t>(bytes), stream_of(queue));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemory(concat("out of memory on ", device_of(queue).name, ": ", bytes, " bytes were asked for and ", free_bytes(queue),
                             " of ", device_of(queue).memory_bytes,
                             " are free; ask for less: a smaller batch.target_tokens, a smaller model, smaller operands."));
  }
  TW_CUDA(status);
  return data;
}

std::shared_ptr<void> allocate_staging(CudaQueue& queue, std::int64_t bytes) {
  void* data = nullptr;
  TW_CUDA(cudaMallocHost(&data, static_cast<std::size_t>(bytes)));
  return {data, [stream = queue.stream](void* host) { cudaFreeHost(host); }};
}

void release(CudaQueue& queue, void* data) noexcept { cudaFreeAsync(data, stream_of(queue)); }

void copy_to_host(CudaQueue& queue, void* host, const void* device, std::int64_t bytes) {
  TW_CUDA(cudaMemcpyAsync(host, device, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, stream_of(queue)));
  TW_CUDA(cudaStreamSynchronize(stream_of(queue)));
}

void copy_to_device(CudaQueue& queue, void* device, const void* host, std::int64_t bytes) {
  TW_CUDA(cudaMemcpyAsync(device, host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream_of(queue)));
}

void copy_on_device(CudaQueue& queue, void* to, const void* from, std::int64_t bytes) {
  TW_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream_of(queue)));
}

void fill_bytes(CudaQueue& queue, void* device, int value, std::int64_t bytes) {
  TW_CUDA(cudaMemsetAsync(device, value, static_cast<std::size_t>(bytes), stream_of(queue)));
}

void copy_rows_to_host(CudaQueue& queue, void* host, const RowsInMemory& rows) {
  const auto bytes = static_cast<std::size_t>(rows.row_bytes);
  TW_CUDA(cudaMemcpy2DAsync(host, bytes, rows.device, static_cast<std::size_t>(rows.pitch), bytes, static_cast<std::size_t>(rows.rows),
                            cudaMemcpyDeviceToHost, stream_of(queue)));
  TW_CUDA(cudaStreamSynchronize(stream_of(queue)));
}

void copy_rows_to_device(CudaQueue& queue, const RowsInMemory& rows, const void* host) {
  const auto bytes = static_cast<std::size_t>(rows.row_bytes);
  TW_CUDA(cudaMemcpy2DAsync(rows.device, static_cast<std::size_t>(rows.pitch), host, bytes, bytes, static_cast<std::size_t>(rows.rows),
                            cudaMemcpyHostToDevice, stream_of(queue)));
}

}  // namespace tilewave
