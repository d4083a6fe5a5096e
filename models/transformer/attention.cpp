// Forward passes of the attention sublayers; decoding is the same sublayer with the keys and values of a cache.
#include "models/transformer/attention.h"

#include <utility>

#include "kernels/ops/add.h"
#include "models/transformer/initialization.h"

namespace tilewave {

std::vector<std::int64_t> qkv_parts(const ModelConfig& config) {
  const std::int64_t queries = config.heads * head_size_of(config), keys = kv_heads_of(config) * head_size_of(config);
  return {queries, keys, keys};
}

Tensor rotations_of(Context& context, const ModelConfig& config) {
  if (config.positions != Positions::rope) return {};
  RotationTable table{.positions = config.max_positions, .head_size = head_size_of(config), .base = config.rope_base, .stretch = {}};
  if (config.rope_scaling == RopeScaling::llama3) {
    table.stretch = {.factor = config.rope_factor,
                     .low = config.rope_low_frequency,
                     .high = config.rope_high_frequency,
                     .original_positions = config.rope_original_positions};
  }
  return rotation_table(context, table);
}

Heads::Heads(Parameters& parameters, const std::string& name, const ModelConfig& config)
    : heads_(config.heads),
      kv_heads_(kv_heads_of(config)),
      size_(head_size_of(config)),
      scale_(config.attention_scale),
      epsilon_(config.epsilon) {
  if (!config.query_key_norm) return;
  const auto weight = [&](const char* of) {
    return parameters.add({.name = name + of, .shape = {1, size_}, .kind = ParameterKind::norm, .initialization = {.mean = 1.0}});
  };
  query_gamma_ = weight(".query_norm.weight");
  key_gamma_ = weight(".key_norm.weight");
}

AttentionOptions Heads::options(const Segments& segments, Mask mask, double dropout) const {
  return {.segments = segments.rows,
          .heads = heads_,
          .kv_heads = kv_heads_,
          .scale = scale_,
          .sequence = segments.longest,
          .sums = segments.sums,
          .mask = mask,
          .dropout = dropout};
}

Variable Heads::normalised(Context& context, const Variable& x, Part part) const {
  if (!query_gamma_) return x;
  const bool queries = part != Part::keys_values, keys = part != Part::queries;
  return query_key_norm(context, {.x = x,
                                  .query_gamma = queries ? query_gamma_ : Variable(),
                                  .key_gamma = keys ? key_gamma_ : Variable(),
                                  .heads = queries ? heads_ : 0,
                                  .kv_heads = keys ? kv_heads_ : 0,
                                  .epsilon = epsilon_});
}

SelfAttention::SelfAttention(Parameters& parameters, const std::string& name, const ModelConfig& config, Tensor rotations)
    : norm_(parameters, norm_spec(config, name + ".norm")),
      heads_(parameters, name, config),
      qkv_(parameters, linear_spec(config,
                                   {.name = name + ".qkv",
                                    .in = config.d_model,
                                    .out = heads_.query_features() + heads_.key_value_features(),
                                    .parts = qkv_parts(config)},
                                   LinearPart::queries_keys_values)),
      out_(parameters, linear_spec(config, {.name = name + ".out", .in = heads_.query_features(), .out = config.d_model})),
      rotations_(std::move(rotations)),
      placement_(config.norm) {}

Variable SelfAttention::queries_keys_values(Context& context, const Variable& input, const Tensor& position_ids) const {
  const Variable qkv = heads_.normalised(context, qkv_.forward(context, input), Heads::Part::queries_keys_values);
  if (!rotations_) return qkv;
  return rope(context, {.x = qkv, .table = rotations_, .position_ids = position_ids, .columns = heads_.turned_features()});
}

Variable SelfAttention::forward(Context& context, const Variable& x, const Segments& segments, Mask mask, const DropoutRates& rates) const {
  const LayerScope scope(context, "self_attention");
  return sublayer(context, norm_, placement_, rates.hidden, x, [&](const Variable& input, const Variable& residual) {
    const Variable qkv =
        named(context, "qkv", [&] { return queries_keys_values(context, input, segments.position_ids); });  // [tokens, all heads' D]
    const Variable mixed = self_attention(context, qkv, heads_.options(segments, mask, rates.attention));   // [tokens, heads D]
    return named(context, "out", [&] { return out_.forward(context, mixed, residual); });
  });
}

Variable SelfAttention::decode(Context& context, const Variable& x, const DecodeStep& step, const KeyValueCache& cache) const {
  const std::int64_t sequences = step.self_segments.rows();
  TW_CHECK(step.tokens == 1 || sequences == 1, "decoding takes one new token of each sequence, or several of a single one; it got ",
           step.tokens, " of each of ", sequences, ".");
  return sublayer(context, norm_, placement_, 0.0, x, [&](const Variable& input, const Variable& residual) {
    const Tensor qkv = queries_keys_values(context, input, step.position_ids).value();  // [sequences * new tokens, all heads' D]
    const std::int64_t queries = heads_.query_features(), keys_values = heads_.key_value_features();
    // Append: the new rows of all sequences lie `capacity` rows apart in the cache, those of a single one follow each other.
    const Tensor first = cache.kv.slice_rows(step.position, 1);
    const MatrixView place{first.data(), qkv.rows(), keys_values, cache.kv.pitch() * (step.tokens == 1 ? cache.capacity : 1),
                           first.dtype()};
    context.launch(AddArgs{.a = qkv.columns(queries, keys_values).view(), .b = {}, .y = place});

    const Segments segments{.rows = step.self_segments, .sums = {}, .position_ids = {}};
    const Variable mixed =
        cross_attention(context, Variable(qkv.columns(0, queries)), Variable(cache.kv),  // [sequences * new tokens, heads D]
                        heads_.options(segments, Mask::causal, 0.0));
    return out_.forward(context, mixed, residual);
  });
}

CrossAttention::CrossAttention(Parameters& parameters, const std::string& name, const ModelConfig& config)
    : norm_(parameters, norm_spec(config, name + ".norm")),
      heads_(parameters, name, config),
      q_(parameters,
         linear_spec(config, {.name = name + ".q", .in = config.d_model, .out = heads_.query_features()}, LinearPart::queries_keys_values)),
      kv_(parameters, linear_spec(config, {.name = name + ".kv", .in = config.d_model, .out = heads_.key_value_features()},
                                  LinearPart::queries_keys_values)),
      out_(parameters, linear_spec(config, {.name = name + ".out", .in = heads_.query_features(), .out = config.d_model})),
      placement_(config.norm) {}

Variable CrossAttention::keys_and_values(Context& context, const Variable& memory) const {
  return named(context, "kv", [&] { return heads_.normalised(context, kv_.forward(context, memory), Heads::Part::keys_values); });
}

Variable CrossAttention::attend(Context& context, const Variable& x, const Variable& kv, const Segments& segments,
                                const DropoutRates& rates) const {
  return sublayer(context, norm_, placement_, rates.hidden, x, [&](const Variable& input, const Variable& residual) {
    const Variable q = named(  // [tokens, heads D]
        context, "q", [&] { return heads_.normalised(context, q_.forward(context, input), Heads::Part::queries); });
    const Variable mixed = cross_attention(context, q, kv, heads_.options(segments, Mask::none, rates.attention));  // [tokens, heads D]
    return named(context, "out", [&] { return out_.forward(context, mixed, residual); });
  });
}

Variable CrossAttention::forward(Context& context, const Variable& x, const Variable& memory, const Segments& segments,
                                 const DropoutRates& rates) const {
  const LayerScope scope(context, "cross_attention");
  return attend(context, x, keys_and_values(context, memory), segments, rates);
}

}  // namespace tilewave
