// Cases that put every pair of levels of every two factors together at least once: far fewer than all combinations.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace tilewave {

// Case c takes level [c][f] of factor f, which has levels[f] of them. Greedy: the first pair not met yet, and the best of a
// few seeded completions.
inline std::vector<std::vector<std::size_t>> all_pairs(const std::vector<std::size_t>& levels, std::mt19937& random) {
  const std::size_t factors = levels.size();
  std::vector<std::size_t> first(factors + 1, 0);  // of a factor's levels in one long list
  for (std::size_t f = 0; f < factors; ++f) first[f + 1] = first[f] + levels[f];
  std::vector<std::vector<char>> met(first[factors], std::vector<char>(first[factors], 0));

  const auto gain = [&](const std::vector<std::size_t>& one) {
    int pairs = 0;
    for (std::size_t f = 0; f < factors; ++f) {
      for (std::size_t g = f + 1; g < factors; ++g) pairs += met[first[f] + one[f]][first[g] + one[g]] == 0 ? 1 : 0;
    }
    return pairs;
  };
  std::vector<std::vector<std::size_t>> cases;
  for (std::size_t f = 0; f < factors; ++f) {
    for (std::size_t g = f + 1; g < factors; ++g) {
      for (std::size_t pair = 0; pair < levels[f] * levels[g]; ++pair) {
        const std::size_t level_f = pair % levels[f], level_g = pair / levels[f];
        if (met[first[f] + level_f][first[g] + level_g] != 0) continue;
        std::vector<std::size_t> best;
        for (int attempt = 0; attempt < 16; ++attempt) {
          std::vector<std::size_t> one(factors);
          for (std::size_t h = 0; h < factors; ++h) one[h] = random() % levels[h];
          one[f] = level_f;
          one[g] = level_g;
          if (best.empty() || gain(one) > gain(best)) best = one;
        }
        for (std::size_t x = 0; x < factors; ++x) {
          for (std::size_t y = x + 1; y < factors; ++y) met[first[x] + best[x]][first[y] + best[y]] = 1;
        }
        cases.push_back(best);
      }
    }
  }
  return cases;
}

}  // namespace tilewave
