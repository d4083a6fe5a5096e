// Work on the host that falls into parts, shared out among threads that are started for it and end with it: for parts that take much
// longer than a start, which is some tens of microseconds.
#pragma once

#include <cstdint>
#include <functional>

namespace tilewave {

// So many threads that each has that much of the work, at least one, and no more than the machine runs at once.
std::int64_t threads_for(std::int64_t work, std::int64_t least_work);

// part(index) for every index below `parts`, on at most so many threads, the caller's included; fewer where the system has no more.
// Returns when all have returned. Of what they throw the least index's is thrown here.
void share_out(std::int64_t parts, std::int64_t threads, const std::function<void(std::int64_t index)>& part);

}  // namespace tilewave
