// One fused operation between norm and residual.
#include "models/transformer/feed_forward.h"

#include "framework/ops/feed_forward.h"
#include "models/transformer/initialization.h"

namespace tilewave {

std::vector<std::int64_t> up_parts(const ModelConfig& config) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(up_matrices(config.activation)), config.d_ff);
}

FeedForward::FeedForward(Parameters& parameters, const std::string& name, const ModelConfig& config)
    : norm_(parameters, norm_spec(config, name + ".norm")),
      up_(parameters, linear_spec(config, {.name = name + ".up",
                                           .in = config.d_model,
                                           .out = up_matrices(config.activation) * config.d_ff,
                                           .parts = up_parts(config)})),
      down_(parameters, linear_spec(config, {.name = name + ".down", .in = config.d_ff, .out = config.d_model})),
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
