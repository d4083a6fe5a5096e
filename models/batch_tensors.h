// A batch in device memory: int32 tensors of fixed shapes, so that every step of a run reads the same addresses.
#pragma once

#include "framework/context.h"
#include "framework/data/packing.h"

namespace tilewave {

struct BatchTensors {
  Tensor source_ids, source_positions;             // [1, source tokens]; a decoder-only model has none
  Tensor target_in, target_positions, target_out;  // [1, target tokens]
  Tensor source_segments;                          // [most sequences, 4]: self-attention of the encoder
  Tensor target_segments;                          // [most sequences, 4]: causal self-attention of the decoder
  Tensor cross_segments;                           // [most sequences, 4]: decoder to encoder
};

// Zeroed memory for batches of this shape.
BatchTensors make_batch_tensors(Context& context, const BatchShape& shape);

void upload(Context& context, const Batch& batch, const BatchTensors& tensors);

}  // namespace tilewave
