// Attention on a CPU in tiles of keys by queries: a tile of S^T has keys as rows and queries as columns, so that every vector
// of a score runs along queries, the softmax sums no vector across, and heads of whole vectors are read where they lie.
// Forward keeps a running maximum and sum for each query (Milakov and Gimelshein, "Online normalizer calculation for softmax",
// 2018; Dao et al., "FlashAttention", 2022). Backward has P again from log_sum_exp; one thread owns a head of a segment's gradients of
// keys, and so all heads of queries whose parts they are sums of.
#include "kernels/ops/attention.h"

#include <cmath>
#include <hwy/aligned_allocator.h>
#include <hwy/cache_control.h>
#include <limits>
#include <vector>

#include "kernels/core/memory.h"
#include "kernels/cpu/core/row_ranges.h"
#include "kernels/cpu/core/segments.h"
#include "kernels/cpu/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/ops/attention.cpp"  // NOLINT
#include <hwy/foreach_target.h>                             // NOLINT: includes this file once a target
#include <hwy/highway.h>

#include "kernels/cpu/core/small_product-inl.h"
#include "kernels/cpu/core/transpose-inl.h"
#include "kernels/cpu/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tilewave::HWY_NAMESPACE {
namespace {

template <class T>
using Buffer = hwy::AlignedFreeUniquePtr<T[]>;

template <class T>
Buffer<T> buffer(std::int64_t elements) {
  Buffer<T> memory = hwy::AllocateAligned<T>(static_cast<std::size_t>(elements));
  if (memory == nullptr) throw OutOfMemory(concat("attention: out of memory for a tile of ", elements, " elements; ask for less."));
  return memory;
}

constexpr std::int64_t kTile = 64;  // queries, and keys, of a tile

// Queries [first, first + count) of a segment. `padded` columns are computed; the surplus ones are never stored.
struct QueryTile {
  Segment segment;
  std::int64_t first = 0, count = 0, padded = 0;

  std::int64_t row() const { return segment.q_begin + first; }
  // How many keys the tile's last query sees.
  std::int64_t visible_keys(Mask mask) const {
    return mask == Mask::none ? segment.k_length
                              : std::clamp<std::int64_t>(first + count + segment.k_length - segment.q_length, 0, segment.k_length);
  }
  // How many of the tile's columns come before the first query that sees the key.
  std::int64_t blind_columns(std::int64_t key, Mask mask) const {
    return mask == Mask::none ? 0 : std::clamp<std::int64_t>(key - (segment.k_length - segment.q_length) - first, 0, padded);
  }
};

QueryTile query_tile(const Segment& segment, std::int64_t first) {
  const std::int64_t count = std::min(kTile, segment.q_length - first);
  return {.segment = segment, .first = first, .count = count, .padded = round_up(count, kLanes)};
}

// Keys [first, first + count) of a segment.
struct KeyTile {
  std::int64_t first = 0, count = 0;
};

KeyTile key_tile(const Segment& segment, std::int64_t first) {
  return {.first = first, .count = std::min(kTile, segment.k_length - first)};
}

// One head's columns.
template <class T>
struct Head {
  T* data = nullptr;
  std::int64_t ld = 0, width = 0;

  T* row(std::int64_t r) const { return data + r * ld; }
};
template <class T>
Head<const T> head_of(const ConstMatrixView& view, std::int64_t head, std::int64_t heads) {
  return {.data = view.row<T>(0) + head * (view.cols / heads), .ld = view.ld, .width = view.cols / heads};
}
template <class T>
Head<T> head_of(const MatrixView& view, std::int64_t head, std::int64_t heads) {
  return {.data = view.row<T>(0) + head * (view.cols / heads), .ld = view.ld, .width = view.cols / heads};
}

template <class T, class Args>
T score_scale(const Args& args) {
  const std::int64_t width = args.q.cols / args.heads;
  return args.scale > 0.0 ? static_cast<T>(args.scale) : T(1) / std::sqrt(static_cast<T>(width));
}

// Rows of whole vectors: a head's where they lie, or, where its width is not one of whole vectors, a buffer's.
template <class T>
struct WholeRows {
  T* data = nullptr;
  std::int64_t ld = 0;
};
template <class T>
bool is_whole(const Head<T>& matrix) {
  return matrix.width % kLanes == 0;
}
// `count` rows from `first` on to read, in the buffer with zeros behind.
template <class T>
WholeRows<const T> whole_rows(const Head<const T>& matrix, std::int64_t first, std::int64_t count, T* buffer) {
  if (is_whole(matrix)) return {.data = matrix.row(first), .ld = matrix.ld};
  const std::int64_t padded_width = round_up(matrix.width, kLanes);
  for (std::int64_t r = 0; r < count; ++r) {
    T* const row = buffer + r * padded_width;
    std::fill(std::copy_n(matrix.row(first + r), matrix.width, row), row + padded_width, T(0));
  }
  return {.data = buffer, .ld = padded_width};
}
// Rows from `first` on to be written, and, once they are, their way home from the buffer.
template <class T>
WholeRows<T> whole_rows(const Head<T>& matrix, std::int64_t first, T* buffer) {
  if (is_whole(matrix)) return {.data = matrix.row(first), .ld = matrix.ld};
  return {.data = buffer, .ld = round_up(matrix.width, kLanes)};
}
template <class T>
void store_rows(const WholeRows<T>& rows, const Head<T>& matrix, std::int64_t first, std::int64_t count) {
  if (is_whole(matrix)) return;
  for (std::int64_t r = 0; r < count; ++r) std::copy_n(rows.data + r * rows.ld, matrix.width, matrix.row(first + r));
}
template <class T>
void zero_rows(const WholeRows<T>& rows, std::int64_t begin, std::int64_t end, std::int64_t width) {
  for (std::int64_t r = begin; r < end; ++r) std::fill_n(rows.data + r * rows.ld, width, T(0));
}

// out[c, i] = scale * row(i)[c]; columns from tile.count on are the last row again.   // [width, padded]
template <class T>
void load_transposed(const Head<const T>& matrix, const QueryTile& tile, T scale, T* out) {
  const VectorTag<T> d;
  constexpr std::int64_t lanes = hn::MaxLanes(d);
  const auto factor = hn::Set(d, scale);
  for (std::int64_t i = 0; i < tile.padded; i += lanes) {
    const T* rows[lanes];
    for (std::int64_t lane = 0; lane < lanes; ++lane) rows[lane] = matrix.row(tile.row() + std::min(i + lane, tile.count - 1));
    std::int64_t c = 0;
    for (; c + kSquare<T> <= matrix.width; c += kSquare<T>) {
      transpose_rows(
          d, [&](std::int64_t row) HWY_ATTR { return rows[row] + c; },
          [&](std::int64_t k, auto column) HWY_ATTR { hn::Store(hn::Mul(column, factor), d, out + (c + k) * tile.padded + i); });
    }
    for (; c < matrix.width; ++c) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) out[c * tile.padded + i + lane] = scale * rows[lane][c];
    }
  }
}

// The keys' and values' rows are on their way while the queries are laid out.
template <class T>
void prefetch_rows(const Head<const T>& matrix, const Segment& segment, const KeyTile& keys) {
  constexpr auto kLine = static_cast<std::int64_t>(HWY_ALIGNMENT / sizeof(T));
  for (std::int64_t j = 0; j < keys.count; ++j) {
    const T* row = matrix.row(segment.k_begin + keys.first + j);
    for (std::int64_t c = 0; c < matrix.width; c += kLine) hwy::Prefetch(row + c);
  }
}

// S^T of a tile from q^T, which carries the scale: -infinity where a query does not see a key.   // [keys, padded]
template <class T>
void load_scores(const Head<const T>& k, const QueryTile& queries, const KeyTile& keys, Mask mask, const T* q_t, T* scores) {
  multiply<Sums::fresh>(SmallProduct<T>{.m = keys.count,
                                        .n = queries.padded,
                                        .k = k.width,
                                        .a = k.row(queries.segment.k_begin + keys.first),
                                        .a_row = k.ld,
                                        .a_k = 1,
                                        .b = q_t,
                                        .b_ld = queries.padded,
                                        .c = scores,
                                        .c_ld = queries.padded});
  for (std::int64_t j = 0; j < keys.count; ++j) {
    std::fill_n(scores + j * queries.padded, queries.blind_columns(keys.first + j, mask), -std::numeric_limits<T>::infinity());
  }
}

// fn(j, draws): a key of the tile and its draws, the one of query i being draws[4 i].
template <class Fn>
void for_key_draws(const AttentionDropout& dropout, std::int64_t head, const QueryTile& queries, const KeyTile& keys, const Fn& fn) {
  HWY_ALIGN std::uint32_t draws[4 * kTile];
  const std::int64_t begin = queries.segment.k_begin + keys.first, end = begin + keys.count;
  for (std::int64_t quad = begin / 4; 4 * quad < end; ++quad) {
    draw({.key = dropout_key(dropout.state->seed, dropout.state->step),
          .site = dropout.state->place.first_site + dropout.site,
          .plane = static_cast<std::uint32_t>(head),
          .row = queries.row() + dropout.state->place.first_row(dropout.queries),
          .column_quad = quad + dropout.state->place.first_row(dropout.keys) / 4,
          .along = Along::rows},
         queries.padded, draws);
    for (std::int64_t key = std::max(begin, 4 * quad); key < std::min(end, 4 * quad + 4); ++key) fn(key - begin, draws + key % 4);
  }
}

// Forward.

template <class T>
struct ForwardScratch {
  explicit ForwardScratch(std::int64_t width)
      : q_t(buffer<T>(width * kTile)),
        scores(buffer<T>(kTile * kTile)),
        v(buffer<T>(kTile * round_up(width, kLanes))),
        out(buffer<T>(kTile * round_up(width, kLanes))),
        max(buffer<T>(kTile)),
        sum(buffer<T>(kTile)),
        correction(buffer<T>(kTile)),
        log_sum_exp(buffer<T>(kTile)) {}

  Buffer<T> q_t;     // [width, queries]
  Buffer<T> scores;  // [keys, queries]
  Buffer<T> v;       // [keys, padded width]
  Buffer<T> out;     // [queries, padded width]
  Buffer<T> max, sum, correction, log_sum_exp;
};

// scores become exp(scores - max) under the new maximum; sum moves to it, and `correction` is what moves an older sum there.
template <std::int64_t kVectors, class T>
void softmax_columns(ForwardScratch<T>& s, const QueryTile& queries, std::int64_t keys, std::int64_t first) {
  const VectorTag<T> d;
  constexpr std::int64_t lanes = hn::MaxLanes(d);
  const auto least = hn::Set(d, -std::numeric_limits<T>::infinity());
  T* const scores = s.scores.get() + first;
  hn::Vec<VectorTag<T>> max[kVectors], shift[kVectors], sum[kVectors];
  for (std::int64_t v = 0; v < kVectors; ++v) max[v] = hn::Load(d, s.max.get() + first + v * lanes);
  for (std::int64_t j = 0; j < keys; ++j) {
    for (std::int64_t v = 0; v < kVectors; ++v) max[v] = hn::Max(max[v], hn::Load(d, scores + j * queries.padded + v * lanes));
  }
  for (std::int64_t v = 0; v < kVectors; ++v) {
    const std::int64_t i = first + v * lanes;
    shift[v] = hn::IfThenElse(hn::Eq(max[v], least), hn::Zero(d), max[v]);  // nothing seen yet: exp(-infinity) is 0
    const auto correction = exp_of(d, hn::Sub(hn::Load(d, s.max.get() + i), shift[v]));
    sum[v] = hn::Mul(hn::Load(d, s.sum.get() + i), correction);
    hn::Store(max[v], d, s.max.get() + i);
    hn::Store(correction, d, s.correction.get() + i);
  }
  for (std::int64_t j = 0; j < keys; ++j) {
    for (std::int64_t v = 0; v < kVectors; ++v) {
      T* const score = scores + j * queries.padded + v * lanes;
      const auto p = exp_of(d, hn::Sub(hn::Load(d, score), shift[v]));
      sum[v] = hn::Add(sum[v], p);
      hn::Store(p, d, score);
    }
  }
  for (std::int64_t v = 0; v < kVectors; ++v) hn::Store(sum[v], d, s.sum.get() + first + v * lanes);
}
template <class T>
void softmax_step(ForwardScratch<T>& s, const QueryTile& queries, std::int64_t keys) {
  constexpr std::int64_t lanes = hn::MaxLanes(VectorTag<T>());
  std::int64_t i = 0;
  for (; i + 2 * lanes <= queries.padded; i += 2 * lanes) softmax_columns<2>(s, queries, keys, i);
  if (i < queries.padded) softmax_columns<1>(s, queries, keys, i);
}

// log_sum_exp, and 1 / sum in sum's place; both 0 for a query that sees no key.
template <class T>
void finish_sums(ForwardScratch<T>& s, const QueryTile& queries) {
  const VectorTag<T> d;
  for (std::int64_t i = 0; i < queries.padded; i += hn::MaxLanes(d)) {
    const auto sum = hn::Load(d, s.sum.get() + i);
    const auto unseen = hn::Eq(sum, hn::Zero(d));
    const auto log_sum_exp = hn::Add(hn::Load(d, s.max.get() + i), hn::Log(d, sum));
    hn::Store(hn::IfThenElse(unseen, hn::Zero(d), log_sum_exp), d, s.log_sum_exp.get() + i);
    hn::Store(hn::IfThenElse(unseen, hn::Zero(d), hn::Div(hn::Set(d, T(1)), sum)), d, s.sum.get() + i);
  }
}

template <class T>
void attend(const AttentionArgs& args, const QueryTile& queries, std::int64_t head, ForwardScratch<T>& s) {
  const std::int64_t kv_heads = kv_heads_of(args), shared = head / heads_sharing(args);
  const auto q = head_of<T>(args.q, head, args.heads), k = head_of<T>(args.k, shared, kv_heads), v = head_of<T>(args.v, shared, kv_heads);
  const std::int64_t padded_width = round_up(v.width, kLanes);
  const std::uint32_t threshold = keep_threshold(args.dropout.probability);
  const T kept = static_cast<T>(1.0 / (1.0 - args.dropout.probability));

  // Load.
  prefetch_rows(k, queries.segment, key_tile(queries.segment, 0));
  prefetch_rows(v, queries.segment, key_tile(queries.segment, 0));
  load_transposed(q, queries, score_scale<T>(args), s.q_t.get());
  if (queries.visible_keys(args.mask) == 0) std::fill_n(s.out.get(), queries.count * padded_width, T(0));
  std::fill_n(s.max.get(), queries.padded, -std::numeric_limits<T>::infinity());
  std::fill_n(s.sum.get(), queries.padded, T(0));

  for (std::int64_t first = 0; first < queries.visible_keys(args.mask); first += kTile) {
    const KeyTile keys = key_tile(queries.segment, first);
    load_scores(k, queries, keys, args.mask, s.q_t.get(), s.scores.get());
    softmax_step(s, queries, keys.count);
    if (args.dropout.probability > 0.0) {
      for_key_draws(args.dropout, head, queries, keys, [&](std::int64_t j, const std::uint32_t* draws) {
        T* p = s.scores.get() + j * queries.padded;
        for (std::int64_t i = 0; i < queries.padded; ++i) p[i] = keeps(draws[4 * i], threshold) ? p[i] * kept : T(0);
      });
    }
    // out = correction out + P v
    for (std::int64_t i = 0; first > 0 && i < queries.count; ++i) {
      T* const row = s.out.get() + i * padded_width;
      for (std::int64_t c = 0; c < padded_width; ++c) row[c] *= s.correction[i];
    }
    const WholeRows<const T> values = whole_rows(v, queries.segment.k_begin + keys.first, keys.count, s.v.get());
    multiply(first == 0 ? Sums::fresh : Sums::added, SmallProduct<T>{.m = queries.count,
                                                                     .n = padded_width,
                                                                     .k = keys.count,
                                                                     .a = s.scores.get(),
                                                                     .a_row = 1,
                                                                     .a_k = queries.padded,
                                                                     .b = values.data,
                                                                     .b_ld = values.ld,
                                                                     .c = s.out.get(),
                                                                     .c_ld = padded_width});
  }

  // Store.
  finish_sums(s, queries);
  const auto out = head_of<T>(args.out, head, args.heads);
  for (std::int64_t i = 0; i < queries.count; ++i) {
    const T scale = s.sum[i];
    const T* const from = s.out.get() + i * padded_width;
    T* const to = out.row(queries.row() + i);
    for (std::int64_t c = 0; c < out.width; ++c) to[c] = from[c] * scale;
    if (args.log_sum_exp) args.log_sum_exp.row<T>(queries.row() + i)[head] = s.log_sum_exp[i];
  }
}

void attention(CpuQueue& queue, const AttentionArgs& args) {
  const std::vector<Segment> segments = used_segments(args.segments, args.q.rows, args.k.rows, args.sequence);
  std::vector<QueryTile> tiles;
  for (const Segment& segment : segments) {
    for (std::int64_t first = 0; first < segment.q_length; first += kTile) tiles.push_back(query_tile(segment, first));
  }
  with_cpu_float(args.q.dtype, "attention", [&]<class T>(T) {
    std::vector<ForwardScratch<T>> scratch;
    for (int thread = 0; thread < queue.threads->size(); ++thread) scratch.emplace_back(args.q.cols / args.heads);
    queue.threads->parallel_for(static_cast<std::int64_t>(tiles.size()) * args.heads, [&](std::int64_t index, int thread) {
      attend(args, tiles[static_cast<std::size_t>(index / args.heads)], index % args.heads, scratch[static_cast<std::size_t>(thread)]);
    });
    zero_rows_outside<T>(args.out, segments, &Segment::q_begin, &Segment::q_length);
    if (args.log_sum_exp) zero_rows_outside<T>(args.log_sum_exp, segments, &Segment::q_begin, &Segment::q_length);
  });
}

// Backward.

template <class T>
struct BackwardScratch {
  BackwardScratch(std::int64_t width, std::int64_t longest)
      : q_t(buffer<T>(width * kTile)),
        dout_t(buffer<T>(width * kTile)),
        q(buffer<T>(kTile * round_up(width, kLanes))),
        dout(buffer<T>(kTile * round_up(width, kLanes))),
        k(buffer<T>(kTile * round_up(width, kLanes))),
        p(buffer<T>(kTile * kTile)),
        ds(buffer<T>(kTile * kTile)),
        log_sum_exp(buffer<T>(kTile)),
        delta(buffer<T>(kTile)),
        dq(buffer<T>(kTile * round_up(width, kLanes))),
        dk(buffer<T>(longest * round_up(width, kLanes))),
        dv(buffer<T>(longest * round_up(width, kLanes))) {}

  Buffer<T> q_t, dout_t;  // [width, queries]
  Buffer<T> q, dout, k;   // [queries or keys, padded width]
  Buffer<T> p, ds;        // [keys, queries]
  Buffer<T> log_sum_exp, delta;
  Buffer<T> dq;      // [queries, padded width]
  Buffer<T> dk, dv;  // [the segment's keys, padded width]
};

// p = exp(p - log_sum_exp)
template <class T>
void recompute_probabilities(BackwardScratch<T>& s, const QueryTile& queries, std::int64_t keys) {
  const VectorTag<T> d;
  for (std::int64_t i = 0; i < queries.padded; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto log_sum_exp = hn::Load(d, s.log_sum_exp.get() + i);
    for (T* p = s.p.get() + i; p < s.p.get() + keys * queries.padded; p += queries.padded) {
      hn::Store(exp_of(d, hn::Sub(hn::Load(d, p), log_sum_exp)), d, p);
    }
  }
}

// Where a head's gradients of keys go, and whether they are the first ones there.
template <class T>
struct KeyGradients {
  WholeRows<T> dk, dv;
  Sums sums = Sums::fresh;
};

template <class T>
void attend_backward(const AttentionBackwardArgs& args, const Segment& segment, std::int64_t head, const KeyGradients<T>& gradients,
                     BackwardScratch<T>& s) {
  const std::int64_t kv_heads = kv_heads_of(args), shared = head / heads_sharing(args);
  const auto q = head_of<T>(args.q, head, args.heads), k = head_of<T>(args.k, shared, kv_heads), v = head_of<T>(args.v, shared, kv_heads);
  const auto out = head_of<T>(args.out, head, args.heads), dout = head_of<T>(args.dout, head, args.heads);
  const auto dq = head_of<T>(args.dq, head, args.heads);
  const std::int64_t width = q.width, padded_width = round_up(width, kLanes);
  const T scale = score_scale<T>(args);
  const std::uint32_t threshold = keep_threshold(args.dropout.probability);
  const T kept = static_cast<T>(1.0 / (1.0 - args.dropout.probability));

  prefetch_rows(k, segment, key_tile(segment, 0));
  prefetch_rows(v, segment, key_tile(segment, 0));
  const auto& [dk_rows, dv_rows, sums] = gradients;
  if (sums == Sums::fresh) {
    // The first queries' tiles of keys are sums of their own, the later ones are added to.
    const std::int64_t seen_first = segment.q_length == 0 ? 0 : round_up(query_tile(segment, 0).visible_keys(args.mask), kTile);
    zero_rows(dk_rows, seen_first, segment.k_length, padded_width);
    zero_rows(dv_rows, seen_first, segment.k_length, padded_width);
  }

  for (std::int64_t first_query = 0; first_query < segment.q_length; first_query += kTile) {
    // Load.
    const QueryTile queries = query_tile(segment, first_query);
    const WholeRows<const T> q_rows = whole_rows(q, queries.row(), queries.count, s.q.get());
    const WholeRows<const T> dout_rows = whole_rows(dout, queries.row(), queries.count, s.dout.get());
    load_transposed(q, queries, scale, s.q_t.get());
    load_transposed(dout, queries, T(1), s.dout_t.get());
    std::fill_n(s.log_sum_exp.get(), queries.padded, T(0));
    std::fill_n(s.delta.get(), queries.padded, T(0));
    for (std::int64_t i = 0; i < queries.count; ++i) {
      const T* a = out.row(queries.row() + i);
      const T* b = dout.row(queries.row() + i);
      s.delta[i] = sum_of<T>(width, [=](std::int64_t c) { return a[c] * b[c]; });
      s.log_sum_exp[i] = args.log_sum_exp.row<T>(queries.row() + i)[head];
    }
    const WholeRows<T> dq_rows = whole_rows(dq, queries.row(), s.dq.get());
    if (queries.visible_keys(args.mask) == 0) zero_rows(dq_rows, 0, queries.count, padded_width);

    for (std::int64_t first_key = 0; first_key < queries.visible_keys(args.mask); first_key += kTile) {
      const KeyTile keys = key_tile(segment, first_key);
      load_scores(k, queries, keys, args.mask, s.q_t.get(), s.p.get());
      recompute_probabilities(s, queries, keys.count);
      // dP^T = v dout^T
      multiply<Sums::fresh>(SmallProduct<T>{.m = keys.count,
                                            .n = queries.padded,
                                            .k = width,
                                            .a = v.row(segment.k_begin + keys.first),
                                            .a_row = v.ld,
                                            .a_k = 1,
                                            .b = s.dout_t.get(),
                                            .b_ld = queries.padded,
                                            .c = s.ds.get(),
                                            .c_ld = queries.padded});
      // dS = P (dP - delta), and the scores' scale with it; P after dropout.
      if (args.dropout.probability > 0.0) {
        for_key_draws(args.dropout, head, queries, keys, [&](std::int64_t j, const std::uint32_t* draws) {
          T* p = s.p.get() + j * queries.padded;
          T* ds = s.ds.get() + j * queries.padded;
          for (std::int64_t i = 0; i < queries.padded; ++i) {
            const T factor = keeps(draws[4 * i], threshold) ? kept : T(0);
            ds[i] = scale * p[i] * (ds[i] * factor - s.delta[i]);
            p[i] *= factor;
          }
        });
      } else {
        for (std::int64_t j = 0; j < keys.count; ++j) {
          const T* p = s.p.get() + j * queries.padded;
          T* ds = s.ds.get() + j * queries.padded;
          for (std::int64_t i = 0; i < queries.padded; ++i) ds[i] = scale * p[i] * (ds[i] - s.delta[i]);
        }
      }
      // dv += P^T dout;  dk += dS^T q
      SmallProduct<T> gradient{.m = keys.count, .n = padded_width, .k = queries.count, .a_row = queries.padded, .a_k = 1};
      gradient.a = s.p.get();
      gradient.b = dout_rows.data;
      gradient.b_ld = dout_rows.ld;
      gradient.c = dv_rows.data + keys.first * dv_rows.ld;
      gradient.c_ld = dv_rows.ld;
      multiply(first_query == 0 ? sums : Sums::added, gradient);
      gradient.a = s.ds.get();
      gradient.b = q_rows.data;
      gradient.b_ld = q_rows.ld;
      gradient.c = dk_rows.data + keys.first * dk_rows.ld;
      gradient.c_ld = dk_rows.ld;
      multiply(first_query == 0 ? sums : Sums::added, gradient);
      // dq += dS k
      const WholeRows<const T> k_rows = whole_rows(k, segment.k_begin + keys.first, keys.count, s.k.get());
      multiply(first_key == 0 ? Sums::fresh : Sums::added, SmallProduct<T>{.m = queries.count,
                                                                           .n = padded_width,
                                                                           .k = keys.count,
                                                                           .a = s.ds.get(),
                                                                           .a_row = 1,
                                                                           .a_k = queries.padded,
                                                                           .b = k_rows.data,
                                                                           .b_ld = k_rows.ld,
                                                                           .c = dq_rows.data,
                                                                           .c_ld = dq_rows.ld});
    }
    store_rows(dq_rows, dq, queries.row(), queries.count);
  }
}

// One head of the gradients of keys and values, from the heads of queries that it is a sum over.
template <class T>
void attend_backward(const AttentionBackwardArgs& args, const Segment& segment, std::int64_t of_keys, BackwardScratch<T>& s) {
  const std::int64_t gradient_heads = args.dk.cols / (args.q.cols / args.heads), parts = args.heads / gradient_heads;
  const auto dk = head_of<T>(args.dk, of_keys, gradient_heads), dv = head_of<T>(args.dv, of_keys, gradient_heads);
  KeyGradients<T> gradients{.dk = whole_rows(dk, segment.k_begin, s.dk.get()), .dv = whole_rows(dv, segment.k_begin, s.dv.get())};
  for (std::int64_t part = 0; part < parts; ++part, gradients.sums = Sums::added) {
    attend_backward(args, segment, of_keys * parts + part, gradients, s);
  }
  store_rows(gradients.dk, dk, segment.k_begin, segment.k_length);
  store_rows(gradients.dv, dv, segment.k_begin, segment.k_length);
}

void attention_backward(CpuQueue& queue, const AttentionBackwardArgs& args) {
  const std::vector<Segment> segments = used_segments(args.segments, args.q.rows, args.k.rows, args.sequence);
  std::int64_t longest = 1;
  for (const Segment& segment : segments) longest = std::max(longest, segment.k_length);
  with_cpu_float(args.q.dtype, "attention_backward", [&]<class T>(T) {
    std::vector<BackwardScratch<T>> scratch;
    for (int thread = 0; thread < queue.threads->size(); ++thread) scratch.emplace_back(args.q.cols / args.heads, longest);
    const std::int64_t gradient_heads = args.dk.cols / (args.q.cols / args.heads);
    queue.threads->parallel_for(static_cast<std::int64_t>(segments.size()) * gradient_heads, [&](std::int64_t index, int thread) {
      attend_backward(args, segments[static_cast<std::size_t>(index / gradient_heads)], index % gradient_heads,
                      scratch[static_cast<std::size_t>(thread)]);
    });
    zero_rows_outside<T>(args.dq, segments, &Segment::q_begin, &Segment::q_length);
    zero_rows_outside<T>(args.dk, segments, &Segment::k_begin, &Segment::k_length);
    zero_rows_outside<T>(args.dv, segments, &Segment::k_begin, &Segment::k_length);
  });
}

}  // namespace
}  // namespace tilewave::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tilewave {

HWY_EXPORT(attention);
HWY_EXPORT(attention_backward);

void run(CpuQueue& queue, const AttentionArgs& args) {
  check(args);
  HWY_DYNAMIC_DISPATCH(attention)(queue, args);
}

void run(CpuQueue& queue, const AttentionBackwardArgs& args) {
  check(args);
  HWY_DYNAMIC_DISPATCH(attention_backward)(queue, args);
}

}  // namespace tilewave
#endif
