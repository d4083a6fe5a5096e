// The operation's own launch, traced.
#include "models/planning/operation_answer.h"

#include <algorithm>

#include "framework/measure/operation_work.h"
#include "framework/recipe/nearest.h"
#include "kernels/core/error.h"
#include "kernels/gemm/cost/cost_model.h"
#include "kernels/gemm/cost/operation_time.h"

namespace tilewave {
namespace {

constexpr std::int64_t kMaxOperationRows = std::int64_t{1} << 24,
                       kMaxOperationElements = std::int64_t{1} << 34;  // an optimizer's launch is one of matrices

const BenchedOperation& operation_called(const std::string& name) {
  const std::span<const BenchedOperation> all = benched_operations();
  const auto found = std::ranges::find_if(all, [&](const BenchedOperation& one) { return one.name == name; });
  if (found != all.end()) return *found;
  std::vector<std::string_view> names;
  std::string known;
  for (const BenchedOperation& one : all) {
    names.emplace_back(one.name);
    known += concat(known.empty() ? "" : ", ", one.name);
  }
  const std::string_view near = nearest_word(name, names);
  throw InputError(concat("--op ", name, ": there is no such operation", near.empty() ? "" : concat(" (did you mean ", near, "?)"),
                          "; there are ", known, ". GEMMs are --gemm and --layer; attention is part of a recipe's plan."));
}

// What tilewave's steps launch instead of the operation by itself.
std::string_view fused_into(std::string_view name) {
  if (name == "relu" || name == "gelu") return "the epilogue of the GEMM before it";
  if (name == "relu_backward" || name == "gelu_backward") return "the epilogue of the GEMM that makes the gradient which it scales";
  if (name == "add") return "the epilogue of the GEMM whose result is added";
  return {};
}

}  // namespace

OperationAnswer answer(const OperationQuestion& question, const DeviceInfo& device) {
  const BenchedOperation& operation = operation_called(question.name);
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
