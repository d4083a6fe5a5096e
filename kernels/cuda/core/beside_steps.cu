// The GPU's side of kernels/core/beside_steps.h, by Thrust, which waits for the stream. Its scratch memory is the queue's.
#include <cmath>
#include <cuda/std/functional>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/sort.h>
#include <thrust/system_error.h>
#include <thrust/transform_reduce.h>

#include "kernels/core/beside_steps.h"
#include "kernels/core/memory.h"
#include "kernels/cuda/core/elements.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/math/normal_draw.h"

namespace tilewave {
namespace {

class QueueMemory {
 public:
  using value_type = char;

  explicit QueueMemory(CudaQueue& queue) : queue_(queue) {}
  char* allocate(std::ptrdiff_t bytes) { return static_cast<char*>(tilewave::allocate(queue_, bytes)); }
  void deallocate(char* data, std::size_t) { release(queue_, data); }

 private:
  CudaQueue& queue_;
};

// fn(policy), and what Thrust throws in the house's words.
template <class Fn>
auto by_thrust(CudaQueue& queue, const char* operation, const Fn& fn) {
  QueueMemory memory(queue);
  try {
    return fn(thrust::cuda::par(memory).on(stream_of(queue)));
  } catch (const thrust::system_error& error) {
    cudaGetLastError();
    throw Error(concat("CUDA: ", operation, " failed: ", error.what(), "."));
  }
}

__device__ double value_at(const ConstMatrixView& view, std::int64_t row, std::int64_t column) {
  switch (view.dtype) {
    case DType::f64:
      return view.row<double>(row)[column];
    case DType::f32:
      return load(view.row<float>(row)[column]);
    case DType::bf16:
      return load(view.row<bf16>(row)[column]);
    case DType::f16:
      return load(view.row<f16>(row)[column]);
    case DType::i32:
      break;
  }
  return NAN;
}

template <class T>
struct NormalAt {
  MatrixView y;
  std::uint64_t seed;

  __device__ void operator()(std::int64_t index) const {
    const std::int64_t row = index / y.cols, column = index - row * y.cols;
    y.row<T>(row)[column] = store<T>(static_cast<Arithmetic<T>>(normal_draw(seed, row, column)));
  }
};

struct SquaresAt {
  ConstMatrixView actual, expected;

  __device__ double2 operator()(std::int64_t index) const {
    const std::int64_t row = index / expected.cols, column = index - row * expected.cols;
    const double e = value_at(expected, row, column), difference = value_at(actual, row, column) - e;
    return make_double2(difference * difference, e * e);
  }
};
struct AddBoth {
  __host__ __device__ double2 operator()(const double2& a, const double2& b) const { return make_double2(a.x + b.x, a.y + b.y); }
};

// Keys are double where the row is, else float, which holds every narrower number.
template <class Key>
struct KeyAt {
  ConstMatrixView row;
  const std::int32_t* columns;
  Key* keys;
  std::int32_t* places;

  __device__ void operator()(std::int64_t index) const {
    keys[index] = static_cast<Key>(value_at(row, 0, columns[index]));
    places[index] = columns[index];
  }
};

// Memory of a queue for the length of a call.
template <class T>
class Scratch {
 public:
  Scratch(CudaQueue& queue, std::int64_t count)
      : queue_(queue), data_(static_cast<T*>(allocate(queue, count * static_cast<std::int64_t>(sizeof(T))))) {}
  ~Scratch() { release(queue_, data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* get() const { return data_; }

 private:
  CudaQueue& queue_;
  T* data_;
};

template <class Key>
std::vector<RankedColumn> rank_by(CudaQueue& queue, const RankedRow& row, std::int64_t count) {
  const std::int64_t all = row.columns.cols;
  const Scratch<Key> keys(queue, all);
  const Scratch<std::int32_t> places(queue, all);
  by_thrust(queue, "largest_of", [&](const auto& policy) {
    thrust::for_each_n(policy, thrust::counting_iterator<std::int64_t>(0), all,
                       KeyAt<Key>{.row = row.row, .columns = row.columns.row<std::int32_t>(0), .keys = keys.get(), .places = places.get()});
    const thrust::device_ptr<Key> first(keys.get());
    thrust::stable_sort_by_key(policy, first, first + all, thrust::device_ptr<std::int32_t>(places.get()), cuda::std::greater<Key>());
  });
  std::vector<Key> values(static_cast<std::size_t>(count));
  std::vector<std::int32_t> columns(static_cast<std::size_t>(count));
  copy_to_host(queue, values.data(), keys.get(), count * static_cast<std::int64_t>(sizeof(Key)));
  copy_to_host(queue, columns.data(), places.get(), count * static_cast<std::int64_t>(sizeof(std::int32_t)));
  std::vector<RankedColumn> ranked;
  for (std::size_t i = 0; i < values.size(); ++i) ranked.push_back({.column = columns[i], .value = static_cast<double>(values[i])});
  return ranked;
}

}  // namespace

void fill_normal(CudaQueue& queue, const MatrixView& y, std::uint64_t seed) {
  with_float(y.dtype, "fill_normal", [&]<class T>(T) {
    by_thrust(queue, "fill_normal", [&](const auto& policy) {
      thrust::for_each_n(policy, thrust::counting_iterator<std::int64_t>(0), y.rows * y.cols, NormalAt<T>{.y = y, .seed = seed});
    });
  });
}

ErrorNorms error_norms(CudaQueue& queue, const ConstMatrixView& actual, const ConstMatrixView& expected) {
  const double2 squares = by_thrust(queue, "error_norms", [&](const auto& policy) {
    const thrust::counting_iterator<std::int64_t> first(0);
    return thrust::transform_reduce(policy, first, first + expected.rows * expected.cols, SquaresAt{.actual = actual, .expected = expected},
                                    make_double2(0.0, 0.0), AddBoth());
  });
  return {.difference = std::sqrt(squares.x), .reference = std::sqrt(squares.y)};
}

std::vector<RankedColumn> largest_of(CudaQueue& queue, const RankedRow& row, std::int64_t count) {
  return row.row.dtype == DType::f64 ? rank_by<double>(queue, row, count) : rank_by<float>(queue, row, count);
}

}  // namespace tilewave
