// Who started this process, and which of how many it is: what mpirun, srun and torchrun say in their variables.
#pragma once

#include <cstdint>
#include <string>

namespace tilewave {

enum class RankStarter : std::uint8_t { none, mpi, torchrun };

struct RankEnvironment {
  RankStarter starter = RankStarter::none;
  std::string variable;  // that told: "OMPI_COMM_WORLD_SIZE"
  int count = 1, rank = 0;
  int local_count = 1, local_rank = 0;  // on this machine
  std::string address;                  // torchrun's: of rank 0
  int port = 0;
};

// InputError where the variables contradict each other.
RankEnvironment rank_environment();

}  // namespace tilewave
