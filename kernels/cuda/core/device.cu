// Probes the GPUs for kernels/core/device.h through the CUDA runtime, which finds the driver when it is asked, not before.
#include <fstream>

#include "kernels/core/device.h"
#include "kernels/core/device_profiles.h"
#include "kernels/cuda/prim/check.h"

namespace tilewave {
namespace {

std::int64_t attribute(cudaDeviceAttr which, int index) {
  int value = 0;
  TW_CUDA(cudaDeviceGetAttribute(&value, which, index));
  return value;
}

std::string version(int number) { return concat(number / 1000, ".", number % 1000 / 10); }

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  ...": the first word with a dot that begins with a digit.
std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    if (word.front() >= '0' && word.front() <= '9' && word.find('.') != std::string::npos) return word;
  }
  int number = 0;
  TW_CUDA(cudaDriverGetVersion(&number));
  return concat("of CUDA ", version(number));
}

DeviceInfo probe(int index) {
  cudaDeviceProp properties{};
  TW_CUDA(cudaGetDeviceProperties(&properties, index));
  DeviceInfo device = {.backend = Backend::cuda,
                       .name = properties.name,
                       .index = index,
                       .capability = 10 * properties.major + properties.minor,
                       .sm_count = properties.multiProcessorCount,
                       .instruction_set = {},
                       .l2_bytes = properties.l2CacheSize,
                       .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
                       .shared_bytes = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin),
                       .clock_hz = 1e3 * static_cast<double>(attribute(cudaDevAttrClockRate, index)),
                       .bandwidth_bytes_per_s = 2e3 * static_cast<double>(attribute(cudaDevAttrMemoryClockRate, index)) *
                                                static_cast<double>(properties.memoryBusWidth) / 8.0,
                       .driver = driver_version()};
  // Its maker's figure: the runtime tells of no link's rate.
  if (const DeviceProfile* const profile = find_profile(device)) device.link_bytes_per_s = profile->device.link_bytes_per_s;
  return device;
}

}  // namespace

bool has_cuda() { return true; }

CudaDevices probe_cuda() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0) return {.usable = {}, .refused = "this machine has no NVIDIA driver; install one, or use --device cpu."};
    return {.usable = {},
            .refused = concat("the NVIDIA driver knows CUDA ", version(driver), " and this build needs ", version(runtime),
                              "; install a newer driver, or use --device cpu.")};
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
    return {.usable = {}, .refused = "the NVIDIA driver shows no GPU to this process; see CUDA_VISIBLE_DEVICES, or use --device cpu."};
  }
  if (status != cudaSuccess) {
    return {.usable = {}, .refused = concat("the GPUs cannot be asked for: ", cudaGetErrorString(status), "; use --device cpu.")};
  }
  CudaDevices devices;
  for (int index = 0; index < count; ++index) {
    const DeviceInfo device = probe(index);
    if (device.capability >= kMinCudaCapability) {
      devices.usable.push_back(device);
      continue;
    }
    devices.refused += concat(devices.refused.empty() ? "" : " ", "GPU ", index, ", ", device.name, ", has compute capability ",
                              device.capability / 10, ".", device.capability % 10, ", and tilewave needs 8.0 or newer.");
  }
  return devices;
}

}  // namespace tilewave
