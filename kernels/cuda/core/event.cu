// The GPU's side of kernels/core/event.h: CUDA events, and NVTX ranges in a domain of their own.
#include <nvtx3/nvToolsExt.h>

#include "kernels/core/event.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"

namespace tilewave {

struct CudaEvent {
  cudaEvent_t handle = nullptr;

  CudaEvent() { TW_CUDA(cudaEventCreate(&handle)); }
  ~CudaEvent() { cudaEventDestroy(handle); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
};

void record(CudaQueue& queue, std::shared_ptr<CudaEvent>& event) {
  if (event == nullptr) event = std::make_shared<CudaEvent>();
  TW_CUDA(cudaEventRecord(event->handle, stream_of(queue)));
}

double seconds_between(const CudaEvent& earlier, const CudaEvent& later) {
  TW_CUDA(cudaEventSynchronize(later.handle));
  float milliseconds = 0.0F;
  TW_CUDA(cudaEventElapsedTime(&milliseconds, earlier.handle, later.handle));
  return 1e-3 * static_cast<double>(milliseconds);
}

void wait(const CudaEvent& event) { TW_CUDA(cudaEventSynchronize(event.handle)); }

namespace {

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = nvtxDomainCreateA("tilewave");
  return handle;
}

}  // namespace

void push_cuda_range(const char* name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  nvtxDomainRangePushEx(domain(), &attributes);
}

void pop_cuda_range() { nvtxDomainRangePop(domain()); }

}  // namespace tilewave
