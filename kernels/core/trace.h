// What was asked of a queue, as data: operation, layer, FLOPs, bytes, for a GEMM its problem and plan, for attention its sizes, for what
// ranks do together what goes over their links.
// A TraceQueue fills it without launching anything; a CpuQueue or CudaQueue with a log attached fills it beside the real work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/gemm/plan.h"
#include "kernels/gemm/problem.h"

namespace tilewave {

struct OperationModel;  // kernels/gemm/cost/operation_model.h
using OperationNumber = double OperationModel::*;

// What predicts the time of an operation that is no GEMM beside its cost: how many launches it is on a GPU, and the rate at which they
// move its bytes, as a share of a device copy's. Argument structs have one, kTime.
struct OperationTime {
  int launches = 1;
  OperationNumber copy_share = nullptr;  // null: attention's, whose work says more

  friend bool operator==(const OperationTime&, const OperationTime&) = default;
};

// Work of one launch. bytes counts each operand read once and each result written once (read-modify-write: twice).
struct Cost {
  std::int64_t flops = 0;
  std::int64_t bytes = 0;

  friend bool operator==(const Cost&, const Cost&) = default;
};

// Segments of at most so many queries and keys are short: a block has them whole.
inline constexpr std::int64_t kShortSegment = 64;

// What attention's time depends on besides its cost.
struct AttentionWork {
  bool backward = false;
  std::int64_t queries = 0, pairs = 0;  // in segments: queries, and pairs of a query and a key, those that a mask hides too
  std::int64_t longest = 0;             // what no segment is longer than on either side: kernels are chosen by it
  std::int64_t heads = 0, head_size = 0;
  DType dtype = DType::f32;
  bool causal = false, dropout = false;

  double keys() const {  // of a query's segment, on average over the queries
    return queries > 0 ? static_cast<double>(pairs) / static_cast<double>(queries) : 0.0;
  }

  friend bool operator==(const AttentionWork&, const AttentionWork&) = default;
};

// What the time of what ranks do together depends on besides its cost.
enum class CollectiveKind : std::uint8_t { all_reduce, reduce_scatter, all_gather, broadcast };
struct CollectiveWork {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t bytes = 0;  // of the whole tensor: what is summed, or what every rank has in the end
  int ranks = 1;

  friend bool operator==(const CollectiveWork&, const CollectiveWork&) = default;
};

struct TraceEntry {
  std::string_view operation;  // "gemm", "layer_norm", ...
  std::string layer;           // "decoder.3.ffn.up"
  Cost cost;
  OperationTime time;
  std::optional<GemmProblem> gemm;
  std::optional<GemmPlan> plan;
  std::optional<AttentionWork> attention;
  std::optional<CollectiveWork> collective;
  std::int64_t times = 1;  // that a step launches it so: passes after the second one are traced as the second

  friend bool operator==(const TraceEntry&, const TraceEntry&) = default;
};

struct Trace {
  std::string layer;  // of the launches that follow
  std::vector<TraceEntry> entries;

  std::int64_t launches() const {
    std::int64_t sum = 0;
    for (const TraceEntry& entry : entries) sum += entry.times;
    return sum;
  }
};

// One entry for a launch with these arguments. Argument structs have kOperation, kTime and a cost() found by
// argument-dependent look-up; GemmArgs, attention's and those of what ranks do together have overloads of their own.
template <class Args>
TraceEntry trace_entry(const Args& args) {
  return {.operation = Args::kOperation,
          .layer = {},
          .cost = cost(args),
          .time = Args::kTime,
          .gemm = {},
          .plan = {},
          .attention = {},
          .collective = {}};
}

}  // namespace tilewave
