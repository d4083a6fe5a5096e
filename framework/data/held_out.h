// What is held out of the examples that training sees, where nothing was named for it: those whose seeded hashes are the least. A hash is
// of what an example holds, so that copies of one stay on one side and the order of the examples counts for nothing.
#pragma once

#include <cstdint>
#include <vector>

namespace tilewave {

// The hashes to hold out, ascending: the least, all copies of an example with it, at most `most` examples in all; else the rarest.
std::vector<std::uint64_t> least_hashes(std::vector<std::uint64_t> hashes, std::int64_t most);

}  // namespace tilewave
