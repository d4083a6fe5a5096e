// NCCL's ABI, as version 2 has it, declared as far as it is used, so that building needs no NCCL.
#include <cstring>
#include <exception>
#include <filesystem>

#include "kernels/core/runtime_library.h"
#include "kernels/cuda/core/nccl.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"

namespace tilewave {
namespace {

constexpr const char* kVariable = "TILEWAVE_NCCL_LIBRARY";
constexpr const char* kLibrary = "libnccl.so.2";
constexpr const char* kInWheels = "nvidia/nccl/lib/libnccl.so.2";  // of a folder of Python packages
constexpr const char* kInstall = "install PyPI's nvidia-nccl-cu13 or Debian's libnccl2";
constexpr int kLeast = 21300;  // 2.13: sums of bf16, graphs that have collectives, and words for an error

// NCCL writes 2.7.8 as 2708 and 2.10.3 as 21003.
std::string version_text(int code) {
  return code < 10000 ? concat("NCCL ", code / 1000, ".", code % 1000 / 100, ".", code % 100)
                      : concat("NCCL ", code / 10000, ".", code % 10000 / 100, ".", code % 100);
}

struct Opened {
  FoundLibrary found;
  void* library = nullptr;  // null: refused
};

void* look_for(FoundLibrary& found) {
  void* library = open_library_of_variable(found, kVariable, LibraryNames::hidden);
  if (library != nullptr || is_set(kVariable)) return library;
  library = open_library(found, kLibrary, LibraryNames::hidden);
  for (const std::filesystem::path& packages : python_packages()) {
    if (library != nullptr) break;
    library = open_library(found, (packages / kInWheels).string(), LibraryNames::hidden);
  }
  return library;
}

Opened open_nccl() {
  Opened opened;
  FoundLibrary& found = opened.found;
  void* const library = look_for(found);
  if (library == nullptr) {
    found.refused = is_set(kVariable)
                        ? concat("no library could be opened at ", found.looked.back(), "; name NCCL's ", kLibrary, ", or unset it.")
                        : concat("there is no NCCL here, which ranks on GPUs speak through; ", kInstall, ".");
    return opened;
  }
  void* const address = address_in(library, "ncclGetVersion");
  int code = 0;
  if (address == nullptr || reinterpret_cast<NcclStatus (*)(int*)>(address)(&code) != 0) {
    found.refused = concat("what was opened is no NCCL; ", kInstall, ".");
    return opened;
  }
  found.version = version_text(code);
  if (code < kLeast) {
    found.refused = concat(found.version, " is older than tilewave can use, which is ", version_text(kLeast), "; ", kInstall, ".");
    return opened;
  }
  found.path = path_of_library(address);
  opened.library = library;
  return opened;
}

NcclFunctions functions_of(void* library) {
  NcclFunctions nccl;
  take_function(library, "ncclGetVersion", nccl.get_version);
  take_function(library, "ncclGetUniqueId", nccl.get_unique_id);
  take_function(library, "ncclCommInitRank", nccl.comm_init_rank);
  take_function(library, "ncclCommDestroy", nccl.comm_destroy);
  take_function(library, "ncclCommAbort", nccl.comm_abort);
  take_function(library, "ncclCommGetAsyncError", nccl.comm_get_async_error);
  take_function(library, "ncclGetErrorString", nccl.get_error_string);
  take_function(library, "ncclGetLastError", nccl.get_last_error);
  take_function(library, "ncclAllReduce", nccl.all_reduce);
  take_function(library, "ncclReduceScatter", nccl.reduce_scatter);
  take_function(library, "ncclAllGather", nccl.all_gather);
  take_function(library, "ncclBroadcast", nccl.broadcast);
  return nccl;
}

const NcclFunctions& functions() {
  static const NcclFunctions nccl = [] {
    const Opened opened = open_nccl();
    TW_CHECK(opened.library != nullptr, "ranks on GPUs: ", opened.found.refused);
    return functions_of(opened.library);
  }();
  return nccl;
}

// What NCCL says of a call that failed, and what it last noted beside it.
[[noreturn]] void refuse(const NcclFunctions& nccl, NcclStatus status, std::string_view operation, void* communicator) {
  const char* const noted = nccl.get_last_error(communicator);
  const bool more = noted != nullptr && *noted != '\0';
  throw Error(concat("NCCL: ", operation, " failed: ", nccl.get_error_string(status), more ? concat(" (", noted, ")") : "",
                     "; NCCL_DEBUG=WARN says more."));
}

}  // namespace

FoundLibrary find_nccl() { return open_nccl().found; }

NcclId make_nccl_id() {
  const NcclFunctions& nccl = functions();
  NcclUniqueId own{};
  const NcclStatus status = nccl.get_unique_id(&own);
  if (status != 0) refuse(nccl, status, "an id of a group of ranks", nullptr);
  NcclId id;
  static_assert(sizeof(own.internal) == sizeof(id));
  std::memcpy(id.data(), own.internal, sizeof(own.internal));
  return id;
}

Communicator join_nccl(int device, const NcclId& id, int rank, int count) {
  TW_CHECK(count >= 1 && rank >= 0 && rank < count, "join_nccl: there is no rank ", rank, " of ", count, "; ranks are numbered from 0 on.");
  return {.rank = rank, .count = count, .mpi = nullptr, .nccl = std::make_shared<NcclRanks>(device, id, rank, count)};
}

CudaQueue links_of(const Communicator& ranks) {
  TW_CHECK(ranks.nccl != nullptr, "links_of: ranks that did not join by join_nccl() have no stream.");
  return ranks.nccl->links;
}

NcclRanks::NcclRanks(int device, const NcclId& id, int rank, int count) : nccl(functions()), links(make_cuda_queue(device)) {
  NcclUniqueId own{};
  std::memcpy(own.internal, id.data(), sizeof(own.internal));
  TW_CUDA(cudaSetDevice(device));
  expect(nccl.comm_init_rank(&communicator, count, own, rank), concat("joining as rank ", rank, " of ", count));
}

// Behind an error the others may never come, for whom a quiet end waits.
NcclRanks::~NcclRanks() {
  NcclStatus earlier = 0;
  const bool broken = nccl.comm_get_async_error(communicator, &earlier) != 0 || earlier != 0;
  if (broken || std::uncaught_exceptions() > 0 || cudaStreamSynchronize(stream_of(links)) != cudaSuccess) {
    cudaGetLastError();
    nccl.comm_abort(communicator);
    return;
  }
  nccl.comm_destroy(communicator);
}

void NcclRanks::expect(NcclStatus status, std::string_view operation) const {
  if (status != 0) refuse(nccl, status, operation, communicator);
}

void NcclRanks::expect_usable(const CudaQueue& queue, std::string_view operation) const {
  const int joined = device_of(links).index, given = device_of(queue).index;
  TW_CHECK(joined == given, operation, ": this rank joined with GPU number ", joined, ", and the queue is GPU number ", given, "'s.");
  NcclStatus earlier = 0;
  expect(nccl.comm_get_async_error(communicator, &earlier), operation);
  expect(earlier, concat("what came before ", operation));
}

int nccl_type(DType dtype) {
  switch (dtype) {
    case DType::i32:
      return 2;
    case DType::f16:
      return 6;
    case DType::f32:
      return 7;
    case DType::f64:
      return 8;
    case DType::bf16:
      return 9;
  }
  throw Error("NCCL has no such type.");
}

// An event without a time, which is cheaper to wait for. CUDA keeps one that was destroyed until its stream has passed it.
QueueMark mark_end(CudaQueue& queue) {
  cudaEvent_t event = nullptr;
  TW_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  QueueMark mark{.event = std::shared_ptr<void>(event, [](void* handle) { cudaEventDestroy(static_cast<cudaEvent_t>(handle)); })};
  TW_CUDA(cudaEventRecord(event, stream_of(queue)));
  return mark;
}

void follow(CudaQueue& later, const QueueMark& mark) {
  TW_CUDA(cudaStreamWaitEvent(stream_of(later), static_cast<cudaEvent_t>(mark.event.get()), 0));
}

void follow(CudaQueue& later, CudaQueue& earlier) {
  if (stream_of(later) != stream_of(earlier)) follow(later, mark_end(earlier));
}

}  // namespace tilewave
