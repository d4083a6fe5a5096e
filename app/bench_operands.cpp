// The operands of the benchmarks of operations.
#include "app/bench_operands.h"

#include <algorithm>
#include <cmath>

#include "framework/host_tensor.h"
#include "framework/random.h"

namespace tilewave {
namespace {

constexpr std::int64_t kRandomElements = std::int64_t{1} << 20;

}  // namespace

Tensor random_tensor(Context& context, Shape shape, DType dtype, std::uint64_t key) {
  const Tensor tensor = context.tensor(shape, dtype);
  const std::int64_t rows = std::min(shape.rows, std::max<std::int64_t>(1, kRandomElements / tensor.pitch()));
  const Tensor block = tensor.slice_rows(0, rows);
  Random random(key);
  write_elements(context, block, [&](std::int64_t, std::int64_t) {
    double sum = 0.0;  // of four uniform draws: close to normal, variance 1
    for (int i = 0; i < 4; ++i) sum += static_cast<double>(random.next() >> 11) * 0x1p-53 - 0.5;
    return sum * std::sqrt(3.0);
  });
  for (std::int64_t row = rows; row < shape.rows; row += rows) {
    const Tensor next = tensor.slice_rows(row, std::min(rows, shape.rows - row));
    copy_on_device(context.queue(), next.data(), block.data(), next.bytes());
  }
  return tensor;
}

Precision precision_of(const std::string& name, Backend backend) {
  if (name.empty()) return backend == Backend::cuda ? Precision::bf16 : Precision::fp32;
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp64}) {
    if (name == name_of(precision)) return precision;
  }
  throw InputError(sentence("--precision ", name, ": there are fp32, tf32, bf16, fp16 and fp64."));
}

}  // namespace tilewave
