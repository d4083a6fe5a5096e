// AdamW over all parameters in one launch: the table of tensors is a kernel parameter, and blocks that live as long as the launch
// walk over tiles of all tensors. The formulas stand in kernels/math/adamw.h.
#include "kernels/cuda/core/packs.h"
#include "kernels/math/adamw.h"
#include "kernels/ops/adamw.h"

namespace tilewave {
namespace {

struct TableEntry {
  void *master = nullptr, *first = nullptr, *second = nullptr, *compute = nullptr;
  const void* gradient = nullptr;
  std::int64_t master_ld = 0, first_ld = 0, second_ld = 0, compute_ld = 0, gradient_ld = 0;
  std::int64_t cols = 0, packs = 0;
  std::int64_t first_tile = 0;
  PackDivisor packs_a_row;
  DType compute_dtype = DType::f32;
  WeightDecay decay = WeightDecay::yes;
  PackAccess access = PackAccess::whole;
};

// As many tensors as a launch's parameters hold; a model with more takes another launch.
constexpr int kTensors = 236;
struct Table {
  TableEntry entries[kTensors];
  std::int32_t count = 0;
  std::int64_t tiles = 0;
  AdamWConstants constants;
  const StepState* state = nullptr;
};
static_assert(sizeof(Table) <= 32764, "a launch takes 32,764 bytes of parameters");

constexpr int kThreads = 256, kBlocks = 5;  // of a multiprocessor
constexpr int kPacks = 4;                   // of a tile and thread
constexpr std::int64_t kTilePacks = kThreads * kPacks;

// A master's columns that a thread updates together, and what it needs for them.
template <class T>
struct Operands {
  Pack<T> weight, gradient, first, second;
};

template <class T, PackAccess kAccess>
__device__ __forceinline__ Operands<T> load_operands(const TableEntry& entry, const Place& at) {
  const auto pack = [&](const void* data, std::int64_t ld) {
    return load_pack<kAccess, kPackWidth<T>, Reuse::none>(static_cast<const T*>(data) + at.row * ld, at.column, entry.cols);
  };
  return {.weight = pack(entry.master, entry.master_ld),
          .gradient = pack(entry.gradient, entry.gradient_ld),
          .first = pack(entry.first, entry.first_ld),
          .second = pack(entry.second, entry.second_ld)};
}

template <class Rounded, class T, PackAccess kAccess>
__device__ __forceinline__ void store_compute(const TableEntry& entry, const Place& at, const Pack<T>& weight) {
  constexpr int kWidth = kPackWidth<T>;
  Arithmetic<Rounded> values[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) values[i] = static_cast<Arithmetic<Rounded>>(weight.get(i));
  store_pack<kAccess, Reuse::none>(static_cast<Rounded*>(entry.compute) + at.row * entry.compute_ld, at.column, entry.cols,
                                   pack_of<Rounded>(values));
}

template <class T, PackAccess kAccess>
__device__ __forceinline__ void store_operands(const TableEntry& entry, const Place& at, const Operands<T>& operands) {
  const auto put = [&](void* data, std::int64_t ld, const Pack<T>& pack) {
    store_pack<kAccess, Reuse::none>(static_cast<T*>(data) + at.row * ld, at.column, entry.cols, pack);
  };
  put(entry.master, entry.master_ld, operands.weight);
  put(entry.first, entry.first_ld, operands.first);
  put(entry.second, entry.second_ld, operands.second);
  if (entry.compute == nullptr) return;
  switch (entry.compute_dtype) {
    case DType::f64:
      return store_compute<double, T, kAccess>(entry, at, operands.weight);
    case DType::f32:
      return store_compute<float, T, kAccess>(entry, at, operands.weight);
    case DType::bf16:
      return store_compute<bf16, T, kAccess>(entry, at, operands.weight);
    case DType::f16:
      return store_compute<f16, T, kAccess>(entry, at, operands.weight);
    case DType::i32:
      return;  // check() refuses it
  }
}

template <class T, PackAccess kAccess>
__device__ __forceinline__ void update_tile(const TableEntry& entry, std::int64_t tile, AdamWCoefficients<T> k) {
  if (entry.decay == WeightDecay::no) k.kept = T(1);
  const std::int64_t end = min(entry.packs, (tile + 1) * kTilePacks);
#pragma unroll 1
  for (std::int64_t pack = tile * kTilePacks + threadIdx.x; pack < end; pack += kThreads) {
    Place place;
    place.row = entry.packs_a_row.quotient(pack);
    place.column = (pack - place.row * entry.packs_a_row.value()) * kPackWidth<T>;
    Operands<T> operands = load_operands<T, kAccess>(entry, place);
#pragma unroll
    for (int j = 0; j < kPackWidth<T>; ++j) {
      T weight = operands.weight.get(j), first_moment = operands.first.get(j), second_moment = operands.second.get(j);
      adamw_update(k, operands.gradient.get(j), weight, first_moment, second_moment);
      operands.weight.set(j, weight);
      operands.first.set(j, first_moment);
      operands.second.set(j, second_moment);
    }
    store_operands<T, kAccess>(entry, place, operands);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks) adamw(const __grid_constant__ Table table) {
  __shared__ AdamWCoefficients<T> shared;
  if (table.state->found_nonfinite != 0 || table.state->step < 1) return;
  if (threadIdx.x == 0) shared = adamw_coefficients<T>(table.constants, *table.state);
  __syncthreads();
  const AdamWCoefficients<T> k = shared;
  int at = 0;
  for (std::int64_t tile = blockIdx.x; tile < table.tiles; tile += gridDim.x) {
    while (at + 1 < table.count && table.entries[at + 1].first_tile <= tile) ++at;
    const TableEntry& entry = table.entries[at];
    if (entry.access == PackAccess::whole) {
      update_tile<T, PackAccess::whole>(entry, tile - entry.first_tile, k);
    } else {
      update_tile<T, PackAccess::narrow>(entry, tile - entry.first_tile, k);
    }
  }
}

TableEntry entry_of(const AdamWTensor& tensor, int width) {
  const Extent extent = extent_of(width, {tensor.master, tensor.gradient, tensor.first_moment, tensor.second_moment, tensor.compute});
  const std::int64_t packs_a_row = ceil_div(extent.cols, width);
  return {.master = tensor.master.data,
          .first = tensor.first_moment.data,
          .second = tensor.second_moment.data,
          .compute = tensor.compute.data,
          .gradient = tensor.gradient.data,
          .master_ld = tensor.master.ld,
          .first_ld = tensor.first_moment.ld,
          .second_ld = tensor.second_moment.ld,
          .compute_ld = tensor.compute.ld,
          .gradient_ld = tensor.gradient.ld,
          .cols = extent.cols,
          .packs = extent.rows * packs_a_row,
          .packs_a_row = PackDivisor(packs_a_row),
          .compute_dtype = tensor.compute.dtype,
          .decay = tensor.decay,
          .access = whole_access(extent.access, extent.cols, width)};
}

// The tensors whose masters are of T.
template <class T>
void update(CudaQueue& queue, const AdamWArgs& args) {
  Table table{.constants = {.beta1 = args.beta1, .beta2 = args.beta2, .epsilon = args.epsilon, .weight_decay = args.weight_decay},
              .state = args.state};
  const auto launch = [&] {
    if (table.tiles > 0) {
      const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(table.tiles, kBlocks * device_of(queue).sm_count));
      adamw<T><<<blocks, kThreads, 0, stream_of(queue)>>>(table);
      TW_CUDA_LAUNCHED("adamw");
    }
    table.count = 0;
    table.tiles = 0;
  };
  for (const AdamWTensor& tensor : args.tensors) {
    if (tensor.master.dtype != kDTypeOf<T> || tensor.master.rows * tensor.master.cols == 0) continue;
    if (table.count == kTensors) launch();
    TableEntry& entry = table.entries[table.count++];
    entry = entry_of(tensor, kPackWidth<T>);
    entry.first_tile = table.tiles;
    table.tiles += ceil_div(entry.packs, kTilePacks);
  }
  launch();
}

}  // namespace

void run(CudaQueue& queue, const AdamWArgs& args) {
  check(args);
  update<float>(queue, args);
  update<double>(queue, args);
}

}  // namespace tilewave
