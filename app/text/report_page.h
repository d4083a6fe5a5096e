// report.html: what became of a run: its losses, what it says, where a step's time goes, its settings. Nothing beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tilewave {

struct ReportedStep {
  std::int64_t step = 0;
  std::optional<double> loss, validation_loss, learning_rate, gradient_norm;  // those that are known and finite
};

struct ReportedSample {
  std::string given, expected, said;  // expected: empty where nothing was
};

// GEMMs that pose one problem in layers of one name.
struct ReportedGemm {
  std::string layer, role, kernel;
  std::int64_t m = 0, n = 0, k = 0;
  double launches = 0.0;                       // a step's
  double predicted_s = 0.0, measured_s = 0.0;  // of all of them; 0: not known
  double flops = 0.0;                          // of all of them
};

struct ReportedSetting {
  std::string section, key, value;
  bool by_default = true;
};

struct RunReport {
  std::string title;
  std::string training_loss;         // what the training loss is called
  std::vector<std::string> answers;  // sentences, what came of it first
  std::vector<ReportedStep> steps;
  std::vector<ReportedSample> samples;
  std::string without_samples;                             // why there are none
  std::string times;                                       // where the times of GEMMs come from
  std::vector<ReportedGemm> gemms;                         // the longest first
  std::vector<std::pair<std::string, std::string>> facts;  // beside the settings
  std::vector<ReportedSetting> settings;
};
std::string report_page(const RunReport& report);

}  // namespace tilewave
