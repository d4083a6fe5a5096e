// The GPU's side of kernels/core/graph.h: stream capture, instantiated once.
#include <memory>

#include "kernels/core/graph.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"

namespace tilewave {

Graph capture(CudaQueue& queue, const std::function<void()>& launches) {
  cudaGraph_t graph = nullptr;
  TW_CUDA(cudaStreamBeginCapture(stream_of(queue), cudaStreamCaptureModeThreadLocal));
  try {
    launches();
  } catch (...) {
    cudaStreamEndCapture(stream_of(queue), &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();  // the next launch is not to blame
    throw;
  }
  TW_CUDA(cudaStreamEndCapture(stream_of(queue), &graph));
  cudaGraphExec_t executable = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  TW_CUDA(status);
  const std::shared_ptr<CUgraphExec_st> owner(executable, [stream = queue.stream](cudaGraphExec_t exec) { cudaGraphExecDestroy(exec); });
  return Graph([owner, stream = queue.stream] { TW_CUDA(cudaGraphLaunch(owner.get(), stream->handle)); });
}

}  // namespace tilewave
