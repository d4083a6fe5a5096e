#include "framework/data/held_out.h"

#include <algorithm>
#include <iterator>

namespace tilewave {

std::vector<std::uint64_t> least_hashes(std::vector<std::uint64_t> hashes, std::int64_t most) {
  std::sort(hashes.begin(), hashes.end());
  std::vector<std::uint64_t> least;
  std::uint64_t rarest = 0;
  std::int64_t examples = 0, copies_of_rarest = std::ssize(hashes) + 1;
  for (auto first = hashes.begin(); first != hashes.end() && examples < most;) {
    const auto last = std::upper_bound(first, hashes.end(), *first);
    const std::int64_t copies = last - first;
    if (copies < copies_of_rarest) {
      rarest = *first;
      copies_of_rarest = copies;
    }
    if (examples + copies <= most) {
      least.push_back(*first);
      examples += copies;
    }
    first = last;
  }
  return least.empty() ? std::vector<std::uint64_t>{rarest} : least;
}

}  // namespace tilewave
