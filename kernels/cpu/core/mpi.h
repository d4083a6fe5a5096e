// Open MPI's functions, opened at run time, and ranks that speak through them. MPI counts in int: what is longer goes in pieces.
// Every call of a communicator is made by all of its ranks, in the same order. A call that fails is an Error in MPI's own words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/dtype.h"

namespace tilewave {

// What a library that calls itself so is: "Open MPI 4.1.4"; and why it cannot be used, empty where it can. MPI_Get_library_version's words.
struct MpiKind {
  std::string name, refused;
};
MpiKind mpi_kind(std::string_view library_version);

struct MpiRanks {
  MpiRanks();  // of all processes that were started together
  ~MpiRanks();
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  // Elements are f32, f64, i32 or bf16.
  void all_reduce(void* x, std::int64_t elements, DType dtype);
  void reduce_scatter(const void* x, void* y, std::int64_t share, DType dtype);  // y may be this rank's share of x
  void all_gather(const void* x, void* y, std::int64_t share_bytes);             // x may be this rank's share of y
  void broadcast(void* x, std::int64_t bytes, int root);

  int rank = 0, count = 1;
  std::int64_t most = std::int64_t{1} << 30;  // elements, or bytes, of one call

 private:
  std::byte* scratch(std::int64_t bytes);
  void sum_piece(std::byte* x, int elements, DType dtype);
  void sum_bf16(const bf16* x, bf16* y, int elements, int root);

  void* communicator_ = nullptr;
  std::vector<std::byte> scratch_;
};

}  // namespace tilewave
