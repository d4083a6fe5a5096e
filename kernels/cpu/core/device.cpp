// Probes the CPU for kernels/core/device.h: /proc/cpuinfo, /sys/devices/system/cpu, sysconf and Highway's dispatch.
// What none of them tells stays 0.
#include "kernels/core/device.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>

#include "kernels/cpu/core/thread_pool.h"
#include "kernels/gemm/cpu/amx_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/core/device.cpp"  // NOLINT
#include <hwy/foreach_target.h>                           // NOLINT: includes this file once a target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

std::int64_t vector_bytes() {
  return static_cast<std::int64_t>(hwy::HWY_NAMESPACE::Lanes(hwy::HWY_NAMESPACE::ScalableTag<std::uint8_t>()));
}
const char* instruction_set() { return hwy::TargetName(HWY_TARGET); }

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tilewave {
namespace {

HWY_EXPORT(vector_bytes);
HWY_EXPORT(instruction_set);

// The first value of `key` in /proc/cpuinfo ("model name : Intel(R) ..."); empty where there is none.
std::string cpuinfo(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with(key) && colon != std::string::npos && line.find_last_not_of(" \t", colon - 1) + 1 == key.size()) {
      const std::size_t value = line.find_first_not_of(" \t", colon + 1);
      return value == std::string::npos ? std::string() : line.substr(value);
    }
  }
  return {};
}

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// Bytes of the first CPU's data or unified cache of that level.
std::int64_t cache_bytes(int level, int sysconf_name) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    if (first_word(folder + "level") != std::to_string(level) || first_word(folder + "type") == "Instruction") continue;
    const std::string size = first_word(folder + "size");  // "48K"
    if (size.empty()) continue;
    const std::int64_t unit = size.back() == 'K' ? 1 << 10 : size.back() == 'M' ? 1 << 20 : 1;
    return std::atoll(size.c_str()) * unit;
  }
  const long bytes = sysconf(sysconf_name);
  return bytes > 0 ? bytes : 0;
}

// The highest clock the system names, else the one /proc/cpuinfo shows.
double clock_hz() {
  const std::string khz = first_word("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  return khz.empty() ? std::atof(cpuinfo("cpu MHz").c_str()) * 1e6 : std::atof(khz.c_str()) * 1e3;
}

}  // namespace

DeviceInfo probe_cpu(int threads) {
  const std::string name = cpuinfo("model name");
  return {.backend = Backend::cpu,
          .name = name.empty() ? "unknown" : name,
          .capability = 0,
          .sm_count = threads > 0 ? threads : usable_cpus(),
          .instruction_set = std::string(HWY_DYNAMIC_DISPATCH(instruction_set)()) + (cpu_has_amx() ? " with AMX" : ""),
          .vector_bytes = HWY_DYNAMIC_DISPATCH(vector_bytes)(),
          .l1_bytes = cache_bytes(1, _SC_LEVEL1_DCACHE_SIZE),
          .l2_bytes = cache_bytes(2, _SC_LEVEL2_CACHE_SIZE),
          .l3_bytes = cache_bytes(3, _SC_LEVEL3_CACHE_SIZE),
          .memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE),
          .clock_hz = clock_hz(),
          .bandwidth_bytes_per_s = 0.0};
}

}  // namespace tilewave
#endif
