// Signs of life: each rank writes a beat into a folder that all of them read, from a thread of its own, and looks for the others'. A rank
// that shows none for too long, since it was stopped or its machine is gone, ends this process with a sentence that names it: first the
// first one alive, the others where it says nothing. Who started the ranks then ends the rest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

namespace tilewave {

struct WatchedRanks {
  std::filesystem::path folder;  // made where it is not there
  int rank = 0, count = 1;
  double timeout_s = 15.0;
  std::function<void(const std::string& sentence)> lost;  // ends the process; called in the watch's thread
};

class RankWatch {
 public:
  explicit RankWatch(WatchedRanks ranks);
  // Orderly: the others miss nothing.
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

 private:
  void beat(std::uint64_t number) const;
  void look_for_others(const std::stop_token& stop);

  WatchedRanks ranks_;
  std::jthread thread_;  // last, so that it ends first
};

}  // namespace tilewave
