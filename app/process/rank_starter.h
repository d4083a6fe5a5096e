// Starts a command once for each rank on this machine, and waits for all of them: those of CPUs by mpirun, those of GPUs as torchrun would.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewave {

struct RankStart {
  std::int64_t count = 1;
  bool on_gpus = false;
  std::vector<std::string> arguments;  // behind the program's own name
};

// This program with these arguments, as so many processes. Returns the exit code of the first that failed, once all have ended: the others
// are stopped. 1 where it was ended by a signal, which is said. Error where there is no mpirun. A signal that this process is sent goes to
// all of them. An mpirun that stands still although all that it has started has ended is ended too.
int start_ranks(const RankStart& start);

// The words behind the program's own in this process's command line.
std::vector<std::string> own_arguments();

}  // namespace tilewave
