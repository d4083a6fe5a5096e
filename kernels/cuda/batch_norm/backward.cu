// Batch normalization, backward: a channel's sums of dy and of dy h, which are dbeta and dgamma, and dx from them. The sums of this pass
// alone lie in the last two rows of `partial`.
#include "kernels/cuda/batch_norm/phases.h"

namespace tilewave {
namespace {

template <class Element>
struct BatchNormBackward {
  using T = Element;
  using A = Arithmetic<T>;
  static constexpr int kMatrices = 2, kWidth = kPackWidth<T>;
  using Packs = LoadedPacks<T, kMatrices>;
  struct First {
    A mean, rstd;
  };
  struct Last {
    A mean, rstd, scale, mean_dy, mean_dyh;
  };
  BatchNormBackwardArgs args;

  template <PackAccess kAccess>
  __device__ __forceinline__ Packs load(std::int64_t row, std::int64_t column, std::int64_t cols) const {
    return {{load_pack<kAccess, kWidth>(args.x.row<T>(row), column, cols), load_pack<kAccess, kWidth>(args.dy.row<T>(row), column, cols)}};
  }
  __device__ __forceinline__ First first(std::int64_t, std::int64_t, std::int64_t channel) const {
    return {args.mean.row<A>(0)[channel], args.rstd.row<A>(0)[channel]};
  }
  __device__ __forceinline__ void add(const First& first, const Packs& packs, int i, A& dbeta, A& dgamma) const {
    const A dy = tilewave::load(packs.of[1].get(i));
    dbeta += dy;
    dgamma = fma(dy, (tilewave::load(packs.of[0].get(i)) - first.mean) * first.rstd, dgamma);
  }
  __device__ __forceinline__ void store_chunk(const First&, A, A dbeta, A dgamma, std::int64_t chunk, std::int64_t channel) const {
    args.partial.row<A>(2 * chunk)[channel] = dbeta;
    args.partial.row<A>(2 * chunk + 1)[channel] = dgamma;
  }
  __device__ __forceinline__ void sum_channel(const ChunkSums& sums, ImageLayout, std::int64_t channel) const {
    const bool there = channel < sums.at().channels;
    const double dbeta = sums.of(there, [&](std::int64_t chunk) { return static_cast<double>(args.partial.row<A>(2 * chunk)[channel]); });
    const double dgamma =
        sums.of(there, [&](std::int64_t chunk) { return static_cast<double>(args.partial.row<A>(2 * chunk + 1)[channel]); });
    if (!there || !sums.stores()) return;
    args.partial.row<A>(2 * sums.at().chunks)[channel] = static_cast<A>(dbeta);
    args.partial.row<A>(2 * sums.at().chunks + 1)[channel] = static_cast<A>(dgamma);
    A &dbeta_sum = args.dbeta.row<A>(0)[channel], &dgamma_sum = args.dgamma.row<A>(0)[channel];
    dbeta_sum = static_cast<A>(dbeta) + (args.accumulate_beta ? dbeta_sum : A(0));
    dgamma_sum = static_cast<A>(dgamma) + (args.accumulate_gamma ? dgamma_sum : A(0));
  }
  __device__ __forceinline__ Last last(std::int64_t channel, double values) const {
    const A rstd = args.rstd.row<A>(0)[channel], part = args.mode == BatchNormMode::training ? static_cast<A>(1.0 / values) : A(0);
    const std::int64_t totals = args.partial.rows - 2;
    return {.mean = args.mean.row<A>(0)[channel],
            .rstd = rstd,
            .scale = rstd * tilewave::load(args.gamma.row<T>(0)[channel]),
            .mean_dy = args.partial.row<A>(totals)[channel] * part,
            .mean_dyh = args.partial.row<A>(totals + 1)[channel] * part};
  }
  template <PackAccess kAccess, class LastOf>
  __device__ __forceinline__ void make(std::int64_t row, std::int64_t column, std::int64_t cols, const Packs& packs,
                                       const LastOf& last_of) const {
    Pack<T> earlier{};
    if (args.accumulate) earlier = load_pack<kAccess, kWidth>(args.dx.row<const T>(row), column, cols);
    A dx[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const Last& last = last_of(i);
      const A h = (tilewave::load(packs.of[0].get(i)) - last.mean) * last.rstd;
      dx[i] = fma(last.scale, fma(-h, last.mean_dyh, tilewave::load(packs.of[1].get(i)) - last.mean_dy), tilewave::load(earlier.get(i)));
    }
    store_pack<kAccess>(args.dx.row<T>(row), column, cols, pack_of<T>(dx));
  }
};

}  // namespace

void run(CudaQueue& queue, const BatchNormBackwardArgs& args) {
  check(args);
  with_float(args.x.dtype, "batch_norm_backward", [&]<class T>(T) {
    launch_batch_norm(queue, BatchNormBackward<T>{.args = args}, kAllPhases, access_of(kPackWidth<T>, {args.x, args.dy, args.dx}));
  });
}

}  // namespace tilewave
