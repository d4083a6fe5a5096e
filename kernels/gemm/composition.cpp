// Names of compositions, and what their rows were called before.
#include "kernels/gemm/composition.h"

#include "kernels/core/error.h"

namespace tilewave {

std::string_view name_of(GemmSchedule schedule) {
  switch (schedule) {
    case GemmSchedule::data_parallel:
      return "data_parallel";
    case GemmSchedule::ping_pong:
      return "ping_pong";
    case GemmSchedule::sliced_k:
      return "sliced_k";
    case GemmSchedule::paired_k:
      return "paired_k";
    case GemmSchedule::split_k:
      return "split_k";
    case GemmSchedule::cluster:
      return "cluster";
    case GemmSchedule::stream_k:
      return "stream_k";
  }
  throw Error("there is no such schedule.");
}

std::string_view name_of(EpilogueTiming epilogue) { return epilogue == EpilogueTiming::deferred ? "deferred" : "immediate"; }

std::string name_of(const GemmComposition& composition) {
  const auto& [kernel, schedule, swap_ab, epilogue] = composition;
  std::string name(kernel);
  if (schedule != GemmSchedule::data_parallel && name_of(schedule) != kernel) name += concat('/', name_of(schedule));
  if (swap_ab) name += "/swap_ab";
  if (epilogue == EpilogueTiming::deferred) name += "/deferred";
  return name;
}

std::string_view present_name(std::string_view name) {
  struct Renamed {
    std::string_view then, now;
  };
  constexpr Renamed kRenamed[] = {
      {"persistent_cooperative", "persistent"},
      {"persistent_late_store", "persistent/deferred"},
      {"persistent_late_derivative", "persistent/deferred"},
      {"persistent_ping_pong", "persistent/ping_pong"},
      {"transposed_ping_pong", "persistent/ping_pong/swap_ab"},
      {"transposed_tiles", "one_wave/swap_ab"},
      {"sliced_k", "one_wave/sliced_k"},
      {"paired_k", "one_wave/paired_k"},
      {"workspace_split_k", "split_k"},
      {"cluster_split_k", "split_k/cluster"},
      {"persistent_residues", "unaligned/deferred"},
      {"realigned_fragments", "unaligned"},
  };
  for (const Renamed& one : kRenamed) {
    if (one.then == name) return one.now;
  }
  return name;
}

}  // namespace tilewave
