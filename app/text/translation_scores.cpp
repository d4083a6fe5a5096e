// Runs score.py as a process of its own.
#include "app/text/translation_scores.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "app/text/terminal.h"
#include "framework/io/file.h"
#include "framework/io/json_lines.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr int kNotInstalled = 3, kNoCommand = 127;

// A file that goes with its scope.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& text) {
    std::string name = (std::filesystem::temp_directory_path() / "tilewave-pairs-XXXXXX").string();
    const int descriptor = mkstemp(name.data());
    TW_CHECK(descriptor >= 0, name, ": no file could be made there; set TMPDIR to a folder that can be written to.");
    ::close(descriptor);
    path_ = name;
    write_file_atomically(path_, text);
  }
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct CommandOutcome {
  int status = kNoCommand;
  std::string output;
};

CommandOutcome outcome_of(const std::string& command) {
  CommandOutcome outcome;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) outcome.output.append(buffer.data(), count);
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : kNoCommand;
  return outcome;
}

}  // namespace

ScoredTranslations score_translations(const std::vector<std::string>& translations, const std::vector<std::string>& references) {
  std::string lines;
  for (std::size_t i = 0; i < translations.size(); ++i) {
    lines += JsonObject().add("translation", translations[i]).add("reference", references[i]).text() + "\n";
  }
  const ScratchFile pairs(lines);
  std::error_code ignored;
  const std::filesystem::path script =
      std::filesystem::canonical("/proc/self/exe", ignored).parent_path().parent_path() / "share/tilewave/score.py";
  const CommandOutcome outcome = outcome_of(concat("python3 ", shell_word(script.string()), ' ', shell_word(pairs.path().string())));
  if (outcome.status == kNotInstalled) {
    return {.scores = {}, .absent = "BLEU and chrF are not computed: python3 has no sacrebleu, which \"pip install sacrebleu\" brings."};
  }
  const nlohmann::json found = nlohmann::json::parse(outcome.output, nullptr, false);
  if (outcome.status != 0 || !found.is_object()) {
    return {.scores = {}, .absent = concat("BLEU and chrF are not computed: python3 ", script.string(), " failed.")};
  }
  const auto signature = [&](const char* metric) { return found.at("signatures").at(metric).get<std::string>(); };
  return {.scores = TranslationScores{.bleu = found.at("bleu").get<double>(),
                                      .chrf = found.at("chrf").get<double>(),
                                      .bleu_signature = signature("bleu"),
                                      .chrf_signature = signature("chrf")},
          .absent = {}};
}

}  // namespace tilewave
