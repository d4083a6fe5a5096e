// Batch normalization, forward. A chunk's sums are of distances from one of its values, so that they lose no digits to a large mean; from
// them come the chunk's mean and its sum of squares about it, and of all chunks the channel's.
#include "kernels/cuda/batch_norm/phases.h"

namespace tilewave {
namespace {

template <class Element>
struct BatchNormForward {
  using T = Element;
  using A = Arithmetic<T>;
  static constexpr int kMatrices = 1, kWidth = kPackWidth<T>;
  using Packs = LoadedPacks<T, kMatrices>;
  struct First {
    A shift;
  };
  struct Last {
    A mean, scale, beta;
  };
  BatchNormArgs args;

  template <PackAccess kAccess>
  __device__ __forceinline__ Packs load(std::int64_t row, std::int64_t column, std::int64_t cols) const {
    return {{load_pack<kAccess, kWidth>(args.x.row<T>(row), column, cols)}};
  }
  __device__ __forceinline__ First first(std::int64_t row, std::int64_t column, std::int64_t) const {
    return {tilewave::load(args.x.row<T>(row)[column])};
  }
  __device__ __forceinline__ void add(const First& first, const Packs& packs, int i, A& sum, A& squares) const {
    const A distance = tilewave::load(packs.of[0].get(i)) - first.shift;
    sum += distance;
    squares = fma(distance, distance, squares);
  }
  __device__ __forceinline__ void store_chunk(const First& first, A values, A sum, A squares, std::int64_t chunk,
                                              std::int64_t channel) const {
    const A mean = sum / values, about_mean = squares - sum * mean;
    args.partial.row<A>(2 * chunk)[channel] = first.shift + mean;
    args.partial.row<A>(2 * chunk + 1)[channel] = about_mean < A(0) ? A(0) : about_mean;
  }
  __device__ __forceinline__ void sum_channel(const ChunkSums& sums, ImageLayout layout, std::int64_t channel) const {
    const bool there = channel < sums.at().channels;
    double mean = 0.0, variance = 0.0;
    if (args.mode == BatchNormMode::evaluation) {
      if (there) mean = args.running_mean.row<A>(0)[channel], variance = args.running_variance.row<A>(0)[channel];
    } else {
      mean = sums.of(there, [&](std::int64_t chunk) {
        return static_cast<double>(sums.at().size_of_chunk(chunk, layout)) * static_cast<double>(args.partial.row<A>(2 * chunk)[channel]);
      });
      mean /= sums.at().values;
      variance = sums.of(there, [&](std::int64_t chunk) {
        const double distance = static_cast<double>(args.partial.row<A>(2 * chunk)[channel]) - mean;
        return static_cast<double>(args.partial.row<A>(2 * chunk + 1)[channel]) +
               static_cast<double>(sums.at().size_of_chunk(chunk, layout)) * distance * distance;
      });
      variance /= sums.at().values;
    }
    if (!there || !sums.stores()) return;
    args.mean.row<A>(0)[channel] = static_cast<A>(mean);
    args.rstd.row<A>(0)[channel] = static_cast<A>(1.0 / sqrt(variance + args.epsilon));
    if (args.mode == BatchNormMode::evaluation || !args.running_mean) return;
    A &running_mean = args.running_mean.row<A>(0)[channel], &running_variance = args.running_variance.row<A>(0)[channel];
    const double unbiased = variance * sums.at().values / (sums.at().values - 1.0);
    running_mean = static_cast<A>((1.0 - args.momentum) * static_cast<double>(running_mean) + args.momentum * mean);
    running_variance = static_cast<A>((1.0 - args.momentum) * static_cast<double>(running_variance) + args.momentum * unbiased);
  }
  __device__ __forceinline__ Last last(std::int64_t channel, double) const {
    return {.mean = args.mean.row<A>(0)[channel],
            .scale = args.rstd.row<A>(0)[channel] * tilewave::load(args.gamma.row<T>(0)[channel]),
            .beta = tilewave::load(args.beta.row<T>(0)[channel])};
  }
  template <PackAccess kAccess, class LastOf>
  __device__ __forceinline__ void make(std::int64_t row, std::int64_t column, std::int64_t cols, const Packs& packs,
                                       const LastOf& last_of) const {
    A y[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const Last& last = last_of(i);
      y[i] = fma(tilewave::load(packs.of[0].get(i)) - last.mean, last.scale, last.beta);
    }
    store_pack<kAccess>(args.y.row<T>(row), column, cols, pack_of<T>(y));
  }
};

}  // namespace

void run(CudaQueue& queue, const BatchNormArgs& args) {
  check(args);
  with_float(args.x.dtype, "batch_norm", [&]<class T>(T) {
    const unsigned phases = args.mode == BatchNormMode::training ? unsigned{kAllPhases} : kSumChannels | kMakeValues;
    launch_batch_norm(queue, BatchNormForward<T>{.args = args}, phases, access_of(kPackWidth<T>, {args.x, args.y}));
  });
}

}  // namespace tilewave
