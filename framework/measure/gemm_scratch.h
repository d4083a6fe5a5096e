// A GEMM problem to be timed: operands of random normal numbers in memory of its own, in sets that take turns through more than a
// second-level cache holds, and candidates whose launches over all sets are one captured graph, so that a GPU's time is not its
// host's. bench, calibration and choice by measurement share it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/measure/interleave.h"
#include "kernels/core/queue.h"
#include "kernels/gemm/gemm.h"

namespace tilewave {

// Every plan that runs the problem and that the model puts within `slowest` times the least predicted time, in that order; kernels that
// split K also in numbers of parts that the model would not take.
std::vector<GemmPlan> measurable_plans(const GemmProblem& problem, const DeviceInfo& device, const GemmChoice& choice, double slowest);

class GemmScratch {
 public:
  explicit GemmScratch(Queue queue) : queue_(std::move(queue)) {}
  ~GemmScratch();
  GemmScratch(const GemmScratch&) = delete;
  GemmScratch& operator=(const GemmScratch&) = delete;

  // Operands for the problem; their addresses and pitches have its alignments. What an epilogue reads or writes beside D has the
  // operands' type, sums D's.
  struct Posed {
    GemmProblem problem;
    std::vector<GemmArgs> sets;  // without plan and workspace
    std::vector<std::shared_ptr<void>> memory;
  };
  std::shared_ptr<const Posed> pose(const GemmProblem& problem);

  // Launches the plan once for each set. Keeps its operands and shares its workspace with the other candidates of this object:
  // they run one after another.
  Candidate candidate(const std::shared_ptr<const Posed>& posed, const GemmPlan& plan, std::string name);

  // Of a library's row: how many candidates its heuristic has for the problem.
  int library_candidates(const GemmKernel& library, const Posed& posed);

 private:
  MatrixView matrix(Posed& posed, const MatrixView& shape, std::int64_t alignment, std::int64_t from);
  std::shared_ptr<void> buffer(std::int64_t bytes);

  Queue queue_;
  std::map<DType, std::shared_ptr<void>> numbers_;  // a block of them on the device
  std::shared_ptr<void> workspace_;
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace tilewave
