#include "framework/distributed/rank_environment.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr int kMaxPort = 65535;

std::optional<int> number(const char* variable) {
  const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): before any thread
  if (text == nullptr || *text == '\0') return {};
  int value = 0;
  const std::string_view all = text;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), value);
  TW_CHECK_INPUT(error == std::errc() && end == all.data() + all.size() && value >= 0, variable, " = ", all,
                 " in the environment is no number of ranks; unset it, or start the ranks again.");
  return value;
}

// The variables of one starter.
struct Variables {
  RankStarter starter;
  const char *count, *rank, *local_count, *local_rank;
};
constexpr std::array kStarters = {
    Variables{RankStarter::mpi, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    Variables{RankStarter::torchrun, "WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE", "LOCAL_RANK"},
    Variables{RankStarter::mpi, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_NTASKS_PER_NODE", "SLURM_LOCALID"}};

}  // namespace

RankEnvironment rank_environment() {
  for (const Variables& names : kStarters) {
    const std::optional<int> count = number(names.count), rank = number(names.rank);
    if (!count || !rank) continue;
    TW_CHECK_INPUT(*count >= 1 && *rank < *count, names.rank, " = ", *rank, " and ", names.count, " = ", *count,
                   " in the environment: a rank is one of 0 to ", *count - 1, "; start the ranks again.");
    RankEnvironment found{.starter = names.starter,
                          .variable = names.count,
                          .count = *count,
                          .rank = *rank,
                          .local_count = number(names.local_count).value_or(*count),
                          .local_rank = number(names.local_rank).value_or(*rank),
                          .address = {},
                          .port = 0};
    if (names.starter == RankStarter::torchrun) {
      const char* const address = std::getenv("MASTER_ADDR");  // NOLINT(concurrency-mt-unsafe): before any thread
      const std::optional<int> port = number("MASTER_PORT");
      TW_CHECK_INPUT(
          address != nullptr && port && *port > 0 && *port < kMaxPort,
          "WORLD_SIZE and RANK are set as torchrun does it, and MASTER_ADDR and MASTER_PORT are not; set them, or unset WORLD_SIZE.");
      found.address = address;
      found.port = *port;
    }
    if (found.count == 1) return {};  // one alone is no matter of its starter
    return found;
  }
  return {};
}

}  // namespace tilewave
