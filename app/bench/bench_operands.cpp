// The precision by its name.
#include "app/bench/bench_operands.h"

namespace tilewave {

Precision precision_of(const std::string& name, Backend backend) {
  if (name.empty()) return backend == Backend::cuda ? Precision::bf16 : Precision::fp32;
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp64}) {
    if (name != name_of(precision)) continue;
    TW_CHECK_INPUT(backend == Backend::cuda || (precision != Precision::bf16 && precision != Precision::fp16), "--precision ", name,
                   ": a CPU computes in fp32, tf32 and fp64.");
    return precision;
  }
  throw InputError(concat("--precision ", name, ": there are fp32, tf32, bf16, fp16 and fp64."));
}

}  // namespace tilewave
