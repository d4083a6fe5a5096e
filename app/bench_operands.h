// What the benchmarks of operations compute with: random numbers, in the types asked for, more of them than caches hold.
#pragma once

#include "app/command.h"
#include "framework/context.h"

namespace tilewave {

// Operands rotate through more than a GPU's second-level cache holds; a CPU's third-level too.
inline constexpr std::int64_t kRotatedBytes = std::int64_t{256} << 20;

// Normal numbers: a block of them, repeated.
Tensor random_tensor(Context& context, Shape shape, DType dtype, std::uint64_t key);

// What --precision says; empty: bf16 on a GPU, else fp32.
Precision precision_of(const std::string& name, Backend backend);

}  // namespace tilewave
