// Operands of a benchmark's launch and the launch itself, as one thing.
#pragma once

#include <utility>
#include <vector>

#include "framework/measure/operation_work.h"

namespace tilewave {

// `owned` are the tensors behind the views of args.
template <class Args>
OperationWork work_of(Context& context, const Args& args, std::vector<Tensor> owned) {
  return {.entry = trace_entry(args), .launch = [&context, args, owned = std::move(owned)] { context.launch(args); }};
}

}  // namespace tilewave
