// What attention's tests share on every device: packed problems of awkward sizes, and the definition in double: one full row of
// probabilities a query, and the chain rule through it.
#pragma once

#include "kernels/math/random.h"
#include "kernels/ops/attention.h"
#include "tests/kernels/support.h"

namespace tilewave::testing_support::attention {

struct Segment {
  std::int32_t q_begin, q_length, k_begin, k_length;
};

struct Case {
  const char* name;
  std::int64_t q_rows, k_rows, heads, width;
  std::vector<Segment> segments;
  Mask mask = Mask::none;
  double dropout = 0.0;
  std::int64_t sequence = 0;  // promised; 0: nothing is
  double scale = 0.0;         // of the scores; 0: 1 / sqrt(width)
  std::int64_t kv_heads = 0;  // of keys and values; 0: heads
};

// Sizes around the tile's 64, the vectors' 32 and 16, and 1; widths off every multiple.
inline const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"one_token", 1, 1, 1, 1, {{0, 1, 0, 1}}},
      {"packed_self", 61, 61, 4, 32, {{0, 16, 0, 16}, {16, 24, 16, 24}, {40, 17, 40, 17}, {0, 0, 0, 0}}},
      {"packed_causal", 61, 61, 3, 5, {{0, 16, 0, 16}, {16, 24, 16, 24}, {40, 21, 40, 21}}, Mask::causal},
      {"cross", 50, 90, 2, 7, {{0, 13, 20, 33}, {20, 29, 60, 3}, {13, 7, 0, 20}}},
      {"many_tiles", 193, 193, 1, 33, {{1, 190, 2, 191}}},
      {"many_tiles_causal", 193, 193, 2, 16, {{0, 129, 0, 129}, {129, 64, 129, 64}}, Mask::causal},
      {"decoding", 3, 100, 2, 31, {{0, 1, 0, 63}, {1, 2, 63, 37}}, Mask::causal},
      {"causal_with_blind_queries", 20, 9, 2, 8, {{0, 12, 0, 4}, {12, 8, 4, 5}}, Mask::causal},
      {"empty_keys_and_empty_queries", 12, 12, 1, 4, {{0, 5, 0, 0}, {5, 0, 0, 6}, {5, 6, 6, 5}}},
      {"scaled", 70, 75, 2, 9, {{0, 30, 1, 40}, {31, 39, 42, 33}}, Mask::causal, 0.0, 0, 0.05},
      {"dropout", 70, 75, 2, 9, {{0, 30, 1, 40}, {31, 39, 42, 33}}, Mask::none, 0.3},
      {"dropout_causal", 140, 140, 2, 16, {{1, 70, 2, 70}, {72, 66, 73, 66}}, Mask::causal, 0.1},
  };
  return all;
}

// Heads of queries that share heads of keys and values, for heads of these widths: one for all, two, four; more rows than are taken whole.
inline std::vector<Case> shared_cases(const std::vector<std::int64_t>& widths) {
  std::vector<Case> all;
  for (const std::int64_t width : widths) {
    const std::vector<Segment> self = {{1, 9, 1, 9}, {10, 66, 10, 66}, {0, 0, 0, 0}, {76, 63, 76, 63}};
    const std::vector<Segment> cross = {{0, 70, 1, 90}, {71, 79, 92, 111}};
    all.push_back({"shared_by_all", 140, 140, 3, width, self, Mask::none, 0.0, 0, 0.0, 1});
    all.push_back({"shared_by_two", 140, 140, 4, width, self, Mask::causal, 0.0, 0, 0.0, 2});
    all.push_back({"shared_by_three_dropout", 150, 203, 6, width, cross, Mask::none, 0.3, 0, 0.2, 2});
    all.push_back(
        {"shared_cached_keys", 6, 400, 8, width, {{0, 2, 0, 66}, {2, 2, 128, 66}, {4, 2, 256, 66}}, Mask::causal, 0.0, 0, 0.0, 2});
    all.push_back({"shared_blind_queries", 200, 90, 2, width, {{0, 160, 0, 40}, {160, 40, 40, 50}}, Mask::causal, 0.0, 0, 0.0, 1});
  }
  return all;
}

inline StepState step_state() { return {.step = 7, .seed = 1234, .place = {.first_site = 13, .first_target_row = 8}}; }

template <class T>
struct Problem {
  explicit Problem(const Case& c) : shape(c), segments(static_cast<std::int64_t>(c.segments.size()), 4) {
    Random random(17);
    q = Matrix<T>::uniform(c.q_rows, c.heads * c.width, random, -2.0, 2.0);
    const std::int64_t key_columns = (c.kv_heads > 0 ? c.kv_heads : c.heads) * c.width;
    k = Matrix<T>::uniform(c.k_rows, key_columns, random, -2.0, 2.0);
    v = Matrix<T>::uniform(c.k_rows, key_columns, random);
    dout = Matrix<T>::uniform(c.q_rows, c.heads * c.width, random);
    for (std::size_t s = 0; s < c.segments.size(); ++s)
      std::memcpy(&segments(static_cast<std::int64_t>(s), 0), &c.segments[s], sizeof(Segment));
  }

  Case shape;
  Matrix<std::int32_t> segments;
  Matrix<T> q{0, 0}, k{0, 0}, v{0, 0}, dout{0, 0};
  StepState state = step_state();
};

// The same with a head of keys and values for each head of queries.
template <class T>
Problem<T> repeated(const Problem<T>& shared) {
  Problem<T> all = shared;
  const std::int64_t width = shared.shape.width, sharing = shared.shape.heads / shared.shape.kv_heads;
  const auto spread = [&](const Matrix<T>& of) {
    Matrix<T> result(of.rows(), of.cols() * sharing);
    for (std::int64_t r = 0; r < result.rows(); ++r) {
      for (std::int64_t c = 0; c < result.cols(); ++c) result(r, c) = of(r, c / width / sharing * width + c % width);
    }
    return result;
  };
  all.shape.kv_heads = 0;
  all.k = spread(shared.k);
  all.v = spread(shared.v);
  return all;
}

// Of gradients of each head of queries the sums over those that share a head of keys.
template <class T>
std::vector<double> summed_heads(const Matrix<T>& parts, const Case& shape) {
  const std::int64_t width = shape.width, sharing = shape.heads / shape.kv_heads, cols = shape.kv_heads * width;
  std::vector<double> sums(static_cast<std::size_t>(parts.rows() * cols), 0.0);
  for (std::int64_t r = 0; r < parts.rows(); ++r) {
    for (std::int64_t c = 0; c < parts.cols(); ++c) {
      sums[static_cast<std::size_t>(r * cols + c / width / sharing * width + c % width)] += to_double(parts(r, c));
    }
  }
  return sums;
}

struct Reference {
  std::vector<double> out, log_sum_exp, dq, dk, dv;
};

template <class T>
Reference reference(const Problem<T>& p) {
  const std::int64_t heads = p.shape.heads, width = p.shape.width, cols = heads * width;
  const double scale = p.shape.scale > 0.0 ? p.shape.scale : 1.0 / std::sqrt(static_cast<double>(width));
  Reference result;
  result.out.assign(static_cast<std::size_t>(p.q.rows() * cols), 0.0);
  result.log_sum_exp.assign(static_cast<std::size_t>(p.q.rows() * heads), 0.0);
  result.dq = result.out;
  result.dk.assign(static_cast<std::size_t>(p.k.rows() * cols), 0.0);
  result.dv = result.dk;
  for (const Segment& segment : p.shape.segments) {
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t i = 0; i < segment.q_length; ++i) {
        const std::int64_t row = segment.q_begin + i;
        const std::int64_t seen =
            p.shape.mask == Mask::none ? segment.k_length : std::max<std::int64_t>(0, i + 1 + segment.k_length - segment.q_length);
        if (seen == 0) continue;
        const auto at = [&](const Matrix<T>& m, std::int64_t r, std::int64_t c) { return to_double(m(r, head * width + c)); };
        const auto index = [&](std::int64_t r, std::int64_t c) { return static_cast<std::size_t>(r * cols + head * width + c); };
        std::vector<double> probability(static_cast<std::size_t>(seen)), keep(probability.size(), 1.0);
        double sum = 0.0;
        for (std::int64_t j = 0; j < seen; ++j) {
          double score = 0.0;
          for (std::int64_t c = 0; c < width; ++c) score += at(p.q, row, c) * at(p.k, segment.k_begin + j, c);
          sum += probability[static_cast<std::size_t>(j)] = std::exp(score * scale);
          if (p.shape.dropout > 0.0) {
            const std::int64_t key = segment.k_begin + j;
            const auto draws = dropout_draws(p.state.seed, p.state.step, p.state.place.first_site + 5, static_cast<std::uint32_t>(head),
                                             row + p.state.place.first_target_row, (key + p.state.place.first_target_row) / 4);
            const bool kept = draws[static_cast<std::size_t>(key % 4)] >= p.shape.dropout * 4294967296.0;
            keep[static_cast<std::size_t>(j)] = kept ? 1.0 / (1.0 - p.shape.dropout) : 0.0;
          }
        }
        result.log_sum_exp[static_cast<std::size_t>(row * heads + head)] = std::log(sum);
        double mean = 0.0;  // of dP under P
        std::vector<double> d_probability(probability.size(), 0.0);
        for (std::int64_t j = 0; j < seen; ++j) {
          const auto at_j = static_cast<std::size_t>(j);
          probability[at_j] /= sum;
          for (std::int64_t c = 0; c < width; ++c) {
            const double value = at(p.v, segment.k_begin + j, c), gradient = at(p.dout, row, c);
            result.out[index(row, c)] += probability[at_j] * keep[at_j] * value;
            result.dv[index(segment.k_begin + j, c)] += probability[at_j] * keep[at_j] * gradient;
            d_probability[at_j] += keep[at_j] * value * gradient;
          }
          mean += probability[at_j] * d_probability[at_j];
        }
        for (std::int64_t j = 0; j < seen; ++j) {
          const double d_score = probability[static_cast<std::size_t>(j)] * (d_probability[static_cast<std::size_t>(j)] - mean) * scale;
          for (std::int64_t c = 0; c < width; ++c) {
            result.dq[index(row, c)] += d_score * at(p.k, segment.k_begin + j, c);
            result.dk[index(segment.k_begin + j, c)] += d_score * at(p.q, row, c);
          }
        }
      }
    }
  }
  return result;
}

}  // namespace tilewave::testing_support::attention
