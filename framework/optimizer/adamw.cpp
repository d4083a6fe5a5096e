// The tables of tensors that the two launches read are made once.
#include "framework/optimizer/adamw.h"

namespace tilewave {

AdamW::AdamW(Parameters& parameters, const AdamWOptions& options) : parameters_(parameters), options_(options) {
  for (const Parameter& parameter : parameters.all()) {
    const Tensor& master = parameter.master;
    const Tensor& compute = parameter.variable.value();
    first_moments_.push_back(parameters.context().persistent(master.shape(), master.dtype()));
    second_moments_.push_back(parameters.context().persistent(master.shape(), master.dtype()));
    gradients_.push_back(parameter.variable.gradient().view());
    tensors_.push_back({.master = master.view(),
                        .gradient = parameter.variable.gradient().view(),
                        .first_moment = first_moments_.back().view(),
                        .second_moment = second_moments_.back().view(),
                        .compute = compute.data() == master.data() ? MatrixView{} : compute.view(),
                        .decay = parameter.decay()});
  }
  if (parameters.context().device().backend == Backend::cuda) {
    workspace_ = parameters.context().persistent({1, gradient_norm_workspace_cols(gradients_)}, DType::f64);
  }
}

void AdamW::update() {
  Context& context = parameters_.context();
  const LayerScope scope(context, "optimizer");
  parameters_.zero_unwritten_gradients();
  context.launch(GradientNormArgs{.gradients = gradients_,
                                  .clip_norm = options_.clip_norm,
                                  .scaling = options_.scaling,
                                  .state = context.step_state(),
                                  .workspace = workspace_.view()});
  context.launch(AdamWArgs{.tensors = tensors_,
                           .beta1 = options_.beta1,
                           .beta2 = options_.beta2,
                           .epsilon = options_.epsilon,
                           .weight_decay = options_.weight_decay,
                           .state = context.step_state()});
}

}  // namespace tilewave
