// Of a made-up proc and sys: the least of what is available and what each control group leaves; what is missing limits nothing.
#include "kernels/cpu/core/free_memory.h"

#include <gtest/gtest.h>

#include "kernels/core/memory.h"
#include "tests/shell.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

class FreeMemory : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / file).parent_path());
    write_text(folder_.path() / file, text);
  }
  std::optional<std::int64_t> free() const { return free_memory(folder_.path()); }

  TemporaryFolder folder_;
};

TEST_F(FreeMemory, IsWhatTheSystemCallsAvailable) {
  EXPECT_EQ(free(), std::nullopt);
  write("proc/meminfo", "MemTotal:       8388608 kB\nMemFree:        1024 kB\nMemAvailable:   4194304 kB\n");
  EXPECT_EQ(free(), 4096 * kMiB);
}

TEST_F(FreeMemory, EveryGroupAboveTheProcessLimitsIt) {
  write("proc/meminfo", "MemAvailable:   4194304 kB\n");
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  write("sys/fs/cgroup/a/b/memory.current", "1048576\n");
  EXPECT_EQ(free(), 4096 * kMiB);
  write("sys/fs/cgroup/a/memory.max", "1073741824\n");
  write("sys/fs/cgroup/a/memory.current", "943718400\n");
  EXPECT_EQ(free(), 124 * kMiB);
  write("sys/fs/cgroup/a/memory.stat", "anon 1\nfile 2\nactive_file 3\ninactive_file 104857600\n");
  EXPECT_EQ(free(), 224 * kMiB);
  write("sys/fs/cgroup/memory.max", "524288000\n");
  write("sys/fs/cgroup/memory.current", "629145600\n");
  EXPECT_EQ(free(), 0) << "more is used than allowed";
}

TEST_F(FreeMemory, TheOlderGroupsLimitItToo) {
  write("proc/meminfo", "MemAvailable:   4194304 kB\n");
  write("proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/host/path\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "536870912\n");
  EXPECT_EQ(free(), 512 * kMiB);
}

TEST_F(FreeMemory, TheProcesssOwnLimitsLimitIt) {
  const auto limits = [](const std::string& addresses, const std::string& data) {
    return "Limit                     Soft Limit           Hard Limit           Units     \n"
           "Max data size             " +
           data +
           "            unlimited            bytes     \n"
           "Max address space         " +
           addresses + "            unlimited            bytes     \n";
  };
  write("proc/meminfo", "MemAvailable:   4194304 kB\n");
  write("proc/self/status", "Name:\ttilewave\nVmPeak:\t  900000 kB\nVmSize:\t  204800 kB\nVmData:\t  102400 kB\n");
  write("proc/self/limits", limits("unlimited", "unlimited"));
  EXPECT_EQ(free(), 4096 * kMiB);
  write("proc/self/limits", limits("524288000", "unlimited"));
  EXPECT_EQ(free(), 300 * kMiB);
  write("proc/self/limits", limits("524288000", "209715200"));
  EXPECT_EQ(free(), 100 * kMiB);
  write("proc/self/limits", limits("104857600", "unlimited"));
  EXPECT_EQ(free(), 0) << "more is used than allowed";
}

TEST(Memory, ACpuSaysWhatItCanGive) {
  Queue cpu = make_cpu_queue(1), trace = TraceQueue{};
  ASSERT_TRUE(free_bytes(cpu).has_value());
  EXPECT_GT(*free_bytes(cpu), 0);
  EXPECT_EQ(free_bytes(trace), std::nullopt);
}

}  // namespace
}  // namespace tilewave
