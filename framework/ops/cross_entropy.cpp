// cross_entropy: value and gradient in one pass over the logits.
#include "framework/ops/cross_entropy.h"

#include "kernels/ops/cross_entropy.h"

namespace tilewave {

Variable cross_entropy(Context& context, const CrossEntropyInputs& inputs) {
  const Tensor logits = inputs.logits.value();  // [tokens, padded vocabulary]
  check_same_shape("cross_entropy", "the labels", inputs.labels.shape(), "one label a row of the logits", {1, logits.rows()});
  TW_CHECK(inputs.vocabulary > 0 && inputs.vocabulary <= logits.cols(), "cross_entropy: a vocabulary of ", inputs.vocabulary,
           " does not fit logits of shape ", logits.shape(), ".");

  const bool differentiates = context.gradient_mode() == GradientMode::on && inputs.logits.requires_gradient();
  const DType statistics = context.precision().statistics;
  const Tensor row_loss = context.tensor({1, logits.rows()}, statistics);  // [1, tokens]
  const Tensor loss = context.tensor({1, 1}, statistics);
  if (differentiates) consume(inputs.logits, logits, "cross_entropy");
  context.launch(CrossEntropyArgs{.logits = logits.view(),
                                  .labels = inputs.labels.view(),
                                  .vocabulary = inputs.vocabulary,
                                  .smoothing = inputs.smoothing,
                                  .gradient = differentiates ? LossGradient::in_place : LossGradient::none,
                                  .row_loss = row_loss.view(),
                                  .loss = loss.view(),
                                  .state = context.step_state()});

  // The gradient stands in the logits' memory already.
  const Variable result =
      make_variable(context, loss, "cross_entropy", {inputs.logits}, [](Context&, const Tensor&, std::span<GradientSlot>) {});
  result.mark_as_loss();
  return result;
}

}  // namespace tilewave
