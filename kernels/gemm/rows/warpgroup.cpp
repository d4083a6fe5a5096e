// What the rows on Hopper's tensor cores refuse, and the parts of their time.
#include "kernels/gemm/rows/warpgroup.h"

#include <algorithm>
#include <limits>

#include "kernels/error.h"

namespace tilewave {

std::string refuse_warpgroup(const GemmProblem& problem, const DeviceInfo& device, std::int64_t shared_bytes) {
  if (device.capability != 90) {
    return sentence("it uses wgmma and the bulk copy engine of compute capability 9.0; this device has ", device.capability / 10, ".",
                    device.capability % 10, ".");
  }
  if (shared_bytes > device.shared_bytes) {
    return sentence("a block needs ", shared_bytes, " bytes of shared memory and the device gives ", device.shared_bytes, ".");
  }
  if (problem.operand_dtype != DType::bf16 && problem.operand_dtype != DType::f16) {
    return sentence("its tensor cores take bf16 and f16 in either major, not ", name_of(problem.operand_dtype), ".");
  }
  if (problem.output_dtype != problem.operand_dtype && problem.output_dtype != DType::f32) {
    return sentence("it writes the operands' type or f32, not ", name_of(problem.output_dtype), ".");
  }
  if (problem.d_major != Major::m) return "it writes D along M; make D m-major.";
  const std::int64_t longest = std::max({problem.m, problem.n, problem.k});
  if (longest > std::numeric_limits<int>::max() - 4096)
    return sentence("a dimension of ", longest, " does not fit the copy engine's 32-bit coordinates.");
  const auto unaligned = [](const char* name, std::int64_t alignment, std::int64_t pitch) {
    return sentence("the copy engine wants base and pitch of ", name, " in multiples of 16 bytes; its pitch of ", pitch,
                    " elements and its base allow ", alignment, ": use guidelines.row_pitch = \"aligned\".");
  };
  if (problem.a_alignment < 16) return unaligned("A", problem.a_alignment, problem.a_pitch);
  if (problem.b_alignment < 16) return unaligned("B", problem.b_alignment, problem.b_pitch);
  return {};
}

int cluster_of(const Tiling& tiling) { return tiling.tiles_n % 2 == 0 || tiling.tiles_n > 16 ? 2 : 1; }

WarpgroupTime warpgroup_time(const GemmProblem& problem, Tile tile, const WarpgroupShape& shape, const DeviceInfo& device) {
  constexpr double kEfficiency = 0.7;
  constexpr double kSharedBytesPerCycle = 128.0;
  constexpr double kStoreBytesPerCycle = 24.0;
  constexpr double kDerivative = 1.4;  // a derivative costs so many activations
  const double area = static_cast<double>(tile.m * tile.n);
  const double math = area * kBlockK / static_cast<double>(math_rates(device.capability).tensor_bf16);
  const std::int64_t wgmmas = tile.m / shape.columns * (tile.n / 64) * (kBlockK / 16);  // each reads its 64 rows and its columns of 16 k
  const double shared = static_cast<double>(stage_bytes(tile) + wgmmas * (64 + shape.columns) * 16 * 2) / kSharedBytesPerCycle;
  const Epilogue& epilogue = problem.epilogue;
  const double bytes = area * static_cast<double>(size_of(problem.output_dtype) * epilogue.passes());
  const auto computed = [](Activation activation) { return activation == Activation::none || activation == Activation::relu ? 0.0 : 1.0; };
  return {.stage = std::max(math, shared) / kEfficiency,
          .epilogue = 800.0 + bytes / kStoreBytesPerCycle +
                      area * shape.activation_cycles * (computed(epilogue.activation) + kDerivative * computed(epilogue.derivative)),
          .launch = 5000.0};
}

}  // namespace tilewave
