// Open MPI's ABI, as versions 4 and 5 have it: handles are addresses, those of what is predefined have names in the library. Declared here
// as far as it is used, so that building needs no MPI.
#include "kernels/cpu/core/mpi.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>

#include "kernels/core/communicator.h"
#include "kernels/core/element.h"
#include "kernels/core/runtime_library.h"

namespace tilewave {
namespace {

constexpr const char* kVariable = "TILEWAVE_MPI_LIBRARY";
constexpr const char* kOpenMpi = "libmpi.so.40";
constexpr const char* kMpich = "libmpi.so.12";  // of MPICH and what descends from it
constexpr const char* kInstall = "install Debian's libopenmpi3 and openmpi-bin";

using Handle = void*;
constexpr int kFunneled = 1, kSerialized = 2;       // MPI_THREAD_*
constexpr std::size_t kText = 8192;                 // any library's longest
void* const kInPlace = reinterpret_cast<void*>(1);  // MPI_IN_PLACE

struct Functions {
  int (*get_library_version)(char*, int*) = nullptr;
  int (*initialized)(int*) = nullptr;
  int (*finalized)(int*) = nullptr;
  int (*init_thread)(int*, char***, int, int*) = nullptr;
  int (*finalize)() = nullptr;
  int (*comm_dup)(Handle, Handle*) = nullptr;
  int (*comm_free)(Handle*) = nullptr;
  int (*comm_rank)(Handle, int*) = nullptr;
  int (*comm_size)(Handle, int*) = nullptr;
  int (*comm_set_errhandler)(Handle, Handle) = nullptr;
  int (*error_string)(int, char*, int*) = nullptr;
  int (*reduce)(const void*, void*, int, Handle, Handle, int, Handle) = nullptr;
  int (*reduce_scatter)(const void*, void*, const int*, Handle, Handle, Handle) = nullptr;
  int (*reduce_scatter_block)(const void*, void*, int, Handle, Handle, Handle) = nullptr;
  int (*gather)(const void*, int, Handle, void*, int, Handle, int, Handle) = nullptr;
  int (*all_gather)(const void*, int, Handle, void*, int, Handle, Handle) = nullptr;
  int (*all_gather_v)(const void*, int, Handle, void*, const int*, const int*, Handle, Handle) = nullptr;
  int (*broadcast)(void*, int, Handle, int, Handle) = nullptr;
  Handle world = nullptr, errors_return = nullptr, sum = nullptr, f32 = nullptr, f64 = nullptr, i32 = nullptr, u16 = nullptr,
         byte = nullptr;
};

Functions functions_of(void* library) {
  Functions mpi;
  take_function(library, "MPI_Get_library_version", mpi.get_library_version);
  take_function(library, "MPI_Initialized", mpi.initialized);
  take_function(library, "MPI_Finalized", mpi.finalized);
  take_function(library, "MPI_Init_thread", mpi.init_thread);
  take_function(library, "MPI_Finalize", mpi.finalize);
  take_function(library, "MPI_Comm_dup", mpi.comm_dup);
  take_function(library, "MPI_Comm_free", mpi.comm_free);
  take_function(library, "MPI_Comm_rank", mpi.comm_rank);
  take_function(library, "MPI_Comm_size", mpi.comm_size);
  take_function(library, "MPI_Comm_set_errhandler", mpi.comm_set_errhandler);
  take_function(library, "MPI_Error_string", mpi.error_string);
  take_function(library, "MPI_Reduce", mpi.reduce);
  take_function(library, "MPI_Reduce_scatter", mpi.reduce_scatter);
  take_function(library, "MPI_Reduce_scatter_block", mpi.reduce_scatter_block);
  take_function(library, "MPI_Gather", mpi.gather);
  take_function(library, "MPI_Allgather", mpi.all_gather);
  take_function(library, "MPI_Allgatherv", mpi.all_gather_v);
  take_function(library, "MPI_Bcast", mpi.broadcast);
  mpi.world = address_in(library, "ompi_mpi_comm_world");
  mpi.errors_return = address_in(library, "ompi_mpi_errors_return");
  mpi.sum = address_in(library, "ompi_mpi_op_sum");
  mpi.f32 = address_in(library, "ompi_mpi_float");
  mpi.f64 = address_in(library, "ompi_mpi_double");
  mpi.i32 = address_in(library, "ompi_mpi_int32_t");
  mpi.u16 = address_in(library, "ompi_mpi_uint16_t");
  mpi.byte = address_in(library, "ompi_mpi_byte");
  for (const Handle handle : {mpi.world, mpi.errors_return, mpi.sum, mpi.f32, mpi.f64, mpi.i32, mpi.u16, mpi.byte}) {
    TW_CHECK(handle != nullptr, "the MPI library that was opened lacks names that Open MPI 4 and 5 have; ", kInstall, ".");
  }
  return mpi;
}

// What a library says of itself, empty where it is no MPI.
std::string version_of(void* library) {
  void* const address = address_in(library, "MPI_Get_library_version");
  if (address == nullptr) return {};
  std::array<char, kText> text{};
  int length = 0;
  reinterpret_cast<int (*)(char*, int*)>(address)(text.data(), &length);
  return std::string(text.data(), static_cast<std::size_t>(std::clamp<int>(length, 0, kText)));
}

struct Opened {
  FoundLibrary found;
  void* library = nullptr;  // null: refused
};

Opened open_mpi() {
  Opened opened;
  FoundLibrary& found = opened.found;
  void* library = open_library_of_variable(found, kVariable, LibraryNames::shared);
  if (library == nullptr && is_set(kVariable)) {
    found.refused = concat("no library could be opened at ", found.looked.back(), "; name Open MPI's ", kOpenMpi, ", or unset it.");
    return opened;
  }
  if (library == nullptr) library = open_library(found, kOpenMpi, LibraryNames::shared);
  if (library == nullptr) library = open_library(found, kMpich, LibraryNames::hidden);  // to name it
  if (library == nullptr) {
    found.refused = concat("there is no Open MPI here, which ranks on CPUs speak through; ", kInstall, ".");
    return opened;
  }
  const MpiKind kind = mpi_kind(version_of(library));
  found.version = kind.name;
  found.refused = kind.refused;
  if (found.refused.empty()) {
    found.path = path_of_library(address_in(library, "MPI_Init_thread"));
    opened.library = library;
  }
  return opened;
}

// MPI in this process. It is started once and cannot be started again.
struct Process {
  Functions mpi;
  bool ours = false;    // to be ended by us: who called started it
  bool broken = false;  // an error took a communicator with it: the others may wait, and an end together never comes
  int living = 0;       // communicators

  Process();
  ~Process() {
    if (ours && !broken && living == 0) mpi.finalize();
  }
};

// An int for one call, and what MPI says where one fails.
void expect(int status, const Functions& mpi, const char* what) {
  if (status == 0) return;
  std::array<char, kText> text{};
  int length = 0;
  const bool known = mpi.error_string(status, text.data(), &length) == 0;
  throw Error(concat("MPI: ", what, " failed: ", known ? text.data() : concat("error ", status).c_str(), "."));
}

Process::Process() {
  const Opened opened = open_mpi();
  TW_CHECK(opened.library != nullptr, "ranks on CPUs: ", opened.found.refused);
  mpi = functions_of(opened.library);
  int begun = 0, ended = 0, level = 0;
  mpi.initialized(&begun);
  mpi.finalized(&ended);
  TW_CHECK(ended == 0, "MPI has already ended in this process, and cannot be started again; join ranks once, at its beginning.");
  if (begun != 0) return;
  TW_CHECK(mpi.init_thread(nullptr, nullptr, kSerialized, &level) == 0, "MPI could not be started; see what ", opened.found.version,
           " says above.");
  ours = true;
  TW_CHECK(level >= kFunneled, opened.found.version, " allows no threads beside its own; install one that was built with threads.");
  expect(mpi.comm_set_errhandler(mpi.world, mpi.errors_return), mpi, "MPI_Comm_set_errhandler");
}

Process& process() {
  static Process one;
  return one;
}

Handle type_of(const Functions& mpi, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return mpi.f32;
    case DType::f64:
      return mpi.f64;
    case DType::i32:
      return mpi.i32;
    case DType::bf16:
      return mpi.u16;  // its bits, which MPI carries
    case DType::f16:
      break;
  }
  throw Error(concat("MPI sums f32, f64, i32 and bf16, not ", name_of(dtype), "."));
}

// fn(first, how many) for pieces of at most `most`.
template <class Fn>
void in_pieces(std::int64_t count, std::int64_t most, const Fn& fn) {
  for (std::int64_t first = 0; first < count; first += most) fn(first, static_cast<int>(std::min(most, count - first)));
}

}  // namespace

MpiKind mpi_kind(std::string_view library_version) {
  constexpr std::string_view kName = "Open MPI v";
  const std::string_view first_line = library_version.substr(0, library_version.find_first_of("\n,"));
  const auto refuse = [](std::string name) {
    std::string sentence = concat("tilewave speaks Open MPI 4 and 5, whose libraries are called ", kOpenMpi, ", and not ", name, "; ",
                                  kInstall, ", and start ranks with its mpirun.");
    return MpiKind{.name = std::move(name), .refused = std::move(sentence)};
  };
  if (library_version.empty()) return {.name = {}, .refused = concat("what was opened is no MPI; ", kInstall, ".")};
  if (library_version.starts_with("MPICH Version:")) {
    const std::string_view number = first_line.substr(std::string_view("MPICH Version:").size());
    return refuse(concat("MPICH", number.find_first_not_of(" \t") == std::string_view::npos ? "" : " ",
                         number.substr(std::min(number.size(), number.find_first_not_of(" \t")))));
  }
  if (!library_version.starts_with(kName)) return refuse(std::string(first_line));
  const std::string_view number = first_line.substr(kName.size());
  int major = 0;
  std::from_chars(number.data(), number.data() + number.size(), major);
  std::string name = concat("Open MPI ", number);
  if (major != 4 && major != 5) return refuse(std::move(name));
  return {.name = std::move(name), .refused = {}};
}

FoundLibrary find_mpi() { return open_mpi().found; }

Communicator join_mpi() {
  auto ranks = std::make_shared<MpiRanks>();
  const int rank = ranks->rank, count = ranks->count;
  return {.rank = rank, .count = count, .mpi = std::move(ranks), .nccl = nullptr};
}

MpiRanks::MpiRanks() {
  const Functions& mpi = process().mpi;
  expect(mpi.comm_dup(mpi.world, &communicator_), mpi, "MPI_Comm_dup");
  expect(mpi.comm_set_errhandler(communicator_, mpi.errors_return), mpi, "MPI_Comm_set_errhandler");
  expect(mpi.comm_rank(communicator_, &rank), mpi, "MPI_Comm_rank");
  expect(mpi.comm_size(communicator_, &count), mpi, "MPI_Comm_size");
  ++process().living;
}

MpiRanks::~MpiRanks() {
  Process& own = process();
  --own.living;
  if (std::uncaught_exceptions() > 0) own.broken = true;
  if (!own.broken) own.mpi.comm_free(&communicator_);
}

std::byte* MpiRanks::scratch(std::int64_t bytes) {
  if (scratch_.size() < static_cast<std::size_t>(bytes)) scratch_.resize(static_cast<std::size_t>(bytes));
  return scratch_.data();
}

// MPI knows no bf16: what all ranks have of some elements comes to one of them, which adds it up in their order. y: [elements], the root's.
void MpiRanks::sum_bf16(const bf16* x, bf16* y, int elements, int root) {
  constexpr int kPiece = 1024;
  const Functions& mpi = process().mpi;
  const std::int64_t bytes = static_cast<std::int64_t>(elements) * size_of(DType::bf16);
  std::byte* const all = rank == root ? scratch(std::max<std::int64_t>(bytes, 1) * count) : nullptr;
  expect(mpi.gather(x, elements, mpi.u16, all, elements, mpi.u16, root, communicator_), mpi, "the sum of bf16");
  if (rank != root) return;
  std::array<float, kPiece> sums{};
  for (int first = 0; first < elements; first += kPiece) {
    const int some = std::min(kPiece, elements - first);
    std::fill_n(sums.begin(), some, 0.0F);
    for (int r = 0; r < count; ++r) {
      const bf16* const theirs = reinterpret_cast<const bf16*>(all + r * bytes) + first;
      for (int i = 0; i < some; ++i) sums[static_cast<std::size_t>(i)] += static_cast<float>(theirs[i]);
    }
    std::transform(sums.begin(), sums.begin() + some, y + first, converted<bf16, float>);
  }
}

// Each rank sums a share, and all take the shares: MPI_Allreduce may sum the same number on two ranks in two orders.
void MpiRanks::sum_piece(std::byte* x, int elements, DType dtype) {
  const Functions& mpi = process().mpi;
  std::vector<int> shares(static_cast<std::size_t>(count)), begins(shares.size());
  for (int r = 0; r < count; ++r) shares[static_cast<std::size_t>(r)] = elements / count + (r < elements % count ? 1 : 0);
  std::exclusive_scan(shares.begin(), shares.end(), begins.begin(), 0);
  const int share = shares[static_cast<std::size_t>(rank)];
  if (dtype == DType::bf16) {
    auto* const numbers = reinterpret_cast<bf16*>(x);
    for (int r = 0; r < count; ++r) {
      bf16* const of_rank = numbers + begins[static_cast<std::size_t>(r)];
      sum_bf16(of_rank, of_rank, shares[static_cast<std::size_t>(r)], r);
    }
    expect(mpi.all_gather_v(kInPlace, 0, mpi.u16, x, shares.data(), begins.data(), mpi.u16, communicator_), mpi, "all_reduce");
    return;
  }
  std::byte* const own = scratch(std::max<std::int64_t>(share, 1) * size_of(dtype));
  const Handle type = type_of(mpi, dtype);
  expect(mpi.reduce_scatter(x, own, shares.data(), type, mpi.sum, communicator_), mpi, "all_reduce");
  expect(mpi.all_gather_v(own, share, type, x, shares.data(), begins.data(), type, communicator_), mpi, "all_reduce");
}

void MpiRanks::all_reduce(void* x, std::int64_t elements, DType dtype) {
  in_pieces(elements, most,
            [&](std::int64_t first, int some) { sum_piece(static_cast<std::byte*>(x) + first * size_of(dtype), some, dtype); });
}

void MpiRanks::reduce_scatter(const void* x, void* y, std::int64_t share, DType dtype) {
  if (share == 0) return;
  if (dtype == DType::bf16) {
    for (int r = 0; r < count; ++r) {
      in_pieces(share, most, [&](std::int64_t first, int some) {
        sum_bf16(static_cast<const bf16*>(x) + r * share + first, static_cast<bf16*>(y) + first, some, r);
      });
    }
    return;
  }
  const Functions& mpi = process().mpi;
  const Handle type = type_of(mpi, dtype);
  const std::int64_t bytes = share * size_of(dtype);
  const auto* const whole = static_cast<const std::byte*>(x);
  const bool in_place = y == whole + rank * bytes;  // MPI has sent and received memory apart
  std::byte* const own = in_place ? scratch(bytes) : static_cast<std::byte*>(y);
  if (share * count <= most) {
    expect(mpi.reduce_scatter_block(x, own, static_cast<int>(share), type, mpi.sum, communicator_), mpi, "reduce_scatter");
  } else {
    for (int r = 0; r < count; ++r) {
      in_pieces(share, most, [&](std::int64_t first, int some) {
        const std::byte* const sent = whole + r * bytes + first * size_of(dtype);
        expect(mpi.reduce(sent, own + first * size_of(dtype), some, type, mpi.sum, r, communicator_), mpi, "reduce_scatter");
      });
    }
  }
  if (in_place) std::memcpy(y, own, static_cast<std::size_t>(bytes));
}

void MpiRanks::all_gather(const void* x, void* y, std::int64_t share_bytes) {
  if (share_bytes == 0) return;
  const Functions& mpi = process().mpi;
  auto* const whole = static_cast<std::byte*>(y);
  std::byte* const own = whole + rank * share_bytes;
  if (x != own) std::memcpy(own, x, static_cast<std::size_t>(share_bytes));
  if (share_bytes * count <= most) {
    const int bytes = static_cast<int>(share_bytes);
    expect(mpi.all_gather(kInPlace, 0, mpi.byte, y, bytes, mpi.byte, communicator_), mpi, "all_gather");
    return;
  }
  for (int r = 0; r < count; ++r) broadcast(whole + r * share_bytes, share_bytes, r);
}

void MpiRanks::broadcast(void* x, std::int64_t bytes, int root) {
  const Functions& mpi = process().mpi;
  in_pieces(bytes, most, [&](std::int64_t first, int some) {
    expect(mpi.broadcast(static_cast<std::byte*>(x) + first, some, mpi.byte, root, communicator_), mpi, "broadcast");
  });
}

}  // namespace tilewave
