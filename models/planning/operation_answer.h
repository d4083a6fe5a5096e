// What a student asks of an operation that is no GEMM: bytes, FLOPs a byte, what it takes on a device and what bounds that.
#pragma once

#include <string>
#include <string_view>

#include "framework/tensor/precision.h"
#include "framework/tensor/shape.h"
#include "kernels/core/device.h"
#include "kernels/core/trace.h"
#include "models/planning/launch_limit.h"

namespace tilewave {

struct OperationAnswer {
  std::string name;
  Shape shape;
  Cost cost;
  DType dtype = DType::f16;  // of its activations
  int launches = 1;
  double floor_s = 0.0;      // its bytes at the printed bandwidth; 0: not known
  double predicted_s = 0.0;  // 0: not known
  Limit limit = Limit::unknown;
  std::string_view fused;  // where a step of tilewave's has it as part of another launch: which; else empty
};

// InputError where no operation of framework/measure/operation_work.h has the name: the nearest one, and all of them.
struct OperationQuestion {
  std::string name;
  Shape shape{0, 0};  // 0: the operation's own
  Precision precision = Precision::fp16;
};
OperationAnswer answer(const OperationQuestion& question, const DeviceInfo& device);

}  // namespace tilewave
