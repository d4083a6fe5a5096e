// How a ring of stages is kept full beside the products. StageFeed: the copies' own walk along depth, kStages - 1 blocks of it ahead,
// a share of a block's copies at a time, in runs of blocks; a kernel's `next_run` aims it at the next one, or stops it. Where a
// block lies wholly in both operands a copy is an address and an instruction; the others, at the edges, arrive with zeros for what is
// outside. multiply_k_tile: the products of one block of depth.
#pragma once

#include "kernels/cuda/gemm/sm80/warp_tile.h"

namespace tilewave {

template <class Cta, int kStages, Head kHead = Head::whole>
class StageFeed {
 public:
  static constexpr int kBatches = Cta::steps - 1, kDepth = Cta::Left::kDepth;

  // The tile from `row` and `col` of the operands on, along depth `blocks` blocks from `from` on; the operands' depth is [begin, end).
  struct Aim {
    TileOperand left, right;
    std::int64_t row = 0, col = 0;
    int blocks = 0, from = 0, begin = 0, end = 0;
  };

  __device__ __forceinline__ StageFeed(std::uint32_t ring, int thread)
      : ring_(ring), thread_(thread), left_target_(LeftCopy::target_of(thread)), right_target_(RightCopy::target_of(thread)) {}

  __device__ __forceinline__ void aim(const Aim& at) {
    at_ = at;
    live_ = true;
    inside_ = at.row + Cta::rows <= at.left.extent && at.col + Cta::cols <= at.right.extent;
    left_source_ = left().at(0, at.from);
    right_source_ = right().at(0, at.from);
    look();
  }
  __device__ __forceinline__ void stop() { live_ = whole_ = false; }

  // The ring before the first products.
  template <class NextRun>
  __device__ __forceinline__ void fill(NextRun&& next_run) {
#pragma unroll 1
    for (int s = 0; s < kStages - 1; ++s) {
#pragma unroll
      for (int batch = 0; batch < kBatches; ++batch) copy(batch);
      commit(next_run);
    }
    await();
  }

  // The first share brings all of a block that is not whole.
  __device__ __forceinline__ void copy(int batch) const {
    const std::uint32_t stage = ring_ + static_cast<std::uint32_t>(stage_ * Cta::stage_bytes);
    if (whole_) {
      constexpr int kCopies = LeftCopy::kCopies + RightCopy::kCopies;
#pragma unroll
      for (int x = batch * kCopies / kBatches; x < (batch + 1) * kCopies / kBatches; ++x) {
        if (x < LeftCopy::kCopies) {
          LeftCopy::start_whole(x, stage + left_target_, left_source_, at_.left.ld);
        } else {
          RightCopy::start_whole(x - LeftCopy::kCopies, stage + Cta::Left::kBytes + right_target_, right_source_, at_.right.ld);
        }
      }
    } else if (batch == 0 && live_) {
      left().template start<16, kHead>(stage, at_.from, at_.begin);
      right().template start<16, kHead>(stage + Cta::Left::kBytes, at_.from, at_.begin);
    }
  }
  // Hands a finished block over, and waits for the next one to be multiplied: every fragment of the one before it is read by then.
  template <class NextRun>
  __device__ __forceinline__ void arrive(NextRun&& next_run) {
    commit(next_run);
    await();
  }

 private:
  using LeftCopy = TileCopy<typename Cta::Left, Cta::threads>;
  using RightCopy = TileCopy<typename Cta::Right, Cta::threads>;

  __device__ __forceinline__ LeftCopy left() const { return LeftCopy(at_.left, at_.row, at_.end, thread_); }
  __device__ __forceinline__ RightCopy right() const { return RightCopy(at_.right, at_.col, at_.end, thread_); }
  template <class NextRun>
  __device__ __forceinline__ void commit(NextRun&& next_run) {
    cp_async_commit();
    stage_ = stage_ + 1 == kStages ? 0 : stage_ + 1;
    if (--at_.blocks > 0) return advance();
    next_run();
  }
  __device__ __forceinline__ void await() const {
    cp_async_wait<kStages - 2>();
    __syncthreads();
  }
  __device__ __forceinline__ void advance() {
    at_.from += kDepth;
    left_source_ += LeftCopy::stage_step(at_.left.ld);
    right_source_ += RightCopy::stage_step(at_.right.ld);
    look();
  }
  __device__ __forceinline__ void look() {
    whole_ = inside_ && (kHead == Head::whole || at_.begin <= at_.from) && at_.from + kDepth <= at_.end;
  }

  std::uint32_t ring_;
  int thread_;
  std::uint32_t left_target_, right_target_;
  Aim at_;
  const char *left_source_ = nullptr, *right_source_ = nullptr;
  int stage_ = 0;
  bool live_ = false, inside_ = false, whole_ = false;
};

// While a step of depth is multiplied, the next one's fragments are read, from the stage `next_stage` in the end, and a share of the
// copies is started. fragments[0] holds the first step's on entry and the next block's on return.
template <bool kSumRows, class Cta, class Feed, class NextRun>
__device__ __forceinline__ void multiply_k_tile(WarpTile<Cta>& tile, Fragments<Cta> (&fragments)[2], std::uint32_t stage,
                                                std::uint32_t next_stage, int warp_row, int warp_col, int lane, int row_sum_rank,
                                                Feed& feed, NextRun&& next_run) {
#pragma unroll
  for (int step = 0; step < Cta::steps; ++step) {
    const bool last = step + 1 == Cta::steps;
    if (last) {
      feed.arrive(next_run);
    } else {
      feed.copy(step);
    }
    fragments[(step + 1) % 2].load(last ? next_stage : stage, warp_row, warp_col, (step + 1) % Cta::steps, lane);
    tile.multiply(fragments[step % 2]);
    if constexpr (kSumRows) tile.sum_rows(fragments[step % 2], row_sum_rank, lane);
  }
}

}  // namespace tilewave
