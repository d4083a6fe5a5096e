// tilewave devices: the CPU as the library probes it, in both outputs.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

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

// A profile's figures and, a type a line, rates and multiples.
TEST(DevicesCommand, TellsWhatAGpuThatIsNotHereCanDo) {
  if (!std::filesystem::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  const TemporaryFolder folder;
  Process json(folder.path(), {"devices", "--for", "a100", "--json"});
  EXPECT_EQ(json.wait(), 0) << json.errors();
  std::istringstream lines(json.output());
  std::map<std::string, nlohmann::json> types;
  nlohmann::json gpu;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json object = nlohmann::json::parse(line);
    object.contains("type") ? types[object.at("type")] = object : gpu = object;
  }
  EXPECT_EQ(gpu.at("sms"), 108);
  EXPECT_EQ(gpu.at("f16_peak_flops_per_s"), 312e12);
  EXPECT_EQ(gpu.at("link_bytes_per_s"), 300e9);
  EXPECT_FALSE(gpu.at("source").get<std::string>().empty());
  EXPECT_EQ(types.at("INT8").at("least_multiple"), 16);
  EXPECT_EQ(types.at("INT8").at("best_multiple"), 128);
  EXPECT_EQ(types.at("FP64").at("best_multiple"), 16);
  EXPECT_EQ(types.at("TF32").at("tensor_core_multiply_adds"), 512);
  EXPECT_TRUE(types.at("FP32").at("best_multiple").is_null()) << "no Tensor Core multiplies it";
  EXPECT_FALSE(types.contains("FP8"));

  Process table(folder.path(), {"devices", "--for", "H100"});
  EXPECT_EQ(table.wait(), 0) << table.errors();
  EXPECT_EQ(table.errors(), "tilewave: h100 means h100-sxm, NVIDIA H100 80GB HBM3; the PCIe card is h100-pcie\n");
  EXPECT_NE(table.output().find("\nFP8 "), std::string::npos) << table.output();
  Process wrong(folder.path(), {"devices", "--for", "h300"});
  EXPECT_EQ(wrong.wait(), 2);
  EXPECT_NE(wrong.errors().find("no profile of a device called \"h300\""), std::string::npos) << wrong.errors();
}

// The libraries that ranks speak through: which, where, and where it was looked; or what to install.
TEST(DevicesCommand, TellsOfTheLibrariesOfRanks) {
  if (!std::filesystem::exists(test_environment().program)) GTEST_SKIP() << "the program is not at --program";
  const TemporaryFolder folder;
  const auto libraries = [&](const char* mpi_library) {
    const auto prepare = [mpi_library] {
      if (mpi_library != nullptr) setenv("TILEWAVE_MPI_LIBRARY", mpi_library, 1);
    };
    Process json(folder.path(), {"devices", "--json"}, prepare);
    EXPECT_EQ(json.wait(), 0) << json.errors();
    std::map<std::string, nlohmann::json> found;
    std::istringstream lines(json.output());
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json object = nlohmann::json::parse(line);
      if (object.contains("library")) found[object.at("library")] = object;
    }
    return found;
  };
  const std::map<std::string, nlohmann::json> here = libraries(nullptr), nowhere = libraries("/nowhere/libmpi.so.40");
  for (const char* const name : {"MPI", "NCCL"}) {
    ASSERT_TRUE(here.contains(name)) << name;
    const nlohmann::json& library = here.at(name);
    EXPECT_NE(library.at("path").is_null(), library.at("refused").is_null()) << library << ": found, or a sentence";
  }
  EXPECT_EQ(here.at("MPI").at("looked").at(0).at("at"), "TILEWAVE_MPI_LIBRARY (not set)");
  EXPECT_TRUE(nowhere.at("MPI").at("path").is_null());
  EXPECT_EQ(nowhere.at("MPI").at("looked").size(), 1U);
  EXPECT_EQ(nowhere.at("NCCL"), here.at("NCCL"));

  Process table(folder.path(), {"devices"}, [] { setenv("TILEWAVE_MPI_LIBRARY", "/nowhere/libmpi.so.40", 1); });
  EXPECT_EQ(table.wait(), 0) << table.errors();
  EXPECT_NE(table.output().find("\nMPI             no library could be opened at TILEWAVE_MPI_LIBRARY=/nowhere/libmpi.so.40 (not"),
            std::string::npos)
      << table.output();
  EXPECT_NE(table.output().find("\nlooked for at   TILEWAVE_MPI_LIBRARY=/nowhere/libmpi.so.40 (not there)\n"), std::string::npos)
      << table.output();
  EXPECT_NE(table.output().find("\nNCCL            "), std::string::npos) << table.output();
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
