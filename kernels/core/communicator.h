// Ranks that take one step together: one process each, with a GPU of its own or a share of a machine's CPUs. Between GPUs speaks NCCL,
// between CPUs MPI (OpenMPI 4 or 5); both are opened at run time and never shipped. What ranks do together are operations like others
// (kernels/ops/collective.h).
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kernels/core/queue.h"
#include "kernels/core/runtime_library.h"

namespace tilewave {

struct MpiRanks;   // private to kernels/cpu
struct NcclRanks;  // private to kernels/cuda

// A rank's place among others. One rank alone needs no library: collectives are then copies. One that joined NCCL all the same is not
// alone, so that what it launches, captures and times is what each of many does.
struct Communicator {
  int rank = 0, count = 1;
  std::shared_ptr<MpiRanks> mpi;    // of CPU queues
  std::shared_ptr<NcclRanks> nccl;  // of CUDA queues; goes after the graphs that have its collectives

  bool alone() const { return count == 1 && nccl == nullptr; }
};

// The libraries, as `tilewave devices` tells of them. Nothing is started.
FoundLibrary find_mpi();
FoundLibrary find_nccl();

// All processes that mpirun or srun started with this one; a process that nothing started is alone. The first call starts MPI, and all
// ranks make it. The process's end ends MPI too, but where an error took a communicator with it: then mpirun sees a process that left, and
// stops the others. Error where libmpi cannot be used.
Communicator join_mpi();

// NCCL's name for a group of ranks: rank 0 makes it, and every rank is given it.
using NcclId = std::array<std::byte, 128>;
NcclId make_nccl_id();
// Returns when all `count` ranks are there, each with a GPU of its own: this one with GPU number `device`, on which they speak in a stream
// of their own. A collective that is put into another one begins behind what that holds, and what comes into it later waits.
Communicator join_nccl(int device, const NcclId& id, int rank, int count);
// The stream that ranks speak in, of join_nccl's alone: what is put there waits for no other stream, and none waits for it.
CudaQueue links_of(const Communicator& ranks);

// Every rank's bytes, by rank: what a host has to say, outside steps. All ranks call it, in the same order. Of a rank alone its own; a
// trace has none.
std::vector<std::string> exchange(Queue& queue, const Communicator& ranks, const std::string& said);

// What is put into `later` from now on begins when what `earlier` holds now is done. Between streams of one GPU an event, which a capture
// records as an edge; elsewhere queues are in order, and nothing happens.
void follow(Queue& later, Queue& earlier);
void follow(CudaQueue& later, CudaQueue& earlier);

// A place in a queue, for others to wait for when it holds more by then.
struct QueueMark {
  std::shared_ptr<void> event;  // of a GPU's stream; none where queues are in order
};
QueueMark mark_end(Queue& queue);
QueueMark mark_end(CudaQueue& queue);
// What is put into `later` from now on begins when what stands before the mark is done. A mark made under a capture is waited for under it.
void follow(Queue& later, const QueueMark& mark);
void follow(CudaQueue& later, const QueueMark& mark);

}  // namespace tilewave
