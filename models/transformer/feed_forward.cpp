// One fused operation between norm and residual.
#include "models/transformer/feed_forward.h"

#include "framework/ops/feed_forward.h"
#include "models/transformer/initialization.h"

namespace tilewave {

FeedForward::FeedForward(Parameters& parameters, const std::string& name, const ModelConfig& config)
    : norm_(parameters, name + ".norm", config.d_model),
      up_(parameters, {.name = name + ".up", .in = config.d_model, .out = config.d_ff, .deviation = weight_deviation(config)}),
      down_(parameters, {.name = name + ".down", .in = config.d_ff, .out = config.d_model, .deviation = weight_deviation(config)}),
      activation_(config.activation),
      placement_(config.norm) {}

Variable FeedForward::forward(Context& context, const Variable& x, const DropoutRates& rates) const {
  const LayerScope scope(context, "ffn");
  return sublayer(context, norm_, placement_, rates.hidden, x, [&](const Variable& input, const Variable& residual) {
    return feed_forward(context, {.x = input,
                                  .up_weight = up_.weight(),
                                  .up_bias = up_.bias(),
                                  .down_weight = down_.weight(),
                                  .down_bias = down_.bias(),
                                  .residual = residual,
                                  .activation = activation_,
                                  .hidden_layout = context.options().ffn_hidden_layout});
  });
}

}  // namespace tilewave
