// ctest and what IDEs ask it: every test of this program is one of its own, with its label, and those that must be alone are.
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

class Ctest : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(build_ / "CTestTestfile.cmake")) GTEST_SKIP() << "the build tree is not around --program";
    const Outcome outcome = shell("ctest --show-only=json-v1", build_);
    ASSERT_EQ(outcome.status, 0) << outcome.output;
    const nlohmann::json listed = nlohmann::json::parse(outcome.output);
    for (const nlohmann::json& test : listed.at("tests")) {
      Seen& seen = seen_[test.at("name")];
      ++seen.times;
      seen.command = test.value("command", nlohmann::json::array()).dump();
      for (const nlohmann::json& property : test.at("properties")) seen.properties[property.at("name")] = property.at("value").dump();
    }
  }

  struct Seen {
    int times = 0;
    std::string command;
    std::map<std::string, std::string> properties;
  };

  fs::path build_ = fs::absolute(test_environment().program).lexically_normal().parent_path().parent_path();
  std::map<std::string, Seen> seen_;
};

// As ctest writes it: of a suite for a type the number stands at the end.
std::string name_of(const testing::TestSuite& suite, const testing::TestInfo& test) {
  const std::string name = suite.name();
  const std::size_t slash = name.rfind('/');
  if (suite.type_param() == nullptr || slash == std::string::npos) return name + "." + test.name();
  return name.substr(0, slash) + "." + test.name() + "<" + name.substr(slash + 1) + ">";
}

TEST_F(Ctest, SeesEveryTestOnceWithItsLabel) {
  std::set<std::string> own;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) own.insert(name_of(suite, *suite.GetTestInfo(j)));
  }
  for (const std::string& name : own) EXPECT_TRUE(seen_.contains(name)) << name << " is no test of ctest's";
  for (const auto& [name, seen] : seen_) {
    EXPECT_TRUE(own.contains(name)) << name << " is no test of this program's";
    EXPECT_EQ(seen.times, 1) << name;
    const bool gpu = name.starts_with("Gpu") || name.find("/Gpu") != std::string::npos;
    const auto label = seen.properties.find("LABELS");
    ASSERT_NE(label, seen.properties.end()) << name;
    EXPECT_EQ(label->second, gpu ? "[\"gpu\"]" : "[\"cpu\"]") << name;
    EXPECT_NE(seen.command.find("\"--data\""), std::string::npos) << name;
    EXPECT_NE(seen.command.find("\"--program\""), std::string::npos) << name;
  }
}

// A pattern in tests/CMakeLists.txt whose tests were renamed would let them run beside others.
TEST_F(Ctest, EveryPatternOfThoseThatAreAloneHasATest) {
  const std::string text = file_text(fs::absolute(test_environment().data) / "CMakeLists.txt");
  const std::size_t begin = text.find("set(alone ");
  ASSERT_NE(begin, std::string::npos);
  std::istringstream patterns(text.substr(begin + 10, text.find(')', begin) - begin - 10));
  std::size_t count = 0;
  for (std::string pattern; patterns >> pattern; ++count) {
    const std::regex form(std::regex_replace(std::regex_replace(pattern, std::regex("\\."), "\\."), std::regex("\\*"), ".*"));
    std::size_t alone = 0;
    for (const auto& [name, seen] : seen_) {
      if (!std::regex_match(name, form)) continue;
      ++alone;
      EXPECT_TRUE(seen.properties.contains("RUN_SERIAL")) << name;
    }
    EXPECT_GE(alone, 1U) << pattern << " names no test";
  }
  EXPECT_GE(count, 8U);
}

}  // namespace
}  // namespace tilewave
