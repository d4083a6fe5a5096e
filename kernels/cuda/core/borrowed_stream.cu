// Streams of other libraries in the same process. A runtime linked into this one and theirs share the device's primary context, and so
// its streams.
#include <utility>

#include "kernels/core/borrowed_stream.h"
#include "kernels/core/memory.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"

namespace tilewave {

// The flags are those of a stream made for them, which are zeros before the borrowed one is told of.
CudaQueue borrow_cuda_stream(int index, void* stream) {
  const std::shared_ptr<CudaStream> own = make_cuda_stream(index);
  TW_CUDA(cudaStreamSynchronize(own->handle));
  const cudaStream_t handle = std::exchange(own->handle, static_cast<cudaStream_t>(stream));
  const auto give_back = [own, handle](CudaStream*) { own->handle = handle; };
  return {.stream = std::shared_ptr<CudaStream>(own.get(), give_back)};
}

std::uint64_t capture_of(void* stream) {
  if (stream == nullptr) return 0;  // the default stream is never captured, and may not be asked while another one is
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
  TW_CUDA(cudaStreamGetCaptureInfo(static_cast<cudaStream_t>(stream), &status, &number));
  return status == cudaStreamCaptureStatusActive ? number + 1 : 0;
}

void* allocate_unordered(CudaQueue& queue, std::int64_t bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, static_cast<std::size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemory(concat("out of memory on ", device_of(queue).name, ": ", bytes, " bytes of workspace were asked for."));
  }
  TW_CUDA(status);
  return data;
}

void release_unordered(CudaQueue&, void* data) noexcept { cudaFree(data); }

CudaScope::CudaScope(int index) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  TW_CUDA(cudaGetDevice(&device_before_));
  TW_CUDA(cudaSetDevice(index));
  TW_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  capture_mode_before_ = static_cast<int>(mode);
}

CudaScope::~CudaScope() {
  auto mode = static_cast<cudaStreamCaptureMode>(capture_mode_before_);
  cudaThreadExchangeStreamCaptureMode(&mode);
  cudaSetDevice(device_before_);
}

}  // namespace tilewave
