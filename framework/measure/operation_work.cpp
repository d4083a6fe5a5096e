// Each operation's operands, as its own launch in a step has them.
#include "framework/measure/operation_work.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/data/packing.h"
#include "framework/data/synthetic.h"
#include "framework/measure/block_work.h"
#include "framework/measure/image_work.h"
#include "framework/measure/work_of.h"
#include "framework/recipe/nearest.h"
#include "framework/tensor/host_tensor.h"
#include "framework/tensor/random.h"
#include "kernels/core/beside_steps.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/adamw.h"
#include "kernels/ops/add.h"
#include "kernels/ops/cross_entropy.h"
#include "kernels/ops/dropout.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/fill.h"
#include "kernels/ops/gradient_norm.h"
#include "kernels/ops/layer_norm.h"
#include "kernels/ops/softmax.h"
#include "kernels/ops/squash.h"

namespace tilewave {
namespace {

constexpr std::int64_t kRandomElements = std::int64_t{1} << 20;

Tensor random_ids(Context& context, std::int64_t count, std::int64_t below) {
  const Tensor tensor = context.tensor({1, count}, DType::i32);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  Random random(5);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(below)));
  write_ids(context, tensor, ids);
  return tensor;
}

OperationWork prepare_elementwise(Context& context, Shape shape, std::string_view name) {
  const DType dtype = context.precision().activation;
  const Tensor x = random_tensor(context, shape, dtype, 1), y = context.tensor(shape, dtype);
  if (name == "fill") return work_of(context, FillArgs{.y = y.view(), .value = 1.0}, {y});
  if (name == "softmax") return work_of(context, SoftmaxArgs{.x = x.view(), .y = y.view()}, {x, y});
  const Activation activation = name.starts_with("relu") ? Activation::relu : Activation::gelu_tanh;
  if (name == "gelu" || name == "relu") {
    return work_of(context, ActivationArgs{.x = x.view(), .y = y.view(), .activation = activation}, {x, y});
  }
  if (name == "dropout") {
    return work_of(context, DropoutArgs{.x = x.view(), .y = y.view(), .probability = 0.1, .state = context.step_state()}, {x, y});
  }
  const Squash squash = name.starts_with("tanh") ? Squash::tanh : Squash::sigmoid;
  if (name == "sigmoid" || name == "tanh") return work_of(context, SquashArgs{.x = x.view(), .y = y.view(), .kind = squash}, {x, y});
  const Tensor b = random_tensor(context, shape, dtype, 2);
  if (name == "sigmoid_backward" || name == "tanh_backward") {
    return work_of(context, SquashBackwardArgs{.y = x.view(), .dy = b.view(), .dx = y.view(), .kind = squash}, {x, b, y});
  }
  if (name == "add") return work_of(context, AddArgs{.a = x.view(), .b = b.view(), .y = y.view()}, {x, b, y});
  if (name == "softmax_backward") {
    return work_of(context, SoftmaxBackwardArgs{.y = x.view(), .dy = b.view(), .dx = y.view()}, {x, b, y});
  }
  return work_of(context, ActivationBackwardArgs{.x = x.view(), .dy = b.view(), .dx = y.view(), .activation = activation}, {x, b, y});
}

// added: as in a model, to the gradient that the residual stream already has.
enum class NormPass : std::uint8_t { forward, backward, backward_added };

OperationWork prepare_layer_norm(Context& context, Shape shape, NormPass pass) {
  const PrecisionTable& types = context.precision();
  const Tensor x = random_tensor(context, shape, types.activation, 1), y = context.tensor(shape, types.activation);
  const Tensor gamma = random_tensor(context, {1, shape.cols}, types.compute, 2),
               beta = random_tensor(context, {1, shape.cols}, types.compute, 3);
  const Tensor mean = context.tensor({shape.rows, 1}, types.statistics), rstd = context.tensor({shape.rows, 1}, types.statistics);
  const LayerNormArgs forward{
      .x = x.view(), .gamma = gamma.view(), .beta = beta.view(), .y = y.view(), .mean = mean.view(), .rstd = rstd.view()};
  if (pass == NormPass::forward) return work_of(context, forward, {x, gamma, beta, y, mean, rstd});
  context.launch(forward);
  const Tensor dy = random_tensor(context, shape, types.activation, 4);
  const Tensor dgamma = context.tensor({1, shape.cols}, types.gradient), dbeta = context.tensor({1, shape.cols}, types.gradient);
  const Tensor partial = context.tensor({layer_norm_partial_rows(shape.rows), shape.cols}, types.statistics);
  const LayerNormBackwardArgs args{.x = x.view(),
                                   .gamma = gamma.view(),
                                   .mean = mean.view(),
                                   .rstd = rstd.view(),
                                   .dy = dy.view(),
                                   .dx = y.view(),
                                   .accumulate = pass == NormPass::backward_added,
                                   .dgamma = dgamma.view(),
                                   .dbeta = dbeta.view(),
                                   .partial = partial.view()};
  return work_of(context, args, {x, gamma, mean, rstd, dy, y, dgamma, dbeta, partial});
}

OperationWork prepare_cross_entropy(Context& context, Shape shape) {
  const PrecisionTable& types = context.precision();
  const Tensor logits = random_tensor(context, shape, types.logits, 1), labels = random_ids(context, shape.rows, shape.cols);
  const Tensor row_loss = context.tensor({1, shape.rows}, types.statistics), loss = context.tensor({1, 1}, types.statistics);
  const CrossEntropyArgs args{.logits = logits.view(),
                              .labels = labels.view(),
                              .vocabulary = shape.cols,
                              .smoothing = 0.1,
                              .row_loss = row_loss.view(),
                              .loss = loss.view(),
                              .state = context.step_state()};
  return work_of(context, args, {logits, labels, row_loss, loss});
}

constexpr std::int64_t kVocabulary = 33708, kPositions = 1024;

OperationWork prepare_embedding(Context& context, Shape shape, bool backward) {
  const PrecisionTable& types = context.precision();
  const Tensor ids = random_ids(context, shape.rows, kVocabulary), position_ids = random_ids(context, shape.rows, kPositions);
  const Tensor y = random_tensor(context, shape, types.activation, 1);
  if (!backward) {
    const Tensor table = random_tensor(context, {kVocabulary, shape.cols}, types.compute, 2);
    const Tensor positions = random_tensor(context, {kPositions, shape.cols}, types.compute, 3);
    const EmbeddingArgs args{
        .table = table.view(), .positions = positions.view(), .ids = ids.view(), .position_ids = position_ids.view(), .y = y.view()};
    return work_of(context, args, {table, positions, ids, position_ids, y});
  }
  const Tensor dtable = context.tensor({kVocabulary, shape.cols}, types.gradient);
  const Tensor order = context.tensor({2, embedding_order_cols(shape.rows, kVocabulary, 0)}, DType::i32);
  const Tensor sort = context.tensor({1, embedding_sort_cols(shape.rows)}, DType::i32);
  const EmbeddingBackwardArgs args{.dy = y.view(),
                                   .ids = ids.view(),
                                   .position_ids = position_ids.view(),
                                   .dtable = dtable.view(),
                                   .order = order.view(),
                                   .sort = sort.view()};
  return work_of(context, args, {ids, position_ids, y, dtable, order, sort});
}

// Made-up text's ids, of which some are in very many rows, and a gradient that is added to, as a tied table's.
struct EmbeddedText {
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;  // of a learned table; 0: a constant one
};

OperationWork prepare_embedded_text(Context& context, Shape shape, const EmbeddedText& text) {
  const PrecisionTable& types = context.precision();
  const ZipfChain chain(text.vocabulary);
  Random random(6);
  std::vector<std::int32_t> ids{chain.draw(random)}, positions{0};
  while (static_cast<std::int64_t>(ids.size()) < shape.rows) {
    ids.push_back(chain.follow(ids.back(), random));
    positions.push_back(text.positions > 0 ? (positions.back() + 1) % static_cast<std::int32_t>(text.positions) : 0);
  }
  const auto tensor_of = [&](const std::vector<std::int32_t>& numbers) {
    const Tensor tensor = context.tensor({1, shape.rows}, DType::i32);
    write_ids(context, tensor, numbers);
    return tensor;
  };
  const Tensor id_tensor = tensor_of(ids), position_ids = tensor_of(positions);
  const Tensor dy = random_tensor(context, shape, types.activation, 1);
  const Tensor dtable = context.persistent({text.vocabulary, shape.cols}, types.gradient);
  const Tensor dpositions = text.positions > 0 ? context.tensor({text.positions, shape.cols}, types.gradient) : Tensor();
  const Tensor order = context.tensor({2, embedding_order_cols(shape.rows, text.vocabulary, text.positions)}, DType::i32);
  const Tensor sort = context.tensor({1, embedding_sort_cols(shape.rows)}, DType::i32);
  const EmbeddingBackwardArgs args{.dy = dy.view(),
                                   .ids = id_tensor.view(),
                                   .position_ids = position_ids.view(),
                                   .dtable = dtable.view(),
                                   .accumulate_table = true,
                                   .dpositions = dpositions.view(),
                                   .order = order.view(),
                                   .sort = sort.view()};
  return work_of(context, args, {id_tensor, position_ids, dy, dtable, dpositions, order, sort});
}

// Matrices of at most 1,024 rows, as a model has them: with the compute copy that the precision asks for.
OperationWork prepare_optimizer(Context& context, Shape shape, bool norm) {
  const PrecisionTable& types = context.precision();
  constexpr std::int64_t kRows = 1024;
  std::vector<Tensor> owned;
  std::vector<AdamWTensor> tensors;
  std::vector<MatrixView> gradients;
  const Tensor random = random_tensor(context, {std::min(kRows, shape.rows), shape.cols}, types.master, 1);
  for (std::int64_t row = 0; row < shape.rows; row += kRows) {
    const Shape matrix{std::min(kRows, shape.rows - row), shape.cols};
    const auto copied = [&] {
      const Tensor tensor = context.tensor(matrix, types.master);
      copy_on_device(context.queue(), tensor.data(), random.data(), tensor.bytes());
      return tensor;
    };
    const Tensor gradient = copied();
    owned.push_back(gradient);
    gradients.push_back(gradient.view());
    if (norm) continue;
    const Tensor master = copied(), first = copied(), second = context.persistent(matrix, types.master);
    const Tensor compute = types.compute == types.master ? Tensor() : context.tensor(matrix, types.compute);
    owned.insert(owned.end(), {master, first, second, compute});
    tensors.push_back({.master = master.view(),
                       .gradient = gradient.view(),
                       .first_moment = first.view(),
                       .second_moment = second.view(),
                       .compute = compute.view()});
  }
  if (norm) {
    const Tensor workspace = context.tensor({1, gradient_norm_workspace_cols(gradients)}, DType::f64);
    GradientNormArgs args{.gradients = gradients, .clip_norm = 1.0, .state = context.step_state(), .workspace = workspace.view()};
    return {.entry = trace_entry(args), .launch = [&context, args, gradients, workspace, owned]() mutable {
              args.gradients = gradients;
              context.launch(args);
            }};
  }
  AdamWArgs args{.tensors = tensors, .state = context.step_state()};
  return {.entry = trace_entry(args), .launch = [&context, args, tensors, owned]() mutable {
            args.tensors = tensors;
            context.launch(args);
          }};
}

}  // namespace

Tensor random_tensor(Context& context, Shape shape, DType dtype, std::uint64_t key) {
  const Tensor tensor = context.tensor(shape, dtype);
  const bool whole = context.device().backend == Backend::cuda;
  const std::int64_t rows = whole ? shape.rows : std::min(shape.rows, std::max<std::int64_t>(1, kRandomElements / tensor.pitch()));
  const Tensor block = tensor.slice_rows(0, rows);
  fill_normal(context.queue(), block.view(), key);
  for (std::int64_t row = rows; row < shape.rows; row += rows) {
    const Tensor next = tensor.slice_rows(row, std::min(rows, shape.rows - row));
    copy_on_device(context.queue(), next.data(), block.data(), next.bytes());
  }
  return tensor;
}

std::span<const BenchedOperation> benched_operations() {
  const auto elementwise = [](const char* name) {
    return BenchedOperation{
        name, {65536, 1024}, [name](Context& context, Shape shape) { return prepare_elementwise(context, shape, name); }};
  };
  const auto block = [](const char* name) {
    return BenchedOperation{name, {65536, 1024}, [name](Context& context, Shape shape) { return prepare_block(context, shape, name); }};
  };
  const auto on_images = [](const char* name) {  // pixels by channels
    return BenchedOperation{name, {65536, 256}, [name](Context& context, Shape shape) { return prepare_images(context, shape, name); }};
  };
  const auto with_flag = [](const char* name, Shape shape, auto prepare, auto flag) {
    return BenchedOperation{name, shape, [=](Context& context, Shape asked) { return prepare(context, asked, flag); }};
  };
  static const std::vector<BenchedOperation> all = {
      with_flag("layer_norm", {65536, 1024}, prepare_layer_norm, NormPass::forward),
      with_flag("layer_norm_backward", {65536, 1024}, prepare_layer_norm, NormPass::backward),
      elementwise("softmax"),
      elementwise("softmax_backward"),
      elementwise("relu"),
      elementwise("relu_backward"),
      elementwise("gelu"),
      elementwise("gelu_backward"),
      elementwise("sigmoid"),
      elementwise("sigmoid_backward"),
      elementwise("tanh"),
      elementwise("tanh_backward"),
      block("silu"),
      block("silu_backward"),
      block("swiglu"),
      block("swiglu_backward"),
      block("rms_norm"),
      block("rms_norm_backward"),
      block("rope"),
      block("repeat_heads"),
      block("repeat_heads_backward"),
      on_images("batch_norm_nhwc"),
      on_images("batch_norm_nhwc_backward"),
      on_images("batch_norm_nhwc_several"),
      on_images("batch_norm_nhwc_several_backward"),
      on_images("batch_norm_nchw"),
      on_images("batch_norm_nchw_backward"),
      on_images("batch_norm_nchw_several"),
      on_images("batch_norm_nchw_several_backward"),
      on_images("max_pool_nhwc"),
      on_images("max_pool_nhwc_backward"),
      on_images("max_pool_nchw"),
      on_images("max_pool_nchw_backward"),
      on_images("average_pool_nhwc"),
      on_images("average_pool_nhwc_backward"),
      on_images("average_pool_nchw"),
      on_images("average_pool_nchw_backward"),
      elementwise("dropout"),
      elementwise("add"),
      elementwise("fill"),
      {"cross_entropy", {5120, 33708}, prepare_cross_entropy},
      with_flag("embedding", {65536, 1024}, prepare_embedding, false),
      with_flag("embedding_backward", {65536, 1024}, prepare_embedding, true),
      with_flag("adamw", {std::int64_t{200} * 1024, 1024}, prepare_optimizer, false),
      with_flag("gradient_norm", {std::int64_t{200} * 1024, 1024}, prepare_optimizer, true),
  };
  return all;
}

const BenchedOperation& benched_operation(std::string_view name) {
  std::vector<std::string_view> names;
  std::string known;
  for (const BenchedOperation& one : benched_operations()) {
    if (one.name == name) return one;
    names.emplace_back(one.name);
    known += concat(known.empty() ? "" : ", ", one.name);
  }
  const std::string_view near = nearest_word(name, names);
  throw InputError(concat("there is no operation called ", name, near.empty() ? "" : concat(" (did you mean ", near, "?)"), "; there are ",
                          known, ". GEMMs and attention have options and commands of their own."));
}

std::span<const BenchedOperation> step_operations() {
  const auto layer_norm = [](Shape shape, NormPass pass) {
    const bool forward = pass == NormPass::forward;
    return BenchedOperation{forward ? "layer_norm" : "layer_norm_backward", shape,
                            [pass](Context& context, Shape asked) { return prepare_layer_norm(context, asked, pass); },
                            pass == NormPass::backward_added ? "added to dx" : ""};
  };
  static const std::vector<BenchedOperation> all = {
      layer_norm({5120, 1024}, NormPass::forward),
      layer_norm({5120, 1024}, NormPass::backward),
      layer_norm({65536, 768}, NormPass::forward),
      layer_norm({65536, 768}, NormPass::backward_added),
      {"cross_entropy", {16384, 50257}, prepare_cross_entropy, "a quarter of GPT-2's rows"},
      {"embedding_backward",
       {5120, 1024},
       [](Context& context, Shape shape) { return prepare_embedded_text(context, shape, {.vocabulary = kVocabulary}); },
       "Zipf ids, added"},
      {"embedding_backward",
       {65536, 768},
       [](Context& context, Shape shape) { return prepare_embedded_text(context, shape, {.vocabulary = 50257, .positions = 1024}); },
       "Zipf ids, added; positions"},
  };
  return all;
}

std::span<const AttentionSequences> benched_attention() {
  static constexpr std::array<AttentionSequences, 10> shapes = {{{80, 16, 64, 64, Mask::none},
                                                                 {80, 16, 64, 64, Mask::causal},
                                                                 {350, 8, 15, 32, Mask::none},
                                                                 {128, 4, 12, 32, Mask::causal},
                                                                 {40, 16, 128, 64, Mask::causal},
                                                                 {64, 12, 1024, 64, Mask::causal},
                                                                 {16, 16, 4096, 64, Mask::causal},
                                                                 {16, 16, 1024, 128, Mask::causal},
                                                                 {4, 16, 4096, 128, Mask::causal},
                                                                 {4, 16, 4096, 128, Mask::none}}};
  return shapes;
}

AttentionPasses attention_passes(Context& context, const AttentionSequences& shape) {
  const PrecisionTable& types = context.precision();
  const std::int64_t rows = shape.sequences * shape.length, d = shape.heads * shape.head_size;
  const Tensor qkv = random_tensor(context, {rows, 3 * d}, types.activation, 1),
               dout = random_tensor(context, {rows, d}, types.activation, 2);
  const Tensor out = context.tensor({rows, d}, types.activation), dqkv = context.tensor({rows, 3 * d}, types.activation);
  const Tensor log_sum_exp = context.tensor({rows, shape.heads}, types.statistics),
               delta = context.tensor({rows, shape.heads}, types.statistics);
  const Tensor spans = context.tensor({1, attention_spans(rows, rows)}, DType::i32);
  const Tensor segments = context.tensor({rows, 4}, DType::i32);  // as many as a model's batch has room for
  const std::vector<std::int32_t> lengths(static_cast<std::size_t>(shape.sequences), static_cast<std::int32_t>(shape.length));
  write_ids(context, segments, attention_segments({.lengths = lengths}, {.lengths = lengths}, rows));
  const auto part = [&](const Tensor& packed, std::int64_t index) { return packed.columns(index * d, d).view(); };
  const AttentionArgs forward{.q = part(qkv, 0),
                              .k = part(qkv, 1),
                              .v = part(qkv, 2),
                              .segments = segments.view(),
                              .heads = shape.heads,
                              .sequence = shape.length,
                              .mask = shape.mask,
                              .dropout = {.probability = shape.dropout, .site = 1, .state = context.step_state()},
                              .out = out.view(),
                              .log_sum_exp = log_sum_exp.view(),
                              .spans = spans.view()};
  const AttentionBackwardArgs backward{.q = forward.q,
                                       .k = forward.k,
                                       .v = forward.v,
                                       .out = out.view(),
                                       .log_sum_exp = log_sum_exp.view(),
                                       .dout = dout.view(),
                                       .segments = segments.view(),
                                       .heads = shape.heads,
                                       .sequence = shape.length,
                                       .mask = forward.mask,
                                       .dropout = forward.dropout,
                                       .dq = part(dqkv, 0),
                                       .dk = part(dqkv, 1),
                                       .dv = part(dqkv, 2),
                                       .spans = spans.view(),
                                       .delta = delta.view()};
  context.launch(forward);
  const std::vector<Tensor> owned = {qkv, dout, out, dqkv, log_sum_exp, delta, spans, segments};
  return {.forward = work_of(context, forward, owned), .backward = work_of(context, backward, owned)};
}

}  // namespace tilewave
