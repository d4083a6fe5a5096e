// self_attention and cross_attention: one kernel, two ways to lie beside each other.
#include "framework/ops/attention.h"

#include <string>
#include <utility>

#include "kernels/ops/add.h"

namespace tilewave {
namespace {

// Views of queries, keys and values, or of their gradients.
struct Triple {
  Tensor q, k, v;
};

Triple split_qkv(const Tensor& qkv) {
  const std::int64_t d = qkv.cols() / 3;
  return {.q = qkv.columns(0, d), .k = qkv.columns(d, d), .v = qkv.columns(2 * d, d)};
}

Triple split_kv(const Tensor& q, const Tensor& kv) {
  const std::int64_t d = kv.cols() / 2;
  return {.q = q, .k = kv.columns(0, d), .v = kv.columns(d, d)};
}

struct Saved {
  Triple inputs;
  Tensor out, log_sum_exp, spans;
  AttentionOptions options;
  AttentionDropout dropout;
};

Saved attend(Context& context, const char* operation, Triple inputs, const AttentionOptions& options) {
  TW_CHECK(options.heads > 0 && inputs.q.cols() % options.heads == 0, operation, ": ", inputs.q.cols(), " columns do not divide into ",
           options.heads, " heads.");
  TW_CHECK(options.segments.cols() == 4, operation, ": segments have shape ", options.segments.shape(),
           "; they need four columns (q_begin, q_length, k_begin, k_length).");
  Saved saved{.inputs = std::move(inputs), .out = {}, .log_sum_exp = {}, .spans = {}, .options = options, .dropout = {}};
  const Tensor& q = saved.inputs.q;
  saved.out = context.tensor(q.shape(), q.dtype());  // [tokens, d]
  if (context.gradient_mode() == GradientMode::on) {
    saved.log_sum_exp = context.tensor({q.rows(), options.heads}, context.precision().statistics);  // [tokens, heads]
  }
  saved.spans = context.tensor({1, attention_spans(q.rows(), saved.inputs.k.rows())}, DType::i32);
  if (options.dropout > 0.0) {
    saved.dropout = {.probability = options.dropout, .site = context.next_random_site(), .state = context.step_state()};
  }
  context.launch(AttentionArgs{.q = q.view(),
                               .k = saved.inputs.k.view(),
                               .v = saved.inputs.v.view(),
                               .segments = options.segments.view(),
                               .heads = options.heads,
                               .sequence = options.sequence,
                               .sums = options.sums,
                               .mask = options.mask,
                               .dropout = saved.dropout,
                               .out = saved.out.view(),
                               .log_sum_exp = saved.log_sum_exp.view(),
                               .spans = saved.spans.view()});
  return saved;
}

void attend_backward(Context& context, const Saved& saved, const Tensor& dout, const Triple& gradients) {
  const Tensor delta = context.tensor(saved.log_sum_exp.shape(), saved.log_sum_exp.dtype());  // [tokens, heads]
  context.launch(AttentionBackwardArgs{.q = saved.inputs.q.view(),
                                       .k = saved.inputs.k.view(),
                                       .v = saved.inputs.v.view(),
                                       .out = saved.out.view(),
                                       .log_sum_exp = saved.log_sum_exp.view(),
                                       .dout = dout.view(),
                                       .segments = saved.options.segments.view(),
                                       .heads = saved.options.heads,
                                       .sequence = saved.options.sequence,
                                       .sums = saved.options.sums,
                                       .mask = saved.options.mask,
                                       .dropout = saved.dropout,
                                       .dq = gradients.q.view(),
                                       .dk = gradients.k.view(),
                                       .dv = gradients.v.view(),
                                       .spans = saved.spans.view(),
                                       .delta = delta.view()});
}

// The kernel writes its gradients; where there are some already they are added afterwards.
class WrittenGradient {
 public:
  WrittenGradient(Context& context, GradientSlot& slot, const Tensor& like)
      : context_(context), slot_(slot), tensor_(context.tensor(like.shape(), like.dtype())) {}
  const Tensor& tensor() const { return tensor_; }
  void hand_over() {
    if (slot_.needed()) slot_.adopt(context_, tensor_);
  }

 private:
  Context& context_;
  GradientSlot& slot_;
  Tensor tensor_;
};

}  // namespace

Variable self_attention(Context& context, const Variable& qkv, const AttentionOptions& options) {
  const Tensor packed = qkv.value();  // [tokens, 3 d]
  TW_CHECK(packed.cols() % 3 == 0, "self_attention: qkv has shape ", packed.shape(),
           "; its columns must be queries, keys and values side by side.");
  const Saved saved = attend(context, "self_attention", split_qkv(packed), options);
  return make_variable(context, saved.out, "self_attention", {qkv},
                       [saved, packed](Context& ctx, const Tensor& dout, std::span<GradientSlot> slots) {
                         WrittenGradient dqkv(ctx, slots[0], packed);  // [tokens, 3 d]
                         attend_backward(ctx, saved, dout, split_qkv(dqkv.tensor()));
                         dqkv.hand_over();
                       });
}

Variable cross_attention(Context& context, const Variable& q, const Variable& kv, const AttentionOptions& options) {
  const Tensor queries = q.value(), packed = kv.value();  // [tokens, d], [source tokens, 2 d]
  TW_CHECK(packed.cols() == 2 * queries.cols(), "cross_attention: q has shape ", queries.shape(), " and kv has shape ", packed.shape(),
           "; kv must have twice q's columns.");
  const Saved saved = attend(context, "cross_attention", split_kv(queries, packed), options);
  return make_variable(context, saved.out, "cross_attention", {q, kv},
                       [saved, queries, packed](Context& ctx, const Tensor& dout, std::span<GradientSlot> slots) {
                         WrittenGradient dq(ctx, slots[0], queries), dkv(ctx, slots[1], packed);  // [tokens, d], [source tokens, 2 d]
                         attend_backward(ctx, saved, dout, split_kv(dq.tensor(), dkv.tensor()));
                         dq.hand_over();
                         dkv.hand_over();
                       });
}

}  // namespace tilewave
