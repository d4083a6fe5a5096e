#include "framework/distributed/rank_watch.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "framework/distributed/host_name.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

using Clock = std::chrono::steady_clock;

std::filesystem::path beat_file(const std::filesystem::path& folder, int rank) { return folder / std::to_string(rank); }

// What a rank said last: its beat's number, and who it is.
struct Beat {
  std::string number, process, host;  // empty: it has said nothing yet, or has left
};
Beat read_beat(const std::filesystem::path& file) {
  std::ifstream in(file);
  Beat beat;
  in >> beat.number >> beat.process >> std::ws;
  std::getline(in, beat.host);
  return beat;
}

// One of the others as it was last seen, by this machine's clock: theirs may differ.
struct Seen {
  Beat beat;
  Clock::time_point changed = Clock::now();
};

// What the first rank still alive has to say why before another does: who started the ranks ends them all as soon as one is gone.
constexpr std::chrono::seconds kFirstOnesTurn{2};

}  // namespace

RankWatch::RankWatch(WatchedRanks ranks) : ranks_(std::move(ranks)) {
  TW_CHECK(ranks_.timeout_s > 0.0 && ranks_.lost, "ranks are watched with a time and with what is to be done.");
  std::filesystem::create_directories(ranks_.folder);
  beat(0);
  thread_ = std::jthread([this](const std::stop_token& stop) { look_for_others(stop); });
}

RankWatch::~RankWatch() {
  thread_.request_stop();
  thread_.join();
  std::error_code ignored;
  std::filesystem::remove(beat_file(ranks_.folder, ranks_.rank), ignored);
  std::filesystem::remove(ranks_.folder, ignored);  // the last one's
}

// Renamed into place, so that nobody reads half of it. A disk that refuses it once is asked again with the next beat.
void RankWatch::beat(std::uint64_t number) const {
  const std::filesystem::path file = beat_file(ranks_.folder, ranks_.rank), staged = file.string() + ".new";
  std::ofstream(staged) << number << ' ' << ::getpid() << ' ' << host_name() << '\n';
  std::error_code ignored;
  std::filesystem::rename(staged, file, ignored);
}

void RankWatch::look_for_others(const std::stop_token& stop) {
  const auto timeout = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(ranks_.timeout_s));
  const auto pause = std::min<Clock::duration>(timeout / 8, std::chrono::seconds(1));
  std::vector<Seen> seen(static_cast<std::size_t>(ranks_.count));
  Clock::time_point looked = Clock::now();
  for (std::uint64_t number = 1; !stop.stop_requested(); ++number) {
    beat(number);
    const Clock::time_point now = Clock::now();
    const bool stood_still = now - looked > timeout / 2;  // this process did: the others have had no chance to be seen
    looked = now;
    int first_alive = ranks_.rank;
    for (int rank = 0; rank < ranks_.count; ++rank) {
      if (rank == ranks_.rank) continue;
      Seen& other = seen[static_cast<std::size_t>(rank)];
      Beat beat = read_beat(beat_file(ranks_.folder, rank));
      if (stood_still || beat.number != other.beat.number || beat.number.empty()) other = {.beat = std::move(beat), .changed = now};
      if (now - other.changed <= timeout) first_alive = std::min(first_alive, rank);
    }
    const Clock::duration patience = first_alive == ranks_.rank ? timeout : timeout + kFirstOnesTurn;
    for (int rank = 0; rank < ranks_.count; ++rank) {
      const Seen& other = seen[static_cast<std::size_t>(rank)];
      if (rank == ranks_.rank || now - other.changed <= patience) continue;
      return ranks_.lost(concat("rank ", rank, " of ", ranks_.count, " on ", other.beat.host, ", process ", other.beat.process,
                                ", has shown no sign of life for ", ranks_.timeout_s,
                                " s; the run ends here, and its last checkpoint stands."));
    }
    for (const Clock::time_point end = now + pause; Clock::now() < end && !stop.stop_requested();) {
      std::this_thread::sleep_for(std::min<Clock::duration>(pause, std::chrono::milliseconds(20)));
    }
  }
}

}  // namespace tilewave
