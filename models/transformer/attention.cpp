// Forward passes of the attention sublayers; decoding is the same sublayer with the keys and values of a cache.
#include "models/transformer/attention.h"

#include "kernels/ops/add.h"
#include "models/transformer/initialization.h"

namespace tilewave {

SelfAttention::SelfAttention(Parameters& parameters, const std::string& name, const ModelConfig& config)
    : norm_(parameters, name + ".norm", config.d_model),
      qkv_(parameters, {.name = name + ".qkv", .in = config.d_model, .out = 3 * config.d_model, .deviation = weight_deviation(config)}),
      out_(parameters, {.name = name + ".out", .in = config.d_model, .out = config.d_model, .deviation = weight_deviation(config)}),
      heads_(config.heads),
      placement_(config.norm) {}

Variable SelfAttention::forward(Context& context, const Variable& x, const Segments& segments, Mask mask, const DropoutRates& rates) const {
  const LayerScope scope(context, "self_attention");
  return sublayer(context, norm_, placement_, rates.hidden, x, [&](const Variable& input, const Variable& residual) {
    const Variable qkv = named(context, "qkv", [&] { return qkv_.forward(context, input); });  // [tokens, 3 d_model]
    const Variable mixed = self_attention(                                                     // [tokens, d_model]
        context, qkv,
        {.segments = segments.rows,
         .heads = heads_,
         .sequence = segments.longest,
         .sums = segments.sums,
         .mask = mask,
         .dropout = rates.attention});
    return named(context, "out", [&] { return out_.forward(context, mixed, residual); });
  });
}

Variable SelfAttention::decode(Context& context, const Variable& x, const DecodeStep& step, const KeyValueCache& cache) const {
  const std::int64_t sequences = step.self_segments.rows();
  TW_CHECK(step.tokens == 1 || sequences == 1, "decoding takes one new token of each sequence, or several of a single one; it got ",
           step.tokens, " of each of ", sequences, ".");
  return sublayer(context, norm_, placement_, 0.0, x, [&](const Variable& input, const Variable& residual) {
    const Tensor qkv = qkv_.forward(context, input).value();  // [sequences * new tokens, 3 d_model]
    const std::int64_t d = qkv.cols() / 3;
    // Append: the new rows of all sequences lie `capacity` rows apart in the cache, those of a single one follow each other.
    const Tensor first = cache.kv.slice_rows(step.position, 1);
    const MatrixView place{first.data(), qkv.rows(), 2 * d, cache.kv.pitch() * (step.tokens == 1 ? cache.capacity : 1), first.dtype()};
    context.launch(AddArgs{.a = qkv.columns(d, 2 * d).view(), .b = {}, .y = place});

    const Variable mixed = cross_attention(context, Variable(qkv.columns(0, d)), Variable(cache.kv),  // [sequences * new tokens, d_model]
                                           {.segments = step.self_segments, .heads = heads_, .mask = Mask::causal});
    return out_.forward(context, mixed, residual);
  });
}

CrossAttention::CrossAttention(Parameters& parameters, const std::string& name, const ModelConfig& config)
    : norm_(parameters, name + ".norm", config.d_model),
      q_(parameters, {.name = name + ".q", .in = config.d_model, .out = config.d_model, .deviation = weight_deviation(config)}),
      kv_(parameters, {.name = name + ".kv", .in = config.d_model, .out = 2 * config.d_model, .deviation = weight_deviation(config)}),
      out_(parameters, {.name = name + ".out", .in = config.d_model, .out = config.d_model, .deviation = weight_deviation(config)}),
      heads_(config.heads),
      placement_(config.norm) {}

Variable CrossAttention::keys_and_values(Context& context, const Variable& memory) const {
  return named(context, "kv", [&] { return kv_.forward(context, memory); });
}

Variable CrossAttention::attend(Context& context, const Variable& x, const Variable& kv, const Segments& segments,
                                const DropoutRates& rates) const {
  return sublayer(context, norm_, placement_, rates.hidden, x, [&](const Variable& input, const Variable& residual) {
    const Variable q = named(context, "q", [&] { return q_.forward(context, input); });  // [tokens, d_model]
    const Variable mixed = cross_attention(                                              // [tokens, d_model]
        context, q, kv,
        {.segments = segments.rows, .heads = heads_, .sequence = segments.longest, .sums = segments.sums, .dropout = rates.attention});
    return named(context, "out", [&] { return out_.forward(context, mixed, residual); });
  });
}

Variable CrossAttention::forward(Context& context, const Variable& x, const Variable& memory, const Segments& segments,
                                 const DropoutRates& rates) const {
  const LayerScope scope(context, "cross_attention");
  return attend(context, x, keys_and_values(context, memory), segments, rates);
}

}  // namespace tilewave
