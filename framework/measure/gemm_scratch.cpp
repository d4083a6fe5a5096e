// Operands repeat one block of numbers, each from a place of its own.
#include "framework/measure/gemm_scratch.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "framework/measure/operation_work.h"
#include "kernels/core/error.h"
#include "kernels/core/graph.h"
#include "kernels/core/memory.h"
#include "kernels/gemm/catalog.h"

namespace tilewave {
namespace {

constexpr std::int64_t kNumbers = (std::int64_t{1} << 20) + 3;  // odd: rows of a power of two do not repeat one another

// Drawn once: a process may have many a scratch.
const std::vector<float>& normal_numbers() {
  static const std::vector<float> numbers = [] {
    std::vector<float> drawn(kNumbers);
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    for (float& number : drawn) number = normal(random);
    return drawn;
  }();
  return numbers;
}

std::vector<std::byte> normal_numbers_in(DType dtype) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(kNumbers * size_of(dtype)));
  std::byte* at = bytes.data();
  for (const float value : normal_numbers()) {
    const auto put = [&](auto stored) { std::memcpy(at, &stored, sizeof stored); };
    if (dtype == DType::f64) put(static_cast<double>(value));
    if (dtype == DType::f32) put(value);
    if (dtype == DType::bf16) put(bf16(value));
    if (dtype == DType::f16) put(f16(value));
    at += size_of(dtype);
  }
  return bytes;
}

}  // namespace

std::vector<GemmPlan> measurable_plans(const GemmProblem& problem, const DeviceInfo& device, const GemmChoice& choice, double slowest) {
  std::vector<GemmPlan> plans = gemm_candidates(problem, device, choice);
  const double least = plans.front().predicted_s;
  for (std::size_t i = 0, modelled = plans.size(); i < modelled; ++i) {
    const GemmKernel& kernel = kernel_of(device.backend, plans[i]);
    for (const int parts : {1, 2, 3, 4, 5, 6, 7, 8}) {
      const GemmPlan other = kernel.plan(problem, plans[i].tile, device, parts);
      if (other.split == parts && parts != plans[i].split) plans.push_back(other);
    }
  }
  std::erase_if(plans, [&](const GemmPlan& plan) { return plan.predicted_s > slowest * least; });
  std::stable_sort(plans.begin(), plans.end(), [](const GemmPlan& a, const GemmPlan& b) { return a.predicted_s < b.predicted_s; });
  return plans;
}

GemmScratch::~GemmScratch() {
  try {
    synchronize(queue_);
  } catch (const Error&) {  // a kernel that failed was reported where it was waited for
  }
}

std::shared_ptr<void> GemmScratch::buffer(std::int64_t bytes) {
  return {allocate(queue_, std::max<std::int64_t>(bytes, 1)), [queue = queue_](void* data) mutable { release(queue, data); }};
}

MatrixView GemmScratch::matrix(Posed& posed, const MatrixView& shape, std::int64_t alignment, std::int64_t from) {
  const std::int64_t size = size_of(shape.dtype), bytes = shape.rows * shape.ld * size;
  // An address that is aligned to just `alignment`, where the pitch does not see to that.
  const std::int64_t offset = alignment_of(0, shape.ld * size) > alignment ? alignment : 0;
  posed.memory.push_back(buffer(bytes + offset));
  MatrixView view = shape;
  view.data = static_cast<std::byte*>(posed.memory.back().get()) + offset;
  std::shared_ptr<void>& block = numbers_[shape.dtype];
  if (block == nullptr) {
    const std::vector<std::byte> host = normal_numbers_in(shape.dtype);
    block = buffer(static_cast<std::int64_t>(host.size()));
    copy_to_device(queue_, block.get(), host.data(), static_cast<std::int64_t>(host.size()));
    synchronize(queue_);
  }
  std::int64_t at = from % kNumbers * size;
  for (std::int64_t done = 0; done < bytes; at = 0) {
    const std::int64_t some = std::min(bytes - done, kNumbers * size - at);
    copy_on_device(queue_, static_cast<std::byte*>(view.data) + done, static_cast<const std::byte*>(block.get()) + at, some);
    done += some;
  }
  return view;
}

std::shared_ptr<const GemmScratch::Posed> GemmScratch::pose(const GemmProblem& problem) {
  const GemmProblem& p = problem;
  const Epilogue& e = p.epilogue;
  const auto posed = std::make_shared<Posed>();
  posed->problem = problem;
  const std::int64_t count = std::clamp<std::int64_t>(kRotatedBytes / p.bytes() + 1, 2, 16);
  for (std::int64_t set = 1; set <= count; ++set) {
    std::int64_t from = 0;
    const auto make = [&](std::int64_t rows, std::int64_t cols, std::int64_t ld, DType dtype, std::int64_t alignment) {
      from += 12347 * set;
      return matrix(*posed, {.rows = rows, .cols = cols, .ld = ld, .dtype = dtype}, alignment, from);
    };
    const auto like_d = [&](DType dtype) {
      const bool along_m = p.d_major == Major::m;
      return make(along_m ? p.n : p.m, along_m ? p.m : p.n, p.d_pitch, dtype, p.d_alignment);
    };
    const auto vector = [&](std::int64_t size, DType dtype) { return make(1, size, size, dtype, kAlignment); };
    GemmArgs args = {.role = p.role, .a_major = p.a_major, .b_major = p.b_major, .d_major = p.d_major, .math = p.math};
    args.a = p.a_major == Major::k ? make(p.m, p.k, p.a_pitch, p.operand_dtype, p.a_alignment)
                                   : make(p.k, p.m, p.a_pitch, p.operand_dtype, p.a_alignment);
    args.b = p.b_major == Major::k ? make(p.n, p.k, p.b_pitch, p.operand_dtype, p.b_alignment)
                                   : make(p.k, p.n, p.b_pitch, p.operand_dtype, p.b_alignment);
    args.d = like_d(p.output_dtype);
    if (e.bias) args.bias = vector(p.m, p.operand_dtype);
    args.activation = e.activation;
    if (e.saved_input) args.saved_input = like_d(p.operand_dtype);
    args.derivative = e.derivative;
    if (e.derivative != Activation::none) args.derivative_of = like_d(p.operand_dtype);
    if (e.residual) args.residual = like_d(p.operand_dtype), args.beta = {.value = 0.5};
    args.accumulate = e.accumulate;
    if (e.bias_gradient) args.bias_gradient = vector(p.n, p.output_dtype);
    args.accumulate_bias_gradient = e.bias_gradient && e.accumulate;
    if (e.output_sums) args.output_sums = vector(p.m, p.output_dtype);
    posed->sets.push_back(args);
  }
  synchronize(queue_);
  const GemmProblem made = problem_of(posed->sets.front());
  TW_CHECK(made == problem, "the operands made for a ", name_of(p.role), " gemm of M x N x K = ", p.m, " x ", p.n, " x ", p.k,
           " pose another problem: their pitches or alignments cannot all be had at once.");
  return posed;
}

Candidate GemmScratch::candidate(const std::shared_ptr<const Posed>& posed, const GemmPlan& plan, std::string name) {
  if (workspace_bytes_ < plan.workspace_bytes) {
    workspace_ = buffer(plan.workspace_bytes);
    workspace_bytes_ = plan.workspace_bytes;
  }
  const auto launch_all = [this, posed, plan, workspace = workspace_] {
    for (GemmArgs args : posed->sets) {
      args.plan = &plan;
      args.workspace = workspace.get();
      run(queue_, args);
    }
  };
  launch_all();  // loads the kernels
  synchronize(queue_);
  return {.name = std::move(name),
          .launch = [graph = capture(queue_, launch_all), posed, workspace = workspace_](std::size_t) { graph.replay(); },
          .launches = posed->sets.size(),
          .wait = [this] { synchronize(queue_); }};
}

int GemmScratch::library_candidates(const GemmKernel& library, const Posed& posed) {
  auto* const cuda = std::get_if<CudaQueue>(&queue_);
  return library.candidates != nullptr && cuda != nullptr ? library.candidates(*cuda, posed.sets.front()) : 1;
}

}  // namespace tilewave
