// Blocks of a cluster run in one GPC: many clusters, each of whose blocks says where it is, and SMs that were seen together are one GPC's.
// A few TPCs of some GPUs take no cluster larger than two: to the scheduler each of them is a GPC of its own, and here too.
#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

#include "kernels/cuda/core/sm_order.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/cuda/prim/cluster.h"

namespace tilewave {
namespace {

constexpr int kThreads = 128, kClusters = 512;

__global__ void say_where(int* sms) {
  if (threadIdx.x != 0) return;
  sms[blockIdx.x] = static_cast<int>(sm_number());
}

// The SMs that the blocks of kClusters clusters ran on, cluster by cluster.
std::vector<int> sms_of_clusters(int size) {
  std::vector<int> sms(static_cast<std::size_t>(kClusters * size));
  const std::size_t bytes = sms.size() * sizeof(sms[0]);
  int* on_device = nullptr;
  TW_CUDA(cudaMalloc(&on_device, bytes));
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {.x = static_cast<unsigned>(size), .y = 1, .z = 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(sms.size()));
  config.blockDim = dim3(kThreads);
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, say_where, on_device);
  const cudaError_t launched = cudaGetLastError();
  const cudaError_t copied = cudaMemcpy(sms.data(), on_device, bytes, cudaMemcpyDeviceToHost);
  cudaFree(on_device);
  TW_CUDA(launched);
  TW_CUDA(copied);
  return sms;
}

std::vector<int> find_order(const DeviceInfo& device) {
  if (device.capability != 90) return {};
  std::vector<int> gpc(static_cast<std::size_t>(device.sm_count));  // the least number of an SM that is known to be of the same
  std::iota(gpc.begin(), gpc.end(), 0);
  const auto join = [&](int a, int b) {
    const int least = std::min(gpc[a], gpc[b]), other = std::max(gpc[a], gpc[b]);
    std::replace(gpc.begin(), gpc.end(), other, least);
  };
  for (const int size : {2, 4, 8}) {
    const std::vector<int> sms = sms_of_clusters(size);
    if (*std::max_element(sms.begin(), sms.end()) >= device.sm_count) return {};  // a part of a GPU, numbered as the whole
    for (std::size_t i = 0; i < sms.size(); ++i) join(sms[i], sms[i - i % static_cast<std::size_t>(size)]);
  }
  std::vector<int> order(gpc.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return gpc[a] < gpc[b]; });
  return order;
}

}  // namespace

const std::vector<int>& sms_by_gpc(const DeviceInfo& device) {
  static std::mutex mutex;
  static std::map<int, std::vector<int>> orders;
  const std::lock_guard lock(mutex);
  const auto found = orders.find(device.index);
  return found != orders.end() ? found->second : orders.emplace(device.index, find_order(device)).first->second;
}

}  // namespace tilewave
