// Cross entropy on a CPU, a row at a time: the exponentials are left in the logits' place and become the gradient there. The
// formulas stand in kernels/ops/cross_entropy.h.
#include "kernels/ops/cross_entropy.h"

#include <cmath>

#include "kernels/cpu/core/row_ranges.h"
#include "kernels/cpu/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/ops/cross_entropy.cpp"  // NOLINT
#include <hwy/foreach_target.h>                                 // NOLINT: includes this file once a target
#include <hwy/highway.h>

#include "kernels/cpu/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

double reciprocal_of_tokens(const CrossEntropyArgs& args) {
  return args.state->real_tokens > 0 ? 1.0 / static_cast<double>(args.state->real_tokens) : 0.0;
}

template <class T>
void cross_entropy_row(const CrossEntropyArgs& args, std::int64_t r) {
  const std::int64_t vocabulary = args.vocabulary;
  const bool in_place = args.gradient == LossGradient::in_place;
  const std::int32_t label = args.labels.row<std::int32_t>(0)[r];
  T* x = args.logits.row<T>(r);
  T& loss = args.row_loss.row<T>(0)[r];
  if (label < 0) {
    loss = T(0);
    if (in_place) std::fill_n(x, args.logits.cols, T(0));
    return;
  }
  TW_CHECK(label < vocabulary, "cross_entropy: row ", r, " has label ", label, " outside a vocabulary of ", vocabulary, ".");

  const T on_label = static_cast<T>(1.0 - args.smoothing), on_all = static_cast<T>(args.smoothing / static_cast<double>(vocabulary));
  const T max = max_of<T>(vocabulary, [=](std::int64_t v) { return x[v]; });
  const T label_logit = x[label];
  // The sum of -log p[v], with log(sum of exp) taken out below.
  const T all = on_all > T(0) ? sum_of<T>(vocabulary, [=](std::int64_t v) { return max - x[v]; }) : T(0);
  const T sum = sum_of_exp(x, vocabulary, max, in_place ? x : nullptr);
  const T log_sum = std::log(sum);  // of exp(x - max)
  loss = on_label * (max - label_logit + log_sum) + on_all * (all + static_cast<T>(vocabulary) * log_sum);
  if (!in_place) return;

  const T scale = static_cast<T>(args.state->loss_scale * reciprocal_of_tokens(args));
  const T reciprocal = T(1) / sum;
  for (std::int64_t v = 0; v < vocabulary; ++v) x[v] = (x[v] * reciprocal - on_all) * scale;
  x[label] -= on_label * scale;
  std::fill(x + vocabulary, x + args.logits.cols, T(0));
}

void cross_entropy(CpuQueue& queue, const CrossEntropyArgs& args) {
  with_cpu_float(args.logits.dtype, "cross_entropy", [&]<class T>(T) {
    for_row_ranges(queue, args.logits.rows, args.logits.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) cross_entropy_row<T>(args, r);
    });
    double sum = 0.0;
    for (std::int64_t r = 0; r < args.logits.rows; ++r) sum += static_cast<double>(args.row_loss.row<T>(0)[r]);
    const double loss = sum * reciprocal_of_tokens(args);
    *args.loss.row<T>(0) = static_cast<T>(loss);
    args.state->loss += loss;
  });
}

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tilewave {

HWY_EXPORT(cross_entropy);

void run(CpuQueue& queue, const CrossEntropyArgs& args) {
  check(args);
  HWY_DYNAMIC_DISPATCH(cross_entropy)(queue, args);
}

}  // namespace tilewave
#endif
