// self_attention and cross_attention: one kernel, two ways to lie beside each other.
#include "framework/ops/attention.h"

#include <string>
#include <utility>

#include "kernels/ops/repeat_heads.h"

namespace tilewave {
namespace {

// Views of queries, keys and values, or of their gradients. Keys and values lie side by side.
struct QueriesKeysValues {
  Tensor q, kv;

  Tensor k() const { return kv.columns(0, kv.cols() / 2); }
  Tensor v() const { return kv.columns(kv.cols() / 2, kv.cols() / 2); }
};

QueriesKeysValues split_qkv(const Tensor& qkv, const AttentionOptions& options) {
  const std::int64_t heads = options.heads, all = heads + 2 * kv_heads_of(options), d = qkv.cols() / all * heads;
  return {.q = qkv.columns(0, d), .kv = qkv.columns(d, qkv.cols() - d)};
}

// How often a head of keys and of values would stand for every head of queries to have one.
struct Repetition {
  std::int64_t head_size = 0, times = 1;
};
Repetition repetition_of(const Tensor& q, const AttentionOptions& options) {
  return {.head_size = q.cols() / options.heads, .times = options.heads / kv_heads_of(options)};
}

// The same with a head of keys and values a head of queries.
QueriesKeysValues repeated(Context& context, const QueriesKeysValues& given, const AttentionOptions& options) {
  const auto [head_size, times] = repetition_of(given.q, options);
  const QueriesKeysValues result{.q = given.q, .kv = context.tensor({given.kv.rows(), given.kv.cols() * times}, given.kv.dtype())};
  context.launch(RepeatHeadsArgs{.x = given.kv.view(), .y = result.kv.view(), .head_size = head_size, .times = times});
  return result;
}

// Takes keys and values as the back end reads them.
template <class Args>
void take_keys(Args& args, const QueriesKeysValues& read, std::int64_t kv_heads) {
  args.k = read.k().view();
  args.v = read.v().view();
  args.kv_heads = kv_heads;
}

struct Saved {
  QueriesKeysValues inputs;
  Tensor out, log_sum_exp, spans;
  AttentionOptions options;
  AttentionDropout dropout;
};

void check_heads(const char* operation, const AttentionOptions& options) {
  const std::int64_t kv_heads = kv_heads_of(options);
  TW_CHECK(options.heads > 0 && kv_heads > 0 && options.heads % kv_heads == 0, operation, ": ", options.heads,
           " heads of queries cannot share ", kv_heads, " of keys and values; it takes a divisor.");
  TW_CHECK(options.segments.cols() == 4, operation, ": segments have shape ", options.segments.shape(),
           "; they need four columns (q_begin, q_length, k_begin, k_length).");
}

// Queries lie on the side at hand.
Saved attend(Context& context, QueriesKeysValues inputs, TokenSide keys, const AttentionOptions& options) {
  Saved saved{.inputs = std::move(inputs), .out = {}, .log_sum_exp = {}, .spans = {}, .options = options, .dropout = {}};
  const Tensor& q = saved.inputs.q;
  QueriesKeysValues read = saved.inputs;
  saved.out = context.tensor(q.shape(), q.dtype());  // [tokens, d]
  if (context.gradient_mode() == GradientMode::on) {
    saved.log_sum_exp = context.tensor({q.rows(), options.heads}, context.precision().statistics);  // [tokens, heads]
  }
  saved.spans = context.tensor({1, attention_spans(q.rows(), read.kv.rows())}, DType::i32);
  if (options.dropout > 0.0) {
    saved.dropout = {.probability = options.dropout,
                     .site = context.next_random_site(),
                     .queries = context.side(),
                     .keys = keys,
                     .state = context.step_state()};
  }
  AttentionArgs args{.q = q.view(),
                     .segments = options.segments.view(),
                     .heads = options.heads,
                     .scale = options.scale,
                     .sequence = options.sequence,
                     .sums = options.sums,
                     .mask = options.mask,
                     .dropout = saved.dropout,
                     .out = saved.out.view(),
                     .log_sum_exp = saved.log_sum_exp.view(),
                     .spans = saved.spans.view()};
  take_keys(args, read, kv_heads_of(options));
  if (!shared_heads(context.device().backend, args).reads) {
    read = repeated(context, read, options);
    take_keys(args, read, options.heads);
  }
  context.launch(args);
  return saved;
}

void attend_backward(Context& context, const Saved& saved, const Tensor& dout, const QueriesKeysValues& gradients) {
  const AttentionOptions& options = saved.options;
  QueriesKeysValues read = saved.inputs, written = gradients;
  const Tensor delta = context.tensor(saved.log_sum_exp.shape(), saved.log_sum_exp.dtype());  // [tokens, heads]
  AttentionBackwardArgs args{.q = read.q.view(),
                             .out = saved.out.view(),
                             .log_sum_exp = saved.log_sum_exp.view(),
                             .dout = dout.view(),
                             .segments = options.segments.view(),
                             .heads = options.heads,
                             .scale = options.scale,
                             .sequence = options.sequence,
                             .sums = options.sums,
                             .mask = options.mask,
                             .dropout = saved.dropout,
                             .dq = written.q.view(),
                             .spans = saved.spans.view(),
                             .delta = delta.view()};
  take_keys(args, read, kv_heads_of(options));
  const SharedHeads shared = shared_heads(context.device().backend, args);
  const auto [head_size, times] = repetition_of(read.q, options);
  if (!shared.reads) {
    read = repeated(context, read, options);
    take_keys(args, read, options.heads);
  }
  // A head of queries its own part of the gradients.
  if (!shared.sums) written.kv = context.tensor({read.kv.rows(), gradients.kv.cols() * times}, read.kv.dtype());
  args.dk = written.k().view();
  args.dv = written.v().view();
  context.launch(args);
  if (shared.sums) return;
  context.launch(RepeatHeadsBackwardArgs{.dy = written.kv.view(), .dx = gradients.kv.view(), .head_size = head_size, .times = times});
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
  check_heads("self_attention", options);
  const Tensor packed = qkv.value();  // [tokens, (heads + 2 kv_heads) D]
  const std::int64_t all = options.heads + 2 * kv_heads_of(options);
  TW_CHECK(packed.cols() % all == 0, "self_attention: qkv has shape ", packed.shape(), "; its columns must be ", options.heads,
           " heads of queries, ", kv_heads_of(options), " of keys and as many of values side by side.");
  const Saved saved = attend(context, split_qkv(packed, options), context.side(), options);
  return make_variable(context, saved.out, "self_attention", {qkv},
                       [saved, packed](Context& ctx, const Tensor& dout, std::span<GradientSlot> slots) {
                         WrittenGradient dqkv(ctx, slots[0], packed);  // [tokens, (heads + 2 kv_heads) D]
                         attend_backward(ctx, saved, dout, split_qkv(dqkv.tensor(), saved.options));
                         dqkv.hand_over();
                       });
}

Variable cross_attention(Context& context, const Variable& q, const Variable& kv, const AttentionOptions& options) {
  check_heads("cross_attention", options);
  const Tensor queries = q.value(), packed = kv.value();  // [tokens, heads D], [source tokens, 2 kv_heads D]
  const bool whole = queries.cols() % options.heads == 0 && packed.cols() == 2 * kv_heads_of(options) * (queries.cols() / options.heads);
  TW_CHECK(whole, "cross_attention: q has shape ", queries.shape(), " and kv has shape ", packed.shape(), "; they must hold ",
           options.heads, " heads of queries, and ", kv_heads_of(options), " of keys and as many of values.");
  const Saved saved = attend(context, {.q = queries, .kv = packed}, TokenSide::source, options);
  return make_variable(context, saved.out, "cross_attention", {q, kv},
                       [saved, queries, packed](Context& ctx, const Tensor& dout, std::span<GradientSlot> slots) {
                         WrittenGradient dq(ctx, slots[0], queries), dkv(ctx, slots[1], packed);  // [tokens, heads D], like kv
                         attend_backward(ctx, saved, dout, {.q = dq.tensor(), .kv = dkv.tensor()});
                         dq.hand_over();
                         dkv.hand_over();
                       });
}

}  // namespace tilewave
