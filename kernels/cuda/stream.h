// A CUDA stream and what launches ask of its device.
#pragma once

#include <cuda_runtime.h>

#include "kernels/device.h"
#include "kernels/queue.h"

namespace tilewave {

struct CudaStream {
  DeviceInfo device;
  cudaStream_t handle = nullptr;

  explicit CudaStream(DeviceInfo info);
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
};

inline cudaStream_t stream_of(const CudaQueue& queue) { return queue.stream->handle; }
inline const DeviceInfo& device_of(const CudaQueue& queue) { return queue.stream->device; }

}  // namespace tilewave
