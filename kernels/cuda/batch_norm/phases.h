// Batch normalization and its gradient are three phases over the same places:
//   1  each chunk's two sums of each channel, into `partial`
//   2  each channel's, of all chunks, and what they come to
//   3  each value
// Several passes are a launch each. One pass is one launch, whose CTAs are all there at once and wait for each other between phases; what a
// thread has loaded in the first lies in shared memory until the third, as far as there is room, and the rest is loaded again. A Work says
// what is loaded and done; the code of a phase is the same in either case, so that bits are too.
//
// Where rows are pixels a chunk is rows, a thread has packs of columns, and CTAs take chunks in turns. Where rows are channels of images a
// chunk is a segment of a row, 1 to 32 lanes have one, and a CTA has neighbouring segments.
#pragma once

#include <cooperative_groups.h>

#include "kernels/cuda/core/rows.h"
#include "kernels/ops/batch_norm.h"

namespace tilewave {

inline constexpr int kBatchNormThreads = 512;
inline constexpr int kBatchNormBatch = 4;  // packs that a thread asks for before it looks at the first
inline constexpr int kBatchNormSlotBytes = 16 * kBatchNormThreads;

enum BatchNormPhases : unsigned { kSumChunks = 1, kSumChannels = 2, kMakeValues = 4, kAllPhases = 7 };

// Where values, chunks and channels are.
struct BatchNormPlaces {
  std::int64_t rows, cols, channels;
  std::int64_t chunk_rows;  // nhwc
  std::int64_t segments;    // nchw: of a row
  std::int64_t chunks;
  double values;     // of a channel
  int width, lanes;  // nhwc: threads side by side, and rows that they take at a time
  int group;         // nchw: lanes that have a segment together
  int room;          // packs of a thread that stay, for each matrix

  __device__ __forceinline__ std::int64_t size_of_chunk(std::int64_t chunk, ImageLayout layout) const {
    return layout == ImageLayout::nhwc ? min(chunk_rows, rows - chunk * chunk_rows)
                                       : min(kBatchNormSegment, cols - chunk % segments * kBatchNormSegment);
  }
};

// The packs that a thread has loaded, in the order of its loads.
template <class T, int kMatrices>
struct LoadedPacks {
  Pack<T> of[kMatrices];
};
template <class T, int kMatrices>
class KeptPacks {
 public:
  __device__ __forceinline__ KeptPacks(uint4* memory, int room) : memory_(memory + threadIdx.x), room_(room) {}
  __device__ __forceinline__ void rewind() { next_ = 0; }

  __device__ __forceinline__ void put(const LoadedPacks<T, kMatrices>& packs) {
    if (next_ < room_) {
#pragma unroll
      for (int m = 0; m < kMatrices; ++m) {
        const auto& words = packs.of[m].words;
        memory_[(next_ * kMatrices + m) * kBatchNormThreads] = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
    ++next_;
  }
  // The next ones, or false where they are to be loaded again.
  __device__ __forceinline__ bool take(LoadedPacks<T, kMatrices>& packs) {
    const int at = next_++;
    if (at >= room_) return false;
#pragma unroll
    for (int m = 0; m < kMatrices; ++m) {
      const uint4 words = memory_[(at * kMatrices + m) * kBatchNormThreads];
      packs.of[m].words[0] = words.x;
      packs.of[m].words[1] = words.y;
      packs.of[m].words[2] = words.z;
      packs.of[m].words[3] = words.w;
    }
    return true;
  }

 private:
  uint4* memory_;
  int room_, next_ = 0;
};

// Both sums of every thread, by columns of its pack.
template <class A, int kWidth>
struct alignas(16) ThreadSums {
  A of[2][kWidth][kBatchNormThreads];
};

// Phase 1 where rows are pixels: one chunk.
template <PackAccess kAccess, class Work, class Kept, class Sums>
__device__ __forceinline__ void sum_chunk_of_rows(const Work& work, const BatchNormPlaces& at, std::int64_t chunk, Kept& kept, Sums& sums) {
  using A = typename Work::A;
  constexpr int kWidth = Work::kWidth;
  const int thread = static_cast<int>(threadIdx.x), lane = thread / at.width, place = thread - lane * at.width;
  const std::int64_t begin = chunk * at.chunk_rows, end = min(at.rows, begin + at.chunk_rows);
  for (std::int64_t tile = 0; tile < at.cols; tile += static_cast<std::int64_t>(at.width) * kWidth) {
    const std::int64_t column = tile + static_cast<std::int64_t>(place) * kWidth;
    const bool owns = lane < at.lanes && column < at.cols;
    A a[kWidth] = {}, b[kWidth] = {};
    if (owns) {
      typename Work::First first[kWidth] = {};
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        if (column + i < at.cols) first[i] = work.first(begin, column + i, column + i);
      }
      for (std::int64_t row = begin + lane; row < end; row += kBatchNormBatch * at.lanes) {
        typename Work::Packs packs[kBatchNormBatch];
#pragma unroll
        for (int j = 0; j < kBatchNormBatch; ++j) {
          if (row + j * at.lanes < end) packs[j] = work.template load<kAccess>(row + j * at.lanes, column, at.cols);
        }
#pragma unroll
        for (int j = 0; j < kBatchNormBatch; ++j) {
          if (row + j * at.lanes >= end) break;
          kept.put(packs[j]);
#pragma unroll
          for (int i = 0; i < kWidth; ++i) work.add(first[i], packs[j], i, a[i], b[i]);
        }
      }
    }
    __syncthreads();  // the tile before has been read
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      sums.of[0][i][thread] = a[i];
      sums.of[1][i][thread] = b[i];
    }
    __syncthreads();
    if (owns && lane == 0) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        if (column + i >= at.cols) break;
        A a_sum = 0, b_sum = 0;
        for (int other = 0; other < at.lanes; ++other) {
          a_sum += sums.of[0][i][other * at.width + place];
          b_sum += sums.of[1][i][other * at.width + place];
        }
        work.store_chunk(work.first(begin, column + i, column + i), static_cast<A>(end - begin), a_sum, b_sum, chunk, column + i);
      }
    }
  }
}

// Phase 3 of the same chunk.
template <PackAccess kAccess, class Work, class Kept>
__device__ __forceinline__ void make_chunk_of_rows(const Work& work, const BatchNormPlaces& at, std::int64_t chunk, Kept& kept) {
  constexpr int kWidth = Work::kWidth;
  const int thread = static_cast<int>(threadIdx.x), lane = thread / at.width, place = thread - lane * at.width;
  const std::int64_t begin = chunk * at.chunk_rows, end = min(at.rows, begin + at.chunk_rows);
  for (std::int64_t tile = 0; tile < at.cols; tile += static_cast<std::int64_t>(at.width) * kWidth) {
    const std::int64_t column = tile + static_cast<std::int64_t>(place) * kWidth;
    if (lane >= at.lanes || column >= at.cols) continue;
    typename Work::Last last[kWidth] = {};
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if (column + i < at.cols) last[i] = work.last(column + i, at.values);
    }
    for (std::int64_t row = begin + lane; row < end; row += kBatchNormBatch * at.lanes) {
      typename Work::Packs packs[kBatchNormBatch];
#pragma unroll
      for (int j = 0; j < kBatchNormBatch; ++j) {
        if (row + j * at.lanes < end && !kept.take(packs[j])) packs[j] = work.template load<kAccess>(row + j * at.lanes, column, at.cols);
      }
#pragma unroll
      for (int j = 0; j < kBatchNormBatch; ++j) {
        if (row + j * at.lanes >= end) break;
        work.template make<kAccess>(
            row + j * at.lanes, column, at.cols, packs[j], [&](int i) -> const auto& { return last[i]; });
      }
    }
  }
}

// A segment of a row: a channel of an image, or a part of it.
struct RowSegment {
  std::int64_t row, channel, chunk, begin, end;
};
__device__ __forceinline__ RowSegment segment_at(const BatchNormPlaces& at, std::int64_t index) {
  const std::int64_t row = index / at.segments, segment = index - row * at.segments;
  const std::int64_t image = row / at.channels, channel = row - image * at.channels;
  return {.row = row,
          .channel = channel,
          .chunk = image * at.segments + segment,
          .begin = segment * kBatchNormSegment,
          .end = min(at.cols, (segment + 1) * kBatchNormSegment)};
}

// What one CTA has of all segments.
struct SegmentRange {
  std::int64_t begin, end;
};
__device__ __forceinline__ SegmentRange segments_of_block(const BatchNormPlaces& at) {
  const std::int64_t all = at.rows * at.segments, each = (all + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * each;
  return {.begin = min(all, begin), .end = min(all, begin + each)};
}

// A group of lanes takes so many segments at a time, and of each so many packs a lane.
template <int kSegments>
struct SegmentSteps {
  static constexpr int kPacks = kBatchNormBatch / kSegments;
};

// Phase 1 where rows are channels of images.
template <PackAccess kAccess, int kSegments, class Work, class Kept>
__device__ __forceinline__ void sum_segments(const Work& work, const BatchNormPlaces& at, Kept& kept) {
  using A = typename Work::A;
  constexpr int kWidth = Work::kWidth, kPacks = SegmentSteps<kSegments>::kPacks;
  const int lane = static_cast<int>(threadIdx.x) % at.group, mine = static_cast<int>(threadIdx.x) / at.group,
            groups = kBatchNormThreads / at.group, stride = at.group * kWidth;
  const SegmentRange range = segments_of_block(at);
  for (std::int64_t base = range.begin; base < range.end; base += static_cast<std::int64_t>(groups) * kSegments) {
    RowSegment segment[kSegments] = {};
    typename Work::First first[kSegments] = {};
    A a[kSegments] = {}, b[kSegments] = {};
    bool there[kSegments];
#pragma unroll
    for (int k = 0; k < kSegments; ++k) {
      const std::int64_t index = base + static_cast<std::int64_t>(k) * groups + mine;
      there[k] = index < range.end;
      if (!there[k]) continue;
      segment[k] = segment_at(at, index);
      first[k] = work.first(segment[k].row, segment[k].begin, segment[k].channel);
    }
    for (std::int64_t step = 0; step < kBatchNormSegment; step += static_cast<std::int64_t>(stride) * kPacks) {
      typename Work::Packs packs[kSegments][kPacks];
      bool any = false;
#pragma unroll
      for (int k = 0; k < kSegments; ++k) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          const std::int64_t column = there[k] ? segment[k].begin + step + static_cast<std::int64_t>(p) * stride + lane * kWidth : 0;
          if (!there[k] || column >= segment[k].end) continue;
          packs[k][p] = work.template load<kAccess>(segment[k].row, column, at.cols);
          any = true;
        }
      }
      if (!any) break;
#pragma unroll
      for (int k = 0; k < kSegments; ++k) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          const std::int64_t column = there[k] ? segment[k].begin + step + static_cast<std::int64_t>(p) * stride + lane * kWidth : 0;
          if (!there[k] || column >= segment[k].end) continue;
          kept.put(packs[k][p]);
#pragma unroll
          for (int i = 0; i < kWidth; ++i) {
            if (column + i < segment[k].end) work.add(first[k], packs[k][p], i, a[k], b[k]);
          }
        }
      }
    }
#pragma unroll
    for (int k = 0; k < kSegments; ++k) {
      for (int distance = at.group / 2; distance > 0; distance /= 2) {
        a[k] += __shfl_xor_sync(0xffffffffu, a[k], distance);
        b[k] += __shfl_xor_sync(0xffffffffu, b[k], distance);
      }
      if (there[k] && lane == 0) {
        work.store_chunk(first[k], static_cast<A>(segment[k].end - segment[k].begin), a[k], b[k], segment[k].chunk, segment[k].channel);
      }
    }
  }
}

// Phase 3 of the same segments.
template <PackAccess kAccess, int kSegments, class Work, class Kept>
__device__ __forceinline__ void make_segments(const Work& work, const BatchNormPlaces& at, Kept& kept) {
  constexpr int kWidth = Work::kWidth, kPacks = SegmentSteps<kSegments>::kPacks;
  const int lane = static_cast<int>(threadIdx.x) % at.group, mine = static_cast<int>(threadIdx.x) / at.group,
            groups = kBatchNormThreads / at.group, stride = at.group * kWidth;
  const SegmentRange range = segments_of_block(at);
  for (std::int64_t base = range.begin; base < range.end; base += static_cast<std::int64_t>(groups) * kSegments) {
    RowSegment segment[kSegments] = {};
    typename Work::Last last[kSegments] = {};
    bool there[kSegments];
#pragma unroll
    for (int k = 0; k < kSegments; ++k) {
      const std::int64_t index = base + static_cast<std::int64_t>(k) * groups + mine;
      there[k] = index < range.end;
      if (!there[k]) continue;
      segment[k] = segment_at(at, index);
      last[k] = work.last(segment[k].channel, at.values);
    }
    for (std::int64_t step = 0; step < kBatchNormSegment; step += static_cast<std::int64_t>(stride) * kPacks) {
      typename Work::Packs packs[kSegments][kPacks];
      bool any = false;
#pragma unroll
      for (int k = 0; k < kSegments; ++k) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          const std::int64_t column = there[k] ? segment[k].begin + step + static_cast<std::int64_t>(p) * stride + lane * kWidth : 0;
          if (!there[k] || column >= segment[k].end) continue;
          if (!kept.take(packs[k][p])) packs[k][p] = work.template load<kAccess>(segment[k].row, column, at.cols);
          any = true;
        }
      }
      if (!any) break;
#pragma unroll
      for (int k = 0; k < kSegments; ++k) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          const std::int64_t column = there[k] ? segment[k].begin + step + static_cast<std::int64_t>(p) * stride + lane * kWidth : 0;
          if (!there[k] || column >= segment[k].end) continue;
          work.template make<kAccess>(
              segment[k].row, column, at.cols, packs[k][p], [&](int) -> const auto& { return last[k]; });
        }
      }
    }
  }
}

// Phase 2: a warp's threads have neighbouring channels, its fellows every 16th chunk of them.
inline constexpr int kBatchNormFellows = kBatchNormThreads / kWarp;

class ChunkSums {
 public:
  __device__ __forceinline__ ChunkSums(const BatchNormPlaces& at, double* scratch)
      : at_(at), scratch_(scratch), lane_(static_cast<int>(threadIdx.x) % kWarp), fellow_(static_cast<int>(threadIdx.x) / kWarp) {}

  __device__ __forceinline__ bool stores() const { return fellow_ == 0; }
  __device__ __forceinline__ int lane() const { return lane_; }
  __device__ __forceinline__ const BatchNormPlaces& at() const { return at_; }

  // The sum of term(chunk) over all chunks, in every thread of a channel; all threads come, those with `there` false for company.
  template <class Term>
  __device__ __forceinline__ double of(bool there, const Term& term) const {
    double sum = 0.0;
    for (std::int64_t chunk = fellow_; there && chunk < at_.chunks; chunk += kBatchNormFellows) sum += term(chunk);
    __syncthreads();  // what was summed before has been read
    scratch_[fellow_ * kWarp + lane_] = sum;
    __syncthreads();
    double total = 0.0;
    for (int fellow = 0; fellow < kBatchNormFellows; ++fellow) total += scratch_[fellow * kWarp + lane_];
    return total;
  }

 private:
  const BatchNormPlaces& at_;
  double* scratch_;
  int lane_, fellow_;
};

template <class Work, ImageLayout kLayout, int kSegments, PackAccess kAccess>
__global__ void __launch_bounds__(kBatchNormThreads, 1)
    batch_norm_phases(const Work work, const BatchNormPlaces at, const unsigned phases) {
  using T = typename Work::T;
  using Sums = ThreadSums<typename Work::A, Work::kWidth>;
  extern __shared__ uint4 kept_memory[];
  __shared__ Sums thread_sums;
  static_assert(sizeof(Sums) >= sizeof(double) * kBatchNormThreads, "phase 2 has a number of each thread in the place of these sums");
  KeptPacks<T, Work::kMatrices> kept(kept_memory, at.room);

  if ((phases & kSumChunks) != 0) {
    if constexpr (kLayout == ImageLayout::nhwc) {
      for (std::int64_t chunk = blockIdx.x; chunk < at.chunks; chunk += gridDim.x) {
        sum_chunk_of_rows<kAccess>(work, at, chunk, kept, thread_sums);
      }
    } else {
      sum_segments<kAccess, kSegments>(work, at, kept);
    }
  }
  if (phases == kAllPhases) cooperative_groups::this_grid().sync();
  if ((phases & kSumChannels) != 0) {
    const ChunkSums sums(at, reinterpret_cast<double*>(&thread_sums));
    for (std::int64_t first = blockIdx.x * static_cast<std::int64_t>(kWarp); first < at.channels; first += gridDim.x * kWarp) {
      work.sum_channel(sums, kLayout, first + sums.lane());
    }
  }
  if (phases == kAllPhases) cooperative_groups::this_grid().sync();
  if ((phases & kMakeValues) != 0) {
    kept.rewind();
    if constexpr (kLayout == ImageLayout::nhwc) {
      for (std::int64_t chunk = blockIdx.x; chunk < at.chunks; chunk += gridDim.x) make_chunk_of_rows<kAccess>(work, at, chunk, kept);
    } else {
      make_segments<kAccess, kSegments>(work, at, kept);
    }
  }
}

// Host side.
template <class Work, class Args>
BatchNormPlaces batch_norm_places(const Args& args) {
  BatchNormPlaces at{};
  at.rows = args.x.rows;
  at.cols = args.x.cols;
  at.channels = args.gamma.cols;
  at.chunk_rows = batch_norm_chunk_rows(at.rows);
  at.segments = ceil_div(at.cols, kBatchNormSegment);
  at.chunks = batch_norm_chunks(at.rows, at.cols, at.channels, args.layout);
  at.values = static_cast<double>(args.layout == ImageLayout::nhwc ? at.rows : at.rows / at.channels * at.cols);
  const std::int64_t packs = ceil_div(std::min(at.cols, kBatchNormSegment), Work::kWidth);
  at.width = static_cast<int>(std::min<std::int64_t>(ceil_div(at.cols, Work::kWidth), kBatchNormThreads));
  at.lanes = kBatchNormThreads / std::max(1, at.width);
  at.group = 1;
  while (at.group < kWarp && at.group < packs) at.group *= 2;
  return at;
}

template <class Work, ImageLayout kLayout, int kSegments, PackAccess kAccess>
void launch_batch_norm_phases(CudaQueue& queue, const Work& work, BatchNormPlaces at, unsigned phases, BatchNormPasses passes) {
  const auto kernel = batch_norm_phases<Work, kLayout, kSegments, kAccess>;
  const DeviceInfo& device = device_of(queue);
  const std::int64_t groups = kBatchNormThreads / at.group;
  const std::int64_t shares = kLayout == ImageLayout::nhwc ? at.chunks : ceil_div(at.rows * at.segments, groups);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.blockDim = dim3(kBatchNormThreads);
  config.stream = stream_of(queue);
  config.attrs = &attribute;
  const auto launch = [&](std::int64_t blocks, unsigned asked) {
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    cudaLaunchKernelEx(&config, kernel, work, at, asked);
    TW_CUDA_LAUNCHED("batch_norm");
  };
  if (passes == BatchNormPasses::one && phases == kAllPhases) {
    constexpr std::int64_t kScratchBytes = sizeof(ThreadSums<typename Work::A, Work::kWidth>);
    at.room = static_cast<int>((device.shared_bytes - kScratchBytes) / (kBatchNormSlotBytes * Work::kMatrices));
    config.dynamicSmemBytes = static_cast<std::size_t>(at.room) * kBatchNormSlotBytes * Work::kMatrices;
    TW_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(config.dynamicSmemBytes)));
    config.numAttrs = 1;
    launch(std::min(device.sm_count, shares), kAllPhases);
    return;
  }
  // A CTA of such a launch keeps nothing; several of them take turns on an SM.
  const std::int64_t blocks = kLayout == ImageLayout::nhwc ? shares : std::min(shares, 8 * device.sm_count);
  if ((phases & kSumChunks) != 0) launch(blocks, kSumChunks);
  if ((phases & kSumChannels) != 0) launch(ceil_div(at.channels, kWarp), kSumChannels);
  if ((phases & kMakeValues) != 0) launch(blocks, kMakeValues);
}

template <class Work>
void launch_batch_norm(CudaQueue& queue, const Work& work, unsigned phases, PackAccess access) {
  const BatchNormPlaces at = batch_norm_places<Work>(work.args);
  if (at.rows == 0 || at.cols == 0) return;
  with_access(access, [&](auto kAccess) {
    if (work.args.layout == ImageLayout::nhwc) {
      launch_batch_norm_phases<Work, ImageLayout::nhwc, 1, kAccess()>(queue, work, at, phases, work.args.passes);
    } else if (std::min(at.cols, kBatchNormSegment) <= static_cast<std::int64_t>(at.group) * Work::kWidth) {  // a pack a lane
      launch_batch_norm_phases<Work, ImageLayout::nchw, kBatchNormBatch, kAccess()>(queue, work, at, phases, work.args.passes);
    } else {
      launch_batch_norm_phases<Work, ImageLayout::nchw, 1, kAccess()>(queue, work, at, phases, work.args.passes);
    }
  });
}

}  // namespace tilewave
