// Conversion on a CPU, rows shared out over the threads.
#include "kernels/convert.h"

#include "kernels/cpu/row_ranges.h"

namespace tilewave {
namespace {

template <class Fn>
void with_element(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::f64:
      return fn(double{});
    case DType::f32:
      return fn(float{});
    case DType::bf16:
      return fn(bf16{});
    case DType::f16:
      return fn(f16{});
    case DType::i32:
      break;
  }
}

// Through float where one of the two is 16 bits wide: their constructors round from it.
template <class To, class From>
To converted(From value) {
  if constexpr (sizeof(To) == 2 || sizeof(From) == 2) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

void run(CpuQueue& queue, const ConvertArgs& args) {
  check(args);
  with_element(args.x.dtype, [&]<class From>(From) {
    with_element(args.y.dtype, [&]<class To>(To) {
      for_row_ranges(queue, args.x.rows, args.x.cols, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          std::transform(args.x.row<From>(r), args.x.row<From>(r) + args.x.cols, args.y.row<To>(r), converted<To, From>);
        }
      });
    });
  });
}

}  // namespace tilewave
