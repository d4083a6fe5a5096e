// Cross entropy: a block takes a row, reads it once, and keeps it in shared memory until its gradient is known; a row too wide for
// that is read again. Maximum and sum of exponentials are found together: a sum is rescaled when its maximum moves (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018). A second launch adds up the rows' losses.
#include <cuda_pipeline.h>
#include <limits>

#include "kernels/cuda/core/rows.h"
#include "kernels/ops/cross_entropy.h"

namespace tilewave {
namespace {

constexpr int kThreads = 512;

__device__ __forceinline__ double reciprocal_of_tokens(const StepState& state) {
  return state.real_tokens > 0 ? 1.0 / static_cast<double>(state.real_tokens) : 0.0;
}

// Of the columns seen so far: their maximum, sum of e^(x - max), and sum.
template <class A>
struct Normalizer {
  A max = -std::numeric_limits<A>::infinity(), sum = 0, plain = 0;

  // The first `count` of a pack's elements.
  template <class T, int kWidth>
  __device__ __forceinline__ void add(const Pack<T, kWidth>& pack, std::int64_t count) {
    A higher = max;
    each_of_pack(pack, count, [&](A x) { higher = Max()(higher, x); });
    rescale(higher);
    const A shift = shift_of(max);
    each_of_pack(pack, count, [&](A x) {
      sum += exponential_of_distance(x - shift);
      plain += x;
    });
  }
  __device__ __forceinline__ void rescale(A higher) {
    sum *= exponential_of_distance(max - shift_of(higher));
    max = higher;
  }
  static __device__ __forceinline__ A shift_of(A max) { return max == -std::numeric_limits<A>::infinity() ? A(0) : max; }
};

enum class Staging : std::uint8_t { shared, none };

template <class T, PackAccess kAccess, Staging kStaging>
__global__ void __launch_bounds__(kThreads, sizeof(T) < 8 ? 3 : 1) cross_entropy_rows(const CrossEntropyArgs args) {
  using A = Arithmetic<T>;
  constexpr int kWidth = kPackWidth<T>;
  extern __shared__ __align__(16) unsigned char memory[];
  Pack<T>* const staged = reinterpret_cast<Pack<T>*>(memory);  // a pack is staged and read by one thread
  __shared__ A scratch[kThreads / kWarp];
  const std::int64_t r = blockIdx.x, vocabulary = args.vocabulary, cols = args.logits.cols;
  const std::int32_t label = args.labels.row<std::int32_t>(0)[r];
  T* const x = args.logits.row<T>(r);
  const bool in_place = args.gradient == LossGradient::in_place;
  if (label < 0) {
    for (std::int64_t column = threadIdx.x * kWidth; in_place && column < cols; column += kThreads * kWidth) {
      store_pack<kAccess>(x, column, cols, Pack<T>{});
    }
    if (threadIdx.x == 0) args.row_loss.row<A>(0)[r] = A(0);
    return;
  }
  const A nan = std::numeric_limits<A>::quiet_NaN();
  const A label_logit = label < vocabulary ? A(load(x[label])) : nan;

  // Load: all of the row that fits is under way at once. Reduce.
  constexpr std::int64_t kStride = kThreads * kWidth;
  if constexpr (kStaging == Staging::shared) {
    for (std::int64_t column = threadIdx.x * kWidth; column < vocabulary; column += kStride) {
      if (kAccess == PackAccess::wide && column + kWidth <= vocabulary) {
        __pipeline_memcpy_async(&staged[column / kWidth], x + column, sizeof(Pack<T>));
      } else {
        staged[column / kWidth] = load_pack<kAccess, kWidth>(x, column, vocabulary);
      }
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
  }
  Normalizer<A> normalizer;
  for (std::int64_t column = threadIdx.x * kWidth; column < vocabulary; column += kStride) {
    normalizer.add(kStaging == Staging::shared ? staged[column / kWidth] : load_pack<kAccess, kWidth>(x, column, vocabulary),
                   vocabulary - column);
  }
  normalizer.rescale(fold_group<kThreads>(normalizer.max, scratch, Max()));
  const A sum = fold_group<kThreads>(normalizer.sum, scratch, Sum()), plain = fold_group<kThreads>(normalizer.plain, scratch, Sum());
  const A max = normalizer.max, log_sum = log(sum);
  const A on_label = static_cast<A>(1.0 - args.smoothing), on_all = static_cast<A>(args.smoothing / static_cast<double>(vocabulary));
  if (threadIdx.x == 0) {
    const A count = static_cast<A>(vocabulary);
    const A spread = on_all > A(0) ? on_all * (count * (max + log_sum) - plain) : A(0);
    args.row_loss.row<A>(0)[r] = on_label * (max - label_logit + log_sum) + spread;
  }
  if (!in_place) return;

  // Store the gradient, padding columns included.
  const A scale = label < vocabulary ? static_cast<A>(args.state->loss_scale * reciprocal_of_tokens(*args.state)) : nan;
  const A factor = scale / sum, everywhere = on_all * scale;
  for (std::int64_t column = threadIdx.x * kWidth; column < cols; column += kStride) {
    Pack<T> pack{};
    if (column < vocabulary) {
      pack = kStaging == Staging::shared ? staged[column / kWidth] : load_pack<kAccess, kWidth>(x, column, vocabulary);
      const bool has_label = label >= column && label < column + kWidth;
      A gradient[kWidth];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) gradient[i] = fma(exponential_of_distance(load(pack.get(i)) - max), factor, -everywhere);
      if (has_label) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          if (column + i == label) gradient[i] = fma(-on_label, scale, gradient[i]);
        }
      }
      pack = pack_of<T>(gradient);
      if (column + kWidth > vocabulary) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          if (column + i >= vocabulary) pack.set(i, T{});
        }
      }
    }
    store_pack<kAccess>(x, column, cols, pack);
  }
}

constexpr int kSumThreads = 1024;

template <class A>
__global__ void __launch_bounds__(kSumThreads) add_row_losses(const CrossEntropyArgs args) {
  __shared__ double scratch[kSumThreads / kWarp];
  double sum = 0.0;
#pragma unroll 4
  for (std::int64_t r = threadIdx.x; r < args.row_loss.cols; r += kSumThreads) sum += static_cast<double>(args.row_loss.row<A>(0)[r]);
  sum = fold_group<kSumThreads>(sum, scratch, Sum());
  if (threadIdx.x != 0) return;
  const double loss = sum * reciprocal_of_tokens(*args.state);
  *args.loss.row<A>(0) = static_cast<A>(loss);
  args.state->loss += loss;
}

}  // namespace

void run(CudaQueue& queue, const CrossEntropyArgs& args) {
  check(args);
  const auto& logits = args.logits;
  with_float(logits.dtype, "cross_entropy", [&]<class T>(T) {
    if (logits.rows > 0) {
      const std::int64_t row_bytes = round_up(args.vocabulary, kPackWidth<T>) * static_cast<std::int64_t>(sizeof(T));
      const bool staged =
          args.gradient == LossGradient::in_place && row_bytes + 1024 <= device_of(queue).shared_bytes;  // what else the block keeps there
      const auto launch = [&](auto kernel, std::int64_t shared_bytes) {
        TW_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
        kernel<<<static_cast<unsigned>(logits.rows), kThreads, static_cast<std::size_t>(shared_bytes), stream_of(queue)>>>(args);
        TW_CUDA_LAUNCHED("cross_entropy");
      };
      with_access(access_of(kPackWidth<T>, {logits}), [&](auto access) {
        if (staged) {
          launch(cross_entropy_rows<T, access(), Staging::shared>, row_bytes);
        } else {
          launch(cross_entropy_rows<T, access(), Staging::none>, 0);
        }
      });
    }
    add_row_losses<Arithmetic<T>><<<1, kSumThreads, 0, stream_of(queue)>>>(args);
    TW_CUDA_LAUNCHED("cross_entropy's sum");
  });
}

}  // namespace tilewave
