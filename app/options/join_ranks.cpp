#include "app/options/join_ranks.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "app/process/rank_starter.h"
#include "framework/distributed/exchange_values.h"

namespace tilewave {
namespace {

Communicator join_cpus(const RankEnvironment& started) {
  TW_CHECK_INPUT(started.starter == RankStarter::mpi, started.variable,
                 " was set as torchrun does it, and on CPUs ranks speak MPI: start them with mpirun, or with --ranks.");
  const Communicator ranks = join_mpi();
  TW_CHECK(ranks.count == started.count, started.variable, " says that ", started.count, " ranks were started, and MPI knows ", ranks.count,
           "; is the libmpi that `tilewave devices` names the one that mpirun belongs to?");
  return ranks;
}

// NCCL's id comes through MPI, or, as torchrun has no MPI, from NCCL's own meeting place at MASTER_PORT + 1.
Communicator join_gpus(const RankEnvironment& started) {
  if (started.starter == RankStarter::torchrun) {
    const std::string place = concat(started.address, ':', started.port + 1);
    setenv("NCCL_COMM_ID", place.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): before any thread
    return join_nccl(started.local_rank, make_nccl_id(), started.rank, started.count);
  }
  const Communicator hosts = join_cpus(started);
  Queue cpu = make_cpu_queue(1);
  const NcclId id = exchange_values(cpu, hosts, started.rank == 0 ? make_nccl_id() : NcclId{}).front();
  Communicator ranks = join_nccl(started.local_rank, id, started.rank, started.count);
  ranks.mpi = hosts.mpi;
  return ranks;
}

bool on_gpus(const DeviceOptions& device) {
  return device.device.starts_with("cuda") || (device.device == "auto" && !probe_cuda().usable.empty());
}

}  // namespace

JoinedRanks join_ranks(const RankEnvironment& started, DeviceOptions device) {
  if (started.count == 1) return {.ranks = {}, .device = std::move(device)};
  if (on_gpus(device)) {
    const std::int64_t here = std::ssize(probe_cuda().usable);
    TW_CHECK(started.local_count <= here, started.local_count, " ranks on this machine want a GPU each, and ",
             here == 1 ? "one is" : concat(here, " are"), " here; start fewer, or --device cpu.");
    TW_CHECK_INPUT(device.device == "auto" || device.device == "cuda", "--device ", device.device,
                   " names one GPU, and each rank takes its own; say --device cuda.");
    device.device = concat("cuda:", started.local_rank);
    return {.ranks = join_gpus(started), .device = device};
  }
  device.device = "cpu";
  if (device.threads == 0) device.threads = std::max(1, thread_count(make_cpu_queue()) / started.local_count);
  return {.ranks = join_cpus(started), .device = device};
}

Recipe for_ranks(Recipe recipe, const RankEnvironment& started) {
  TW_CHECK_INPUT(recipe.run.ranks == 1 || recipe.run.ranks == started.count, "run.ranks = ", recipe.run.ranks, ", and ", started.variable,
                 " says that ", started.count, " ranks were started; make them agree, or leave run.ranks out.");
  recipe.run.ranks = started.count;
  check_ranks(recipe);
  return recipe;
}

int start_ranks(std::int64_t count, const DeviceOptions& device) {
  return start_ranks({.count = count, .on_gpus = on_gpus(device), .arguments = own_arguments()});
}

}  // namespace tilewave
