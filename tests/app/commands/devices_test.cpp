// tilewave devices: the CPU as the library probes it, in both outputs.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/core/device.h"
#include "kernels/core/error.h"
#include "tests/app/process.h"

namespace tilewave {
namespace {

TEST(DevicesCommand, TellsOfTheCpuInATableAndAsJson) {
  if (!std::filesystem::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  const TemporaryFolder folder;
  const DeviceInfo cpu = probe_cpu();
  Process json(folder.path(), {"devices", "--json"});
  EXPECT_EQ(json.wait(), 0) << json.errors();
  const std::string first = json.output().substr(0, json.output().find('\n'));
  const nlohmann::ordered_json object = nlohmann::ordered_json::parse(first);
  EXPECT_EQ(object.at("device"), "cpu");
  EXPECT_EQ(object.at("threads"), cpu.sm_count);
  EXPECT_EQ(object.at("vector_bytes"), cpu.vector_bytes);
  EXPECT_EQ(object.at("memory_bytes"), cpu.memory_bytes);
  EXPECT_EQ(object.at("name").is_null(), cpu.name.empty()) << "what is not known is null";

  Process table(folder.path(), {"devices"});
  EXPECT_EQ(table.wait(), 0) << table.errors();
  const std::string text = table.output().substr(0, table.output().find("\n\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n') + 1, static_cast<std::ptrdiff_t>(object.size())) << "a line a field\n" << text;
  for (const std::string& value : {cpu.name.empty() ? std::string("unknown") : cpu.name, cpu.instruction_set, std::string(" MiB")}) {
    EXPECT_NE(text.find(value), std::string::npos) << text;
  }
}

TEST(DevicesCommand, AGpuThatIsNotThereIsASentence) {
  if (!std::filesystem::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& device, int code, const std::string& part) {
    Process process(folder.path(), {"generate", "a_run", "--device", device});
    EXPECT_EQ(process.wait(), code) << device;
    EXPECT_EQ(process.output(), "") << device;
    EXPECT_TRUE(process.errors().starts_with(concat("tilewave: --device ", device, ": "))) << process.errors();
    EXPECT_NE(process.errors().find(part), std::string::npos) << process.errors();
    EXPECT_EQ(std::ranges::count(process.errors(), '\n'), 1) << process.errors();
  };
  const CudaDevices gpus = probe_cuda();
  if (gpus.usable.empty()) refused("cuda", 1, gpus.refused);
  refused("cuda:99", 1, gpus.usable.empty() ? gpus.refused : "there is no such GPU");
  refused("cuda:x", 2, "use auto, cpu, cuda or cuda:N");
  refused("gpu", 2, "use auto, cpu, cuda or cuda:N");
}

}  // namespace
}  // namespace tilewave
