// A process among the ranks that it was started with, or the one that starts them: for every command that several processes can run.
#pragma once

#include <cstdint>

#include "app/options/command.h"
#include "framework/distributed/rank_environment.h"
#include "kernels/core/communicator.h"

namespace tilewave {

// This process among those that were started together, and the device that is its own.
struct JoinedRanks {
  Communicator ranks;
  DeviceOptions device;

  bool speaks() const { return ranks.rank == 0; }
};

// Returns when all ranks are there; at once for a process alone. Error where the library that ranks speak is not here, or fewer GPUs than
// ranks; InputError where the options name one GPU for all.
JoinedRanks join_ranks(const RankEnvironment& started, DeviceOptions device);

// The recipe, of the ranks that were started. InputError where it says another number, but where it leaves it at one, and where so many
// cannot take its steps together.
Recipe for_ranks(Recipe recipe, const RankEnvironment& started);

// This command once more, as so many ranks on this machine; its exit code (app/process/rank_starter.h).
int start_ranks(std::int64_t count, const DeviceOptions& device);

}  // namespace tilewave
