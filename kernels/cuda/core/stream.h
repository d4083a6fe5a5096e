// A CUDA stream and what launches ask of its device.
#pragma once

#include <cuda_runtime.h>
#include <vector>

#include "kernels/core/device.h"
#include "kernels/core/error.h"
#include "kernels/core/queue.h"

namespace tilewave {

struct CudaStream {
  DeviceInfo device;
  cudaStream_t handle = nullptr;
  std::vector<int> sms;       // of one GPC one after the other: see sm_order.h
  unsigned* flags = nullptr;  // [flags_of_stream]: zeros between launches, for blocks that agree: see prim/flag.h, gemm/tile_places.h

  explicit CudaStream(DeviceInfo info);
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
};

inline std::int64_t flags_of_stream(const DeviceInfo& device) { return 32 * device.sm_count; }

inline cudaStream_t stream_of(const CudaQueue& queue) { return queue.stream->handle; }
inline const DeviceInfo& device_of(const CudaQueue& queue) { return queue.stream->device; }

// So many of the stream's flags, zeros, which a kernel leaves as it finds them.
inline unsigned* flags_of(const CudaQueue& queue, std::int64_t count) {
  const std::int64_t there = flags_of_stream(device_of(queue));
  TW_CHECK(count <= there, "a launch asks for ", count, " flags, and a stream has ", there, ".");
  return queue.stream->flags;
}

}  // namespace tilewave
