// The value that fits is found by tracing smaller steps.
#include "models/step/memory_check.h"

#include <algorithm>
#include <cmath>

#include "kernels/core/error.h"
#include "kernels/gemm/tiling.h"

namespace tilewave {
namespace {

// The batch with its rows scaled to `target_tokens`, and room for one sequence on either side; or with so many pictures, and the target
// rows that they were given.
BatchConfig with_target_rows(const ModelConfig& model, BatchConfig batch, std::int64_t target_tokens) {
  if (sees_pictures(model)) {
    batch.pictures = target_tokens;
    return batch;
  }
  if (batch.source_tokens > 0) batch.source_tokens = std::max(batch.sequence, batch.source_tokens * target_tokens / batch.target_tokens);
  batch.target_tokens = target_tokens;
  return batch;
}

ResolvedRecipe with_batch(Recipe recipe, const BatchConfig& batch) {
  recipe.batch = batch;
  return resolve(recipe);
}

// "1.3 GiB", "36.7 MiB"
std::string amount(std::int64_t bytes) {
  const bool many = bytes >= std::int64_t{1} << 30;
  return concat(std::round(10.0 * static_cast<double>(std::max<std::int64_t>(0, bytes)) / (1 << (many ? 30 : 20))) / 10.0,
                many ? " GiB" : " MiB");
}

}  // namespace

std::string memory_shortage(const ResolvedRecipe& resolved, const StepTrace& trace, const DeviceInfo& device, std::int64_t free_bytes) {
  const std::int64_t room = free_bytes - reserved_bytes(device.backend);
  if (trace.bytes() <= room) return {};
  const std::string need = concat(
      resolved.recipe.name, " needs ", amount(trace.bytes()), ", ", amount(trace.persistent_bytes),
      " of them for weights, gradients and moments, ",
      trace.decoding_bytes > trace.step_bytes() ? concat(amount(trace.decoding_bytes), " to translate its longest test sentence, ") : "",
      "and ", device.name, " has ", amount(room), " to give");
  // Whole sequences, so that a smaller step is cut as this one is.
  const ModelConfig& model = resolved.recipe.model;
  const bool pictures = sees_pictures(model);
  const std::int64_t unit = pictures ? 1 : resolved.recipe.batch.sequence;
  std::int64_t fits = 0, too_many = ceil_div(pictures ? resolved.recipe.batch.pictures : resolved.recipe.batch.target_tokens, unit);
  while (trace.persistent_bytes + trace.decoding_bytes <= room && fits + 1 < too_many) {
    const std::int64_t middle = (fits + too_many) / 2;
    const BatchConfig batch = with_target_rows(model, resolved.recipe.batch, middle * unit);
    (trace_step(with_batch(resolved.recipe, batch), device).bytes() <= room ? fits : too_many) = middle;
  }
  if (fits == 0 && pictures) {
    return concat(need, "; use a smaller model: fewer layers, or a smaller model.d_model or model.d_ff, or a larger model.patch.");
  }
  if (pictures) return concat(need, "; --set batch.pictures=", fits, " fits, and batch.accumulate makes up for it.");
  if (fits == 0) {
    return concat(need, "; use a ", trace.persistent_bytes < room ? "smaller batch.sequence, or a " : "",
                  "smaller model: fewer layers, or a smaller model.d_model, model.d_ff or model.vocabulary.");
  }
  const BatchConfig batch = with_target_rows(model, resolved.recipe.batch, fits * unit);
  return concat(need, "; --set batch.target_tokens=", batch.target_tokens,
                batch.source_tokens > 0 ? concat(" --set batch.source_tokens=", batch.source_tokens) : std::string(),
                " fits, and batch.accumulate makes up for it.");
}

void check_memory(const ResolvedRecipe& resolved, const StepTrace& trace, const DeviceInfo& device, std::int64_t free_bytes) {
  const std::string shortage = memory_shortage(resolved, trace, device, free_bytes);
  TW_CHECK(shortage.empty(), shortage);
}

}  // namespace tilewave
