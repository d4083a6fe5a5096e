// The house rules that a compiler does not see: which way includes run, what stays private, what no file may hold.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/repository_root.h"
#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;

struct Include {
  std::string file;  // root-relative, as is target for an include in quotes
  std::string target;
  bool quoted = false;
};

// Every file that belongs to the repository, root-relative: all but build and run folders and what others keep under a dot.
std::vector<std::string> repository_files() {
  static const std::set<std::string> own = {".ci",           ".clang-format", ".clang-tidy", ".dockerignore",
                                            ".editorconfig", ".github",       ".gitignore",  ".pre-commit-config.yaml"};
  std::vector<std::string> files;
  for (const fs::directory_entry& top : fs::directory_iterator(root())) {
    const std::string name = top.path().filename().string();
    if (name.starts_with("build") || name == "runs" || (name.starts_with('.') && !own.contains(name))) continue;
    if (top.is_regular_file()) files.push_back(name);
    if (!top.is_directory()) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
      if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), root()).generic_string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool is_source(const std::string& file) {
  const std::string extension = fs::path(file).extension().string();
  return extension == ".h" || extension == ".cpp" || extension == ".cu" || extension == ".cuh";
}

std::vector<Include> includes_of(const std::string& file, const std::string& text) {
  static const std::regex pattern(R"re(^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">])re", std::regex::multiline);
  std::vector<Include> includes;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    includes.push_back({.file = file, .target = (*match)[2], .quoted = (*match)[1] == "\""});
  }
  return includes;
}

std::string folder_of(const std::string& file) { return file.substr(0, file.find('/')); }

// The rooms of each floor: a file includes its own room's headers and those of rooms above it in this list, which are nearer to the ground.
const std::vector<std::vector<std::string>>& rooms() {
  static const std::vector<std::vector<std::string>> rooms = {
      {"kernels/core",
       "kernels/gemm/cost",
       "kernels/gemm/facts",
       "kernels/gemm/reference",
       "kernels/gemm/cpu",
       "kernels/gemm/simt",
       "kernels/gemm/gemv",
       "kernels/gemm/sm90",
       "kernels/gemm/sm80",
       "kernels/gemm/ladder",
       "kernels/gemm",
       "kernels/ops",
       "kernels/math",
       "kernels/cpu/core",
       "kernels/cpu/ops",
       "kernels/cpu/gemm",
       "kernels/cuda/prim",
       "kernels/cuda/core",
       "kernels/cuda/ops",
       "kernels/cuda/attention",
       "kernels/cuda/layer_norm",
       "kernels/cuda/batch_norm",
       "kernels/cuda/gemm",
       "kernels/cuda/gemm/reference",
       "kernels/cuda/gemm/simt",
       "kernels/cuda/gemm/gemv",
       "kernels/cuda/gemm/sm90",
       "kernels/cuda/gemm/sm80",
       "kernels/cuda/gemm/ladder",
       "kernels/without_cuda"},
      {"framework/tensor", "framework/autograd", "framework/ops", "framework/nn", "framework/distributed", "framework/optimizer",
       "framework/io", "framework/recipe", "framework/data", "framework/measure"},
      {"models/recipe", "models/pictures", "models/transformer", "models/vision", "models/exchange", "models/step", "models/planning",
       "models/figures", "models/decoding", "models/training", "models/study"},
      {"app/process", "app/text", "app/options", "app/bench", "app/commands", "app"},
  };
  return rooms;
}

// Its folder; but what a GEMM's problem and plan are is data that core's trace records, and what a kernel is to the catalog is public.
std::string room_of(const std::string& file) {
  static const std::regex data(R"(kernels/gemm/(composition|problem|tiling|plan)\.h)");
  static const std::regex facts(R"(kernels/gemm/(kernel|guide_tiles)\.h)");
  if (std::regex_match(file, data)) return "kernels/core";
  if (std::regex_match(file, facts)) return "kernels/gemm/facts";
  return file.substr(0, file.rfind('/'));
}

// What is wrong with an include between rooms of one floor, or nothing.
std::string broken_room(const std::string& file, const std::string& target) {
  if (folder_of(file) == "tests") return {};
  for (const std::vector<std::string>& floor : rooms()) {
    if (!floor.front().starts_with(folder_of(file) + "/")) continue;
    const auto own = std::find(floor.begin(), floor.end(), room_of(file)), other = std::find(floor.begin(), floor.end(), room_of(target));
    if (own == floor.end()) return room_of(file) + " is no room; declare it here and draw it in docs/understand/architecture.md";
    if (folder_of(target) == folder_of(file) && other > own)
      return "arrows between rooms run towards the ground: " + *own + " stands below";
  }
  return {};
}

bool is_private_to_kernels(const std::string& file) {
  static const std::regex pattern(R"(kernels/(cpu|cuda|math|gemm/(facts|reference|cpu|simt|gemv|sm90|sm80|ladder))/.*)");
  return std::regex_match(file, pattern);
}
bool is_public_header(const std::string& file) {
  return file.ends_with(".h") && !is_private_to_kernels(file) &&
         std::set<std::string>{"kernels", "framework", "models"}.contains(folder_of(file));
}

// What is wrong with an include, or nothing.
std::string broken_arrow(const Include& include) {
  static const std::map<std::string, std::set<std::string>> below = {
      {"kernels", {"kernels"}},
      {"framework", {"framework", "kernels"}},
      {"models", {"models", "framework", "kernels"}},
      {"app", {"app", "models", "framework", "kernels"}},
      {"interface", {"interface", "include", "models", "framework", "kernels"}},
      {"include", {}},
      {"examples", {"models", "framework", "kernels"}},
      {"tests", {"tests", "app", "models", "framework", "kernels"}},
  };
  static const std::regex cuda_header(R"((cuda|cublas|cub|thrust|cute|cutlass|nccl|nvtx|mma|cooperative_groups).*)");
  const auto floor = below.find(folder_of(include.file));
  if (floor == below.end()) return {};
  if (!include.quoted) {
    if (std::regex_match(include.target, cuda_header) && !include.file.starts_with("kernels/cuda/")) return "CUDA stays under kernels/cuda";
    if (floor->second.contains(folder_of(include.target)) && include.target.find('/') != std::string::npos)
      return "own headers come in quotes";
    return {};
  }
  if (folder_of(include.target) == "hwy") {  // Highway names itself in quotes
    return include.file.starts_with("kernels/cpu/") ? "" : "Highway stays under kernels/cpu";
  }
  if (!floor->second.contains(folder_of(include.target))) return "arrows run app -> models -> framework -> kernels, root-relative";
  if (is_private_to_kernels(include.target)) {
    if (folder_of(include.file) != "kernels" && folder_of(include.file) != "tests")
      return "cpu/, cuda/, math/ and the rooms of gemm/ but its cost/ are private to kernels";
    if (is_public_header(include.file)) return "a public header names public ones only";
  }
  if (include.file.starts_with("kernels/cpu/") && include.target.starts_with("kernels/cuda/"))
    return "cpu/ and cuda/ never include each other";
  if (include.file.starts_with("kernels/cuda/") && include.target.starts_with("kernels/cpu/"))
    return "cpu/ and cuda/ never include each other";
  return broken_room(include.file, include.target);
}

class Repository : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(root() / "CMakePresets.json")) GTEST_SKIP() << "the sources are not beside --data";
  }
};

// Whether a line of a file below app/ prints or ends the process.
bool prints_or_ends(const std::string& line) {
  static const std::regex pattern(
      R"((^|[^\w.>:])(std::|::)?(v?f?printf|f?puts|f?putc|putchar|perror|abort|exit|_exit|_Exit|quick_exit|terminate)\(|std::c(out|err|log)\b)");
  const std::size_t comment = line.find("//");
  return std::regex_search(line.substr(0, comment), pattern);
}

TEST_F(Repository, NothingBelowTheCommandLinePrintsOrEndsTheProcess) {
  for (const char* wrong :
       {"  std::cout << x;", "printf(\"%d\", x);", "  std::exit(1);", "if (x) abort();", "fprintf(stderr, x);", "::abort();"})
    EXPECT_TRUE(prints_or_ends(wrong));
  for (const char* right : {"std::snprintf(text, 3);", "// exit(1)", "queue.exit(2)", "on_exit(3);"}) EXPECT_FALSE(prints_or_ends(right));
  for (const std::string& file : repository_files()) {
    const bool below = std::set<std::string>{"kernels", "framework", "models", "interface"}.contains(folder_of(file));
    if (!is_source(file) || !below || file == "kernels/cuda/prim/wait.h") continue;  // which traps where a debug build waits for ever
    std::istringstream lines(file_text(root() / file));
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      EXPECT_FALSE(prints_or_ends(line)) << file << ", line " << number << ": " << line;
    }
  }
}

TEST_F(Repository, IncludesFollowTheArrows) {
  int seen = 0;
  for (const std::string& file : repository_files()) {
    if (!is_source(file)) continue;
    for (const Include& include : includes_of(file, file_text(root() / file))) {
      ++seen;
      const std::string wrong = broken_arrow(include);
      EXPECT_TRUE(wrong.empty()) << file << " includes " << include.target << ": " << wrong;
      if (include.quoted && folder_of(include.target) != "hwy") {
        EXPECT_TRUE(fs::exists(root() / include.target)) << file << ": there is no " << include.target;
      }
    }
  }
  EXPECT_GT(seen, 100);
}

TEST_F(Repository, BrokenArrowsAreSeen) {
  const auto quoted_include = [](const char* file, const char* target) {
    return broken_arrow({.file = file, .target = target, .quoted = true});
  };
  EXPECT_NE(quoted_include("kernels/ops/add.h", "framework/tensor/tensor.h"), "");
  EXPECT_NE(quoted_include("framework/tensor/tensor.h", "models/recipe/config.h"), "");
  EXPECT_NE(quoted_include("models/planning/plan.h", "app/main.h"), "");
  EXPECT_NE(quoted_include("framework/ops/add.cpp", "kernels/cpu/core/thread_pool.h"), "");
  EXPECT_NE(quoted_include("kernels/ops/dropout.h", "kernels/math/random.h"), "");
  EXPECT_NE(quoted_include("kernels/cpu/ops/add.cpp", "kernels/cuda/prim/mma.h"), "");
  EXPECT_NE(quoted_include("kernels/cuda/ops/add.cu", "kernels/cpu/core/thread_pool.h"), "");
  EXPECT_NE(quoted_include("kernels/gemm/gemm.h", "problem.h"), "");
  EXPECT_NE(quoted_include("framework/tensor/tensor.cpp", "hwy/highway.h"), "");
  EXPECT_EQ(quoted_include("kernels/cpu/ops/add.cpp", "hwy/highway.h"), "");
  EXPECT_EQ(quoted_include("kernels/cpu/ops/add.cpp", "kernels/math/random.h"), "");
  EXPECT_EQ(quoted_include("app/main.cpp", "kernels/core/queue.h"), "");
  EXPECT_NE(broken_arrow({.file = "kernels/core/queue.h", .target = "cuda_runtime.h"}), "");
  EXPECT_EQ(broken_arrow({.file = "kernels/cuda/core/queue.cu", .target = "cuda_runtime.h"}), "");
  EXPECT_NE(broken_arrow({.file = "framework/tensor/tensor.h", .target = "kernels/core/view.h"}), "");
  EXPECT_NE(quoted_include("framework/tensor/tensor.h", "framework/autograd/variable.h"), "");
  EXPECT_NE(quoted_include("models/planning/plan.h", "models/training/trainer.h"), "");
  EXPECT_NE(quoted_include("models/elsewhere/plan.h", "models/recipe/config.h"), "");
  EXPECT_NE(quoted_include("app/text/progress.h", "app/main.h"), "");
  EXPECT_NE(quoted_include("kernels/core/device.cpp", "kernels/gemm/cost/cost_model.h"), "");
  EXPECT_EQ(quoted_include("kernels/core/trace.h", "kernels/gemm/plan.h"), "");
  EXPECT_EQ(quoted_include("models/training/trainer.cpp", "models/planning/plan.h"), "");
  EXPECT_EQ(quoted_include("tests/app/text/plot_test.cpp", "app/options/command.h"), "");
  EXPECT_EQ(quoted_include("examples/plan.cpp", "models/planning/plan.h"), "");
  EXPECT_NE(quoted_include("examples/plan.cpp", "app/options/command.h"), "");
  EXPECT_NE(quoted_include("interface/plan.cpp", "app/text/table.h"), "");
  EXPECT_NE(quoted_include("app/main.cpp", "interface/guard.h"), "");
  EXPECT_NE(quoted_include("models/planning/plan.cpp", "include/tilewave.h"), "");
  EXPECT_NE(quoted_include("include/tilewave.h", "kernels/core/view.h"), "");
  EXPECT_EQ(quoted_include("interface/multiply.cpp", "kernels/gemm/gemm.h"), "");
  EXPECT_EQ(quoted_include("interface/guard.h", "include/tilewave.h"), "");
  EXPECT_NE(quoted_include("examples/plan.cpp", "kernels/math/random.h"), "");
  EXPECT_EQ(includes_of("a.h", "  #  include \"kernels/ops/add.h\"  // why\n#include <map>\n").size(), 2U);
}

struct LongFunction {
  std::string first_line;
  int lines = 0;
};
// Functions of a formatted source whose bodies are longer than they may be: a kernel's, and any other's.
std::vector<LongFunction> long_functions(const std::string& text, int most_of_kernel, int most) {
  static const std::regex begin(R"(^( {0,2})(?!if |for |while |switch |namespace |struct |class |enum |else)\S.*\)( const)? \{$)");
  const std::regex kernel(
      "__glo"
      "bal__");
  std::vector<LongFunction> found;
  std::istringstream lines(text);
  std::string head, indent, before;
  int count = -1;  // lines of a body; -1 outside of one
  for (std::string line; std::getline(lines, line); before = line) {
    std::smatch match;
    if (count >= 0 && line.starts_with(indent + "}")) {
      const bool is_kernel = std::regex_search(head, kernel);
      if (count > (is_kernel ? most_of_kernel : most)) found.push_back({.first_line = head, .lines = count});
      count = -1;
    } else if (count >= 0) {
      ++count;
    } else if (std::regex_match(line, match, begin)) {
      indent = match[1];
      head = before + line;
      count = 0;
    }
  }
  return found;
}

TEST_F(Repository, KernelsOfHopperFitAScreen) {
  const std::string body = "void f(int a) {\n  a;\n  if (a) {\n    a;\n  }\n}\n";
  EXPECT_EQ(long_functions(body, 4, 4).size(), 0U);
  ASSERT_EQ(long_functions(body + "struct S {\n" + "  void g() const {\n    a;\n    b;\n  }\n};\n" + body, 4, 3).size(), 2U);
  int seen = 0;
  for (const std::string& file : repository_files()) {
    if (!file.starts_with("kernels/cuda/gemm/sm90/")) continue;
    ++seen;
    for (const LongFunction& one : long_functions(file_text(root() / file), 80, 100))
      ADD_FAILURE() << file << ": " << one.lines
                    << " lines, of 80 that a kernel's body may have, or 100 of another function: " << one.first_line;
  }
  EXPECT_GT(seen, 20);
}

TEST_F(Repository, RoomsAreDrawn) {
  const std::string page = file_text(root() / "docs/understand/architecture.md");
  for (const std::vector<std::string>& floor : rooms()) {
    for (const std::string& room : floor) EXPECT_NE(page.find(room + "/"), std::string::npos) << room << " is not in its drawing";
  }
}

// Spelled in pieces, so that this file passes its own test.
TEST_F(Repository, FilesHoldNothingUnfinishedNorLocal) {
  const std::regex unfinished(
      "\\b(TO"
      "DO|FIX"
      "ME|XX"
      "X)\\b");
  const std::regex local(
      "(^|[\\s\"'(=:`])/(ho"
      "me|ro"
      "ot|Us"
      "ers|wo"
      "rk|m"
      "nt)/");
  const std::regex kernel(
      "__glo"
      "bal__");
  for (const std::string& file : repository_files()) {
    const fs::path path = root() / file;
    EXPECT_LT(fs::file_size(path), std::uintmax_t{1} << 20) << file << ": a file is below 1 MiB";
    const std::string text = file_text(path);
    if (text.find('\0') != std::string::npos) continue;  // binary
    std::smatch match;
    EXPECT_FALSE(std::regex_search(text, match, unfinished)) << file << " holds " << match.str();
    EXPECT_FALSE(std::regex_search(text, match, local)) << file << " names a folder of one machine: " << match.str();
    if (!file.starts_with("kernels/cuda/") && !file.ends_with(".md")) {
      EXPECT_FALSE(std::regex_search(text, kernel)) << file << ": kernels live under kernels/cuda";
    }
  }
}

TEST_F(Repository, SourcesOpenWithABanner) {
  for (const std::string& file : repository_files()) {
    const bool told_by_its_header = file.ends_with(".cpp") && fs::exists((root() / file).replace_extension(".h"));
    if (!is_source(file) || file.ends_with("_test.cpp") || told_by_its_header) continue;
    EXPECT_TRUE(file_text(root() / file).starts_with("// ")) << file << " does not say what it is";
  }
}

}  // namespace
}  // namespace tilewave
