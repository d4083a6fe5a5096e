// What the repetition of heads asks of its arguments.
#include "kernels/ops/repeat_heads.h"

#include "kernels/core/contract.h"

namespace tilewave {
namespace {

// That these are whole heads, and the matrix that has each of them `times` times.
template <class Args>
ViewShape repeated(const Args& args, const ConstMatrixView& heads) {
  TW_CHECK(args.head_size > 0 && args.times > 0 && heads.cols % args.head_size == 0, Args::kOperation, ": ", heads.cols,
           " columns are no whole number of heads of ", args.head_size, ", each ", args.times, " times.");
  return {.rows = heads.rows, .cols = heads.cols * args.times, .dtype = heads.dtype};
}

}  // namespace

void check(const RepeatHeadsArgs& args) { Contract(RepeatHeadsArgs::kOperation).expect("y", args.y, repeated(args, args.x)); }

void check(const RepeatHeadsBackwardArgs& args) {
  Contract(RepeatHeadsBackwardArgs::kOperation).expect("dy", args.dy, repeated(args, args.dx));
}

}  // namespace tilewave
