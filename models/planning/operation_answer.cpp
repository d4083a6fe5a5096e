// The operation's own launch, traced.
#include "models/planning/operation_answer.h"

#include "framework/measure/operation_work.h"
#include "kernels/core/error.h"
#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/cost/operation_time.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxOperationRows = std::int64_t{1} << 24,
                       kMaxOperationElements = std::int64_t{1} << 34;  // an optimizer's launch is one of matrices

// What tilewave's steps launch instead of the operation by itself.
std::string_view fused_into(std::string_view name) {
  if (name == "relu" || name == "gelu") return "the epilogue of the GEMM before it";
  if (name == "relu_backward" || name == "gelu_backward") return "the epilogue of the GEMM that makes the gradient which it scales";
  if (name == "add") return "the epilogue of the GEMM whose result is added";
  return {};
}

}  // namespace

OperationAnswer answer(const OperationQuestion& question, const DeviceInfo& device) {
  const BenchedOperation& operation = benched_operation(question.name);
  const Shape shape = question.shape.rows > 0 ? question.shape : operation.shape;
  TW_CHECK_INPUT(shape.rows <= kMaxOperationRows && shape.cols <= kMaxOperationElements / shape.rows, "--op ", question.name, " ",
                 shape.rows, "x", shape.cols, ": at most ", kMaxOperationRows, " rows and ", kMaxOperationElements,
                 " elements are planned; ask for fewer.");
  Context context(TraceQueue{}, device, {.precision = question.precision});
  const TraceEntry entry = operation.prepare(context, shape).entry;
  OperationAnswer all{.name = question.name,
                      .shape = shape,
                      .cost = entry.cost,
                      .dtype = context.precision().activation,
                      .launches = entry.time.launches,
                      .predicted_s = predicted_seconds(entry, device),
                      .fused = fused_into(question.name)};
  if (device.bandwidth_bytes_per_s <= 0.0) return all;
  all.floor_s = static_cast<double>(entry.cost.bytes) / device.bandwidth_bytes_per_s;
  const double launch_s = entry.time.launches * cost_model_of(device).operations.launch_s;
  all.limit = launch_s > 0.5 * all.predicted_s ? Limit::launch : Limit::memory;
  return all;
}

}  // namespace tilewave
