// The GPU's side of kernels/core/queue.h. A stream is bound to its device once; one thread drives one device.
#include <utility>

#include "kernels/cuda/core/sm_order.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"

namespace tilewave {

namespace {

void end(cudaStream_t stream, unsigned* flags) {
  if (flags != nullptr) cudaFreeAsync(flags, stream);
  cudaStreamDestroy(stream);
}

}  // namespace

CudaStream::CudaStream(DeviceInfo info) : device(std::move(info)) {
  TW_CUDA(cudaSetDevice(device.index));
  sms = sms_by_gpc(device);
  TW_CUDA(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking));
  try {
    cudaMemPool_t pool = nullptr;
    std::uint64_t kept_bytes = UINT64_MAX;  // memory stays in the pool until the process ends
    TW_CUDA(cudaDeviceGetDefaultMemPool(&pool, device.index));
    TW_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept_bytes));
    const std::size_t flag_bytes = static_cast<std::size_t>(flags_of_stream(device)) * sizeof(*flags);
    TW_CUDA(cudaMallocAsync(&flags, flag_bytes, handle));
    TW_CUDA(cudaMemsetAsync(flags, 0, flag_bytes, handle));
  } catch (...) {
    end(handle, flags);
    throw;
  }
}

CudaStream::~CudaStream() { end(handle, flags); }

std::shared_ptr<CudaStream> make_cuda_stream(int index) {
  const CudaDevices devices = probe_cuda();
  for (const DeviceInfo& device : devices.usable) {
    if (device.index == index) return std::make_shared<CudaStream>(device);
  }
  throw Error(devices.refused.empty() ? concat("there is no GPU number ", index, "; tilewave devices lists those there are.")
                                      : devices.refused);
}

void synchronize(CudaQueue& queue) { TW_CUDA(cudaStreamSynchronize(stream_of(queue))); }

}  // namespace tilewave
