// The tables of tensors that the launches read are made once.
#include "framework/optimizer/adamw.h"

#include <algorithm>

#include "kernels/ops/collective.h"

namespace tilewave {
namespace {

constexpr std::int64_t kRow = 4096;

// A part of a share as matrices, whose rows a CPU's threads share out: one of whole rows, and what is left.
std::vector<ShareRun> as_matrices(const ShareRun& run) {
  const std::int64_t whole = run.count / kRow * kRow;
  std::vector<ShareRun> parts;
  if (whole > 0) parts.push_back({.parameter = run.parameter, .first = run.first, .count = whole});
  if (whole < run.count) parts.push_back({.parameter = run.parameter, .first = run.first + whole, .count = run.count - whole});
  return parts;
}

MatrixView rows_of(const Tensor& share, const ShareRun& part) {
  const std::int64_t cols = std::min(part.count, kRow);
  return share.as_rows(part.first, {part.count / cols, cols}, cols).view();
}

}  // namespace

AdamW::AdamW(Parameters& parameters, const AdamWOptions& options) : parameters_(parameters), options_(options) {
  if (parameters.sharding() == Sharding::none) {
    add_tensors();
  } else {
    add_shares();
  }
  if (parameters.context().device().backend == Backend::cuda) {
    workspace_ = parameters.context().persistent({1, gradient_norm_workspace_cols(gradients_)}, DType::f64);
  }
}

void AdamW::add_tensors() {
  for (const Parameter& parameter : parameters_.all()) {
    const Tensor& master = parameter.master;
    const Tensor& compute = parameter.variable.value();
    first_moments_.push_back(parameters_.context().persistent(master.shape(), master.dtype()));
    second_moments_.push_back(parameters_.context().persistent(master.shape(), master.dtype()));
    gradients_.push_back(parameter.variable.gradient().view());
    tensors_.push_back({.master = master.view(),
                        .gradient = parameter.variable.gradient().view(),
                        .first_moment = first_moments_.back().view(),
                        .second_moment = second_moments_.back().view(),
                        .compute = compute.data() == master.data() ? MatrixView{} : compute.view(),
                        .decay = parameter.decay()});
  }
}

void AdamW::add_shares() {
  Context& context = parameters_.context();
  for (const ParameterLayer& layer : parameters_.layers()) {
    const ShareRange share = share_of(layer, context.ranks(), context.ranks().rank);
    const Tensor& master = layer.master_share;
    const Tensor compute = layer.compute.columns(share.first, share.count);
    const Tensor first = first_moments_.emplace_back(context.persistent(master.shape(), master.dtype()));
    const Tensor second = second_moments_.emplace_back(context.persistent(master.shape(), master.dtype()));
    for (const ShareRun& run : runs_of(layer, share)) {
      for (const ShareRun& part : as_matrices(run)) {
        gradients_.push_back(rows_of(layer.gradient_share, part));
        tensors_.push_back({.master = rows_of(master, part),
                            .gradient = gradients_.back(),
                            .first_moment = rows_of(first, part),
                            .second_moment = rows_of(second, part),
                            .compute = compute.data() == master.data() ? MatrixView{} : rows_of(compute, part),
                            .decay = part.parameter->decay()});
      }
    }
  }
}

ParameterState AdamW::moment(const std::vector<Tensor>& moments, std::size_t index) const {
  if (parameters_.sharding() != Sharding::none) return parameters_.state_in(moments, index);
  return {parameters_.all()[index], moments[index]};
}

void AdamW::update() {
  Context& context = parameters_.context();
  const LayerScope scope(context, "optimizer");
  const bool shares = parameters_.sharding() != Sharding::none;
  if (shares) {
    measure_shares();
  } else {
    parameters_.zero_unwritten_gradients();
    context.launch(GradientNormArgs{.gradients = gradients_,
                                    .clip_norm = options_.clip_norm,
                                    .scaling = options_.scaling,
                                    .state = context.step_state(),
                                    .workspace = workspace_.view()});
  }
  context.launch(AdamWArgs{.tensors = tensors_,
                           .beta1 = options_.beta1,
                           .beta2 = options_.beta2,
                           .epsilon = options_.epsilon,
                           .weight_decay = options_.weight_decay,
                           .state = context.step_state()});
  parameters_.outdate_compute_copies();
}

void AdamW::measure_shares() {
  Context& context = parameters_.context();
  StepState* const state = context.step_state();
  context.launch(SumOfSquaresArgs{.gradients = gradients_, .state = state, .workspace = workspace_.view()});
  context.launch_beside(AllReduceArgs{.x = {&state->sum_of_squares, 1, 1, 1, DType::f64}, .ranks = context.ranks()});
  context.await_ranks();
  context.launch(NormOfSquaresArgs{.clip_norm = options_.clip_norm, .scaling = options_.scaling, .state = state});
}

}  // namespace tilewave
