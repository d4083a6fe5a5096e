// What can run a GEMM of a suite, as candidates of framework/measure: the catalog's plans, and those of a library.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "app/bench/gemm_suite.h"
#include "app/bench/openblas.h"
#include "framework/measure/gemm_scratch.h"
#include "kernels/core/device.h"
#include "kernels/core/queue.h"
#include "kernels/gemm/catalog.h"

namespace tilewave {

// Ours, by name, the model's choice to the end.
struct OurSide {
  GemmProblem problem;
  GemmPlan chosen;
  std::vector<Candidate> candidates;
  std::map<std::string, GemmPlan> plans;

  // Leaves the model's choice, its `best` best and as many others, drawn.
  void keep(std::size_t best, std::mt19937_64& random);
};

// The library's, or a sentence why there are none.
struct PeerSide {
  std::vector<Candidate> candidates;
  std::string absent;
};

class GemmCandidates {
 public:
  // `against` is of a GPU "cublas" or "cublaslt", of a CPU "openblas", or empty; InputError says what else is wrong. Names the core that
  // OpenBLAS took, on the standard error. `device` outlives this.
  GemmCandidates(const Queue& queue, const DeviceInfo& device, const std::string& against, const GemmTypes& types);

  const GemmTypes& types() const { return types_; }
  bool has_peer() const { return library_ != nullptr || blas_; }
  // InputError where the library has nothing to set against it.
  void check_peer(const GemmCase& asked) const;

  // Plans of the kernel alone, or of all but the oracle and the libraries (no kernel), that the model puts within `slowest` times the
  // least.
  OurSide ours(const GemmCase& asked, const std::string& kernel, double slowest);
  PeerSide peers(const GemmCase& asked);

 private:
  // Operands for the problem, the last ones while a candidate still has them.
  std::shared_ptr<const GemmScratch::Posed> pose(const GemmProblem& problem);
  Candidate openblas(const std::shared_ptr<const GemmScratch::Posed>& posed) const;

  GemmScratch scratch_;
  std::weak_ptr<const GemmScratch::Posed> posed_;
  const DeviceInfo& device_;
  std::string against_;
  GemmTypes types_;
  const GemmKernel* library_ = nullptr;  // a GPU's
  std::optional<OpenBlas> blas_;         // a CPU's
};

}  // namespace tilewave
