// A batch in device memory: int32 tensors of fixed shapes, so that every step of a run reads the same addresses.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "framework/data/packing.h"
#include "framework/tensor/context.h"
#include "kernels/core/event.h"
#include "models/pictures/pixels.h"
#include "models/recipe/pass_segments.h"
#include "models/transformer/attention.h"

namespace tilewave {

struct BatchTensors {
  Tensor source_ids, source_positions;             // [1, source tokens]; a decoder-only model has none
  Tensor target_in, target_positions, target_out;  // [1, target tokens]
  Tensor source_segments;                          // [most sequences, 4]: self-attention of the encoder
  Tensor target_segments;                          // [most sequences, 4]: causal self-attention of the decoder
  Tensor cross_segments;                           // [most sequences, 4]: decoder to encoder
  std::optional<Pixels> pixels;                    // of a source that is pictures, in the place of what source_ids say
  std::optional<PassSegments> expected;            // what they hold, where it is known
};

// Zeroed memory for batches of this shape.
BatchTensors make_batch_tensors(Context& context, const BatchShape& shape, const std::optional<PassSegments>& expected = {});

// Segments as attention takes them, none longer than `sequence`.
Segments source_segments(const BatchTensors& batch, std::int64_t sequence);
Segments target_segments(const BatchTensors& batch, std::int64_t sequence);
Segments cross_segments(const BatchTensors& batch, std::int64_t sequence);

void upload(Context& context, const Batch& batch, const BatchTensors& tensors);

// Uploads that the host waits for no longer than for the one before the last: on a GPU by way of memory that the GPU reads by itself.
class StagedUploads {
 public:
  explicit StagedUploads(Context& context) : context_(context) {}
  void upload(const Batch& batch, const BatchTensors& tensors);
  // Of pictures with a label each, all that is read of them.
  void upload(const Batch& batch, const Pixels& pixels, const Tensor& labels);

 private:
  struct Slot {
    std::shared_ptr<void> data;
    std::int64_t bytes = 0;
    Event copied;
  };
  class Staging;  // of one upload

  Context& context_;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
};

}  // namespace tilewave
