// Operands of operations that are no GEMMs, random and on a Transformer's shapes, and what runs on them: for their benchmarks and for
// the calibration of kernels/gemm/cost/operation_time.h.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "framework/tensor/context.h"
#include "kernels/ops/attention.h"

namespace tilewave {

// Operands rotate through more than a GPU's second-level cache holds; a CPU's third-level too.
inline constexpr std::int64_t kRotatedBytes = std::int64_t{256} << 20;

// Nearly normal numbers, made where they lie: on a GPU each of its own, on a CPU a block of them, repeated.
Tensor random_tensor(Context& context, Shape shape, DType dtype, std::uint64_t key);

// One set of operands, and what runs on it. The closure owns the operands.
struct OperationWork {
  TraceEntry entry;
  std::function<void()> launch;
};

struct BenchedOperation {
  const char* name;
  Shape shape;  // unless asked otherwise; of adamw and gradient_norm: of matrices of up to 1,024 rows in all
  std::function<OperationWork(Context& context, Shape shape)> prepare;
  const char* operands = "";  // what is particular about them
};
// At sizes that keep a GPU's memory busy.
std::span<const BenchedOperation> benched_operations();
// The one of that name; InputError where there is none, with the nearest and all of them.
const BenchedOperation& benched_operation(std::string_view name);
// Some of them as a step of Transformer-big or GPT-2 has them, where they are small or their operands are not uniform.
std::span<const BenchedOperation> step_operations();

// Packed sequences of one length, queries, keys and values side by side as a model has them.
struct AttentionSequences {
  std::int64_t sequences = 0, heads = 0, length = 0, head_size = 0;
  Mask mask = Mask::none;
  double dropout = 0.0;
};
// Transformer-big's encoder and decoder, the translation recipes' many short ones, GPT-2's, and longer and wider ones.
std::span<const AttentionSequences> benched_attention();

struct AttentionPasses {
  OperationWork forward, backward;
};
AttentionPasses attention_passes(Context& context, const AttentionSequences& shape);

}  // namespace tilewave
