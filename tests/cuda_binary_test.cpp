// What the kernels' library carries for GPUs, read from the library itself: machine code of compute capability 8.0 and 9.0 for every
// portable source, so that no driver compiles at start on either, and PTX for what comes later; of 9.0, with PTX, where TMA is asked; 9.0's
// own instructions alone.
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "kernels/core/device.h"
#include "kernels/gemm/catalog.h"
#include "kernels/gemm/plan.h"

namespace tilewave {
namespace {

std::vector<char> library() {
  Dl_info info{};
  const auto choose_plan = static_cast<GemmPlan (*)(const GemmProblem&, const DeviceInfo&, const GemmChoice&)>(choose);
  if (dladdr(reinterpret_cast<const void*>(choose_plan), &info) == 0) return {};
  std::ifstream file(info.dli_fname, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
T read_at(const std::vector<char>& bytes, std::size_t at) {
  T value{};
  if (at + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// A fat binary is a header of 16 bytes {magic, version, header size, size of what follows} and its images, each behind a header of
// its own {kind, attributes, header size, size of the image, ..., architecture at byte 28}; kind 1 is PTX, 2 machine code.
std::vector<std::multiset<std::string>> fat_binaries(const std::vector<char>& bytes) {
  constexpr std::uint32_t kMagic = 0xba55ed50;
  std::vector<std::multiset<std::string>> all;
  for (std::size_t at = 0; at + 16 <= bytes.size(); at += 8) {
    if (read_at<std::uint32_t>(bytes, at) != kMagic) continue;
    std::size_t image = at + read_at<std::uint16_t>(bytes, at + 6);
    const std::size_t end = image + read_at<std::uint64_t>(bytes, at + 8);
    std::multiset<std::string>& images = all.emplace_back();
    while (image < end && end <= bytes.size()) {
      images.insert((read_at<std::uint16_t>(bytes, image) == 1 ? "PTX " : "code ") +
                    std::to_string(read_at<std::uint32_t>(bytes, image + 28)));
      image += read_at<std::uint32_t>(bytes, image + 4) + read_at<std::uint64_t>(bytes, image + 8);
    }
  }
  return all;
}

TEST(CudaBinary, HasMachineCodeForAmpereAndHopperAndPtxForLater) {
  if (!has_cuda()) GTEST_SKIP() << "this build of tilewave has no CUDA kernels";
  int portable = 0, bulk_copy = 0, hopper = 0;
  for (const auto& images : fat_binaries(library())) {
    if (images == std::multiset<std::string>{"code 90"}) {
      ++hopper;
    } else if (images == std::multiset<std::string>{"PTX 90", "code 90"}) {
      ++bulk_copy;
    } else {
      EXPECT_EQ(images, (std::multiset<std::string>{"PTX 90", "code 80", "code 90"}));
      ++portable;
    }
  }
  EXPECT_GE(portable, 20);
  EXPECT_TRUE(6 <= bulk_copy && bulk_copy < 10) << bulk_copy << ": instances of bulk_copy_mma, and no portable source";
  EXPECT_GE(hopper, 5);
}

// A kernel without a launch would be chosen and refused.
TEST(CudaBinary, EveryKernelOfTheCatalogHasItsLaunch) {
  if (!has_cuda()) GTEST_SKIP() << "this build of tilewave has no CUDA kernels";
  int launches = 0;
  for (const GemmKernel* const kernel : gemm_catalog()) {
    const std::string name = name_of(*kernel);
    if (kernel->backend != Backend::cuda || name.starts_with("guide_")) continue;  // those are for planning alone
    EXPECT_NE(kernel->launch_cuda, nullptr) << name;
    ++launches;
  }
  EXPECT_GE(launches, 20);
}

}  // namespace
}  // namespace tilewave
