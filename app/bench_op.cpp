// tilewave bench op NAME...: operations that memory bounds, on a Transformer's shapes: time, the bytes they must move over it, and
// the share of a device copy that takes turns with them in the same run. Bytes are cost()'s; a copy counts what it reads and writes.
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "app/bench.h"
#include "app/bench_operands.h"
#include "app/usage.h"
#include "framework/host_tensor.h"
#include "framework/io/json_lines.h"
#include "framework/measure/interleave.h"
#include "framework/random.h"
#include "kernels/activation.h"
#include "kernels/adamw.h"
#include "kernels/add.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/fill.h"
#include "kernels/gradient_norm.h"
#include "kernels/layer_norm.h"
#include "kernels/softmax.h"

namespace tilewave {
namespace {

struct OpOptions {
  DeviceOptions device;
  std::vector<std::string> names;
  std::string precision;
  std::string pitch = "aligned";
  std::int64_t rows = 0, cols = 0;
  int rounds = 9;
  bool json = false;
};

// One set of operands, and what runs on it. The closure owns the operands.
struct Work {
  std::int64_t bytes = 0;
  std::function<void()> launch;
};

enum class Pass { forward, backward };
enum class OptimizerWork { adamw, gradient_norm };  // what runs over all of a model's matrices

struct Operation {
  const char* name;
  Shape shape;  // unless asked otherwise; of adamw and gradient_norm: so many matrices of 1,024 x 1,024 in all
  std::function<Work(Context& context, Shape shape)> prepare;
};

Tensor random_ids(Context& context, std::int64_t count, std::int64_t below) {
  const Tensor tensor = context.tensor({1, count}, DType::i32);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  Random random(5);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(below)));
  write_ids(context, tensor, ids);
  return tensor;
}

// `owned` are the tensors behind the views of args.
template <class Args>
Work work_of(Context& context, const Args& args, std::vector<Tensor> owned) {
  return {.bytes = cost(args).bytes, .launch = [&context, args, owned = std::move(owned)] { context.launch(args); }};
}

Work prepare_elementwise(Context& context, Shape shape, std::string_view name) {
  const DType dtype = context.precision().activation;
  const Tensor x = random_tensor(context, shape, dtype, 1), y = context.tensor(shape, dtype);
  if (name == "fill") return work_of(context, FillArgs{.y = y.view(), .value = 1.0}, {y});
  if (name == "softmax") return work_of(context, SoftmaxArgs{.x = x.view(), .y = y.view()}, {x, y});
  if (name == "gelu") return work_of(context, ActivationArgs{.x = x.view(), .y = y.view(), .activation = Activation::gelu_tanh}, {x, y});
  if (name == "dropout") {
    return work_of(context, DropoutArgs{.x = x.view(), .y = y.view(), .probability = 0.1, .state = context.step_state()}, {x, y});
  }
  const Tensor b = random_tensor(context, shape, dtype, 2);
  if (name == "add") return work_of(context, AddArgs{.a = x.view(), .b = b.view(), .y = y.view()}, {x, b, y});
  if (name == "softmax_backward") {
    return work_of(context, SoftmaxBackwardArgs{.y = x.view(), .dy = b.view(), .dx = y.view()}, {x, b, y});
  }
  return work_of(context, ActivationBackwardArgs{.x = x.view(), .dy = b.view(), .dx = y.view(), .activation = Activation::gelu_tanh},
                 {x, b, y});
}

Work prepare_layer_norm(Context& context, Shape shape, Pass pass) {
  const PrecisionTable& types = context.precision();
  const Tensor x = random_tensor(context, shape, types.activation, 1), y = context.tensor(shape, types.activation);
  const Tensor gamma = random_tensor(context, {1, shape.cols}, types.compute, 2),
               beta = random_tensor(context, {1, shape.cols}, types.compute, 3);
  const Tensor mean = context.tensor({shape.rows, 1}, types.statistics), rstd = context.tensor({shape.rows, 1}, types.statistics);
  const LayerNormArgs forward{
      .x = x.view(), .gamma = gamma.view(), .beta = beta.view(), .y = y.view(), .mean = mean.view(), .rstd = rstd.view()};
  if (pass == Pass::forward) return work_of(context, forward, {x, gamma, beta, y, mean, rstd});
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
                                   .dgamma = dgamma.view(),
                                   .dbeta = dbeta.view(),
                                   .partial = partial.view()};
  return work_of(context, args, {x, gamma, mean, rstd, dy, y, dgamma, dbeta, partial});
}

Work prepare_cross_entropy(Context& context, Shape shape) {
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

Work prepare_embedding(Context& context, Shape shape, Pass pass) {
  const PrecisionTable& types = context.precision();
  const Tensor ids = random_ids(context, shape.rows, kVocabulary), position_ids = random_ids(context, shape.rows, kPositions);
  const Tensor y = random_tensor(context, shape, types.activation, 1);
  if (pass == Pass::forward) {
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

// Matrices of a model's size: with the compute copy that the precision asks for.
Work prepare_optimizer(Context& context, Shape shape, OptimizerWork work) {
  const PrecisionTable& types = context.precision();
  const Shape matrix{1024, 1024};
  std::vector<Tensor> owned;
  std::vector<AdamWTensor> tensors;
  std::vector<MatrixView> gradients;
  const Tensor random = random_tensor(context, matrix, types.master, 1);
  const auto copied = [&] {
    const Tensor tensor = context.tensor(matrix, types.master);
    copy_on_device(context.queue(), tensor.data(), random.data(), random.bytes());
    return tensor;
  };
  for (std::int64_t element = 0; element < shape.elements(); element += matrix.elements()) {
    const Tensor gradient = copied();
    owned.push_back(gradient);
    gradients.push_back(gradient.view());
    if (work == OptimizerWork::gradient_norm) continue;
    const Tensor master = copied(), first = copied(), second = context.persistent(matrix, types.master);
    const Tensor compute = types.compute == types.master ? Tensor() : context.tensor(matrix, types.compute);
    owned.insert(owned.end(), {master, first, second, compute});
    tensors.push_back({.master = master.view(),
                       .gradient = gradient.view(),
                       .first_moment = first.view(),
                       .second_moment = second.view(),
                       .compute = compute.view()});
  }
  if (work == OptimizerWork::gradient_norm) {
    const Tensor workspace = context.tensor({1, gradient_norm_workspace_cols(gradients)}, DType::f64);
    GradientNormArgs args{.gradients = gradients, .clip_norm = 1.0, .state = context.step_state(), .workspace = workspace.view()};
    return {.bytes = cost(args).bytes, .launch = [&context, args, gradients, workspace, owned]() mutable {
              args.gradients = gradients;
              context.launch(args);
            }};
  }
  AdamWArgs args{.tensors = tensors, .state = context.step_state()};
  return {.bytes = cost(args).bytes, .launch = [&context, args, tensors, owned]() mutable {
            args.tensors = tensors;
            context.launch(args);
          }};
}

const std::vector<Operation>& operations() {
  const auto elementwise = [](const char* name) {
    return Operation{name, {65536, 1024}, [name](Context& context, Shape shape) { return prepare_elementwise(context, shape, name); }};
  };
  const auto which = [](const char* name, Shape shape, auto prepare, auto choice) {
    return Operation{name, shape, [=](Context& context, Shape asked) { return prepare(context, asked, choice); }};
  };
  static const std::vector<Operation> all = {
      which("layer_norm", {65536, 1024}, prepare_layer_norm, Pass::forward),
      which("layer_norm_backward", {65536, 1024}, prepare_layer_norm, Pass::backward),
      elementwise("softmax"),
      elementwise("softmax_backward"),
      elementwise("gelu"),
      elementwise("gelu_backward"),
      elementwise("dropout"),
      elementwise("add"),
      elementwise("fill"),
      {"cross_entropy", {5120, 33708}, prepare_cross_entropy},
      which("embedding", {65536, 1024}, prepare_embedding, Pass::forward),
      which("embedding_backward", {65536, 1024}, prepare_embedding, Pass::backward),
      which("adamw", {std::int64_t{200} * 1024, 1024}, prepare_optimizer, OptimizerWork::adamw),
      which("gradient_norm", {std::int64_t{200} * 1024, 1024}, prepare_optimizer, OptimizerWork::gradient_norm),
  };
  return all;
}

std::vector<Operation> chosen(const std::vector<std::string>& names) {
  if (names.empty()) return operations();
  std::vector<Operation> result;
  for (const std::string& name : names) {
    const auto found =
        std::find_if(operations().begin(), operations().end(), [&](const Operation& operation) { return operation.name == name; });
    if (found == operations().end()) {
      std::string known;
      std::vector<std::string_view> words;
      for (const Operation& operation : operations()) {
        known += sentence(known.empty() ? "" : ", ", operation.name);
        words.push_back(operation.name);
      }
      throw InputError(sentence("bench op ", name, ": there is no such operation", nearest_text(name, words), "; there are ", known, "."));
    }
    result.push_back(*found);
  }
  return result;
}

constexpr std::int64_t copy_bytes_on(Backend backend) { return std::int64_t{1} << (backend == Backend::cuda ? 30 : 28); }

int bench_op(const OpOptions& options) {
  const std::vector<Operation> asked = chosen(options.names);
  const DeviceInfo device = options.device.probe();
  const Precision precision = precision_of(options.precision, device.backend);
  TW_CHECK_INPUT(options.pitch == "aligned" || options.pitch == "packed", "--row-pitch ", options.pitch, ": it is aligned or packed.");
  Context context(options.device.make_queue(device), device,
                  {.precision = precision, .pitch = options.pitch == "aligned" ? PitchPolicy::aligned : PitchPolicy::packed});
  context.write_step_state({.step = 1, .seed = 1, .learning_rate = 1e-4, .real_tokens = 1000});
  const auto wait = [&] { synchronize(context.queue()); };
  const std::int64_t copy_bytes = copy_bytes_on(device.backend);
  const Tensor from = random_tensor(context, {1024, copy_bytes / 4 / 1024}, DType::f32, 1), to = context.tensor(from.shape(), DType::f32);
  const Candidate copy{
      .name = "copy", .launch = [&](std::size_t) { copy_on_device(context.queue(), to.data(), from.data(), copy_bytes); }, .wait = wait};
  InterleaveOptions interleave{.rounds = options.rounds};
  if (!options.json) {
    std::printf("%s, %s, %s pitch\n", device.name.c_str(), std::string(name_of(precision)).c_str(), options.pitch.c_str());
    std::printf("%-20s %14s %10s %10s %9s %10s %6s\n", "operation", "shape", "MB", "time us", "GB/s", "copy GB/s", "share");
  }
  for (const Operation& operation : asked) {
    const Shape shape{options.rows > 0 ? options.rows : operation.shape.rows, options.cols > 0 ? options.cols : operation.shape.cols};
    std::vector<Work> sets{operation.prepare(context, shape)};
    const std::int64_t bytes = sets.front().bytes;
    while (static_cast<std::int64_t>(sets.size()) * bytes < kRotatedBytes && sets.size() < 64)
      sets.push_back(operation.prepare(context, shape));
    const Candidate candidate{.name = operation.name, .launch = [&](std::size_t turn) { sets[turn % sets.size()].launch(); }, .wait = wait};
    const Comparison comparison = compare({candidate}, {copy}, interleave);
    interleave.load_s = 0.0;  // the device is warm now
    const Timing &ours = comparison.ours.front(), &peer = comparison.peers.front();
    const double bytes_per_s = static_cast<double>(bytes) / ours.median_s,
                 copied_per_s = 2.0 * static_cast<double>(copy_bytes) / peer.median_s;
    if (options.json) {
      std::cout << JsonObject()
                       .add("device", device.name)
                       .add("operation", operation.name)
                       .add("rows", shape.rows)
                       .add("cols", shape.cols)
                       .add("precision", name_of(precision))
                       .add("row_pitch", options.pitch)
                       .add("bytes", bytes)
                       .add("time_us", ours.median_s * 1e6)
                       .add("lower_quartile_us", ours.lower_quartile_s * 1e6)
                       .add("upper_quartile_us", ours.upper_quartile_s * 1e6)
                       .add("bytes_per_s", bytes_per_s)
                       .add("copy_bytes_per_s", copied_per_s)
                       .add("copy_fraction", bytes_per_s / copied_per_s)
                       .text()
                << std::endl;
    } else {
      std::printf("%-20s %14s %10.1f %10.1f %9.0f %10.0f %6.2f\n", operation.name, sentence(shape.rows, "x", shape.cols).c_str(),
                  static_cast<double>(bytes) * 1e-6, ours.median_s * 1e6, bytes_per_s * 1e-9, copied_per_s * 1e-9,
                  bytes_per_s / copied_per_s);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace

Command add_bench_op(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand("op", "operations that memory bounds, beside a device copy");
  const auto options = std::make_shared<OpOptions>();
  command->add_option("name", options->names, "operations (default: all of them)");
  command->add_option("--rows", options->rows, "rows (default: each operation's own shape)")->check(CLI::Range(1, 1 << 30));
  command->add_option("--cols", options->cols, "columns")->check(CLI::Range(1, 1 << 30));
  command->add_option("--precision", options->precision, "types, as run.precision has them (default: bf16 on a GPU, else fp32)");
  command->add_option("--row-pitch", options->pitch, "aligned or packed, as guidelines.row_pitch")->capture_default_str();
  command->add_option("--rounds", options->rounds, "interleaved rounds")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_flag("--json", options->json, "one JSON object a line");
  options->device.add_to(*command);
  return {command, [options] { return bench_op(*options); }};
}

}  // namespace tilewave
