// Memory of a batch and its upload.
#include "models/transformer/batch_tensors.h"

#include <algorithm>
#include <span>

#include "framework/tensor/host_tensor.h"
#include "kernels/core/memory.h"

namespace tilewave {

BatchTensors make_batch_tensors(Context& context, const BatchShape& shape, const std::optional<PassSegments>& expected) {
  const auto row = [&](std::int64_t rows) { return context.persistent({1, rows}, DType::i32); };
  const auto segments = [&] { return context.persistent({max_sequences(shape), 4}, DType::i32); };
  BatchTensors tensors{.source_ids = {},
                       .source_positions = {},
                       .target_in = row(shape.target_rows),
                       .target_positions = row(shape.target_rows),
                       .target_out = row(shape.target_rows),
                       .source_segments = {},
                       .target_segments = segments(),
                       .cross_segments = {},
                       .expected = expected};
  if (shape.source_rows > 0) {
    tensors.source_ids = row(shape.source_rows);
    tensors.source_positions = row(shape.source_rows);
    tensors.source_segments = segments();
    tensors.cross_segments = segments();
  }
  return tensors;
}

namespace {

Segments segments(const BatchTensors& batch, const Tensor& rows, std::int64_t sequence, SegmentSums PassSegments::*sums) {
  return {
      .rows = rows, .longest = sequence, .sums = batch.expected ? std::optional(*batch.expected.*sums) : std::nullopt, .position_ids = {}};
}

}  // namespace

Segments source_segments(const BatchTensors& batch, std::int64_t sequence) {
  Segments own = segments(batch, batch.source_segments, sequence, &PassSegments::source);
  own.position_ids = batch.source_positions;
  return own;
}
Segments target_segments(const BatchTensors& batch, std::int64_t sequence) {
  Segments own = segments(batch, batch.target_segments, sequence, &PassSegments::target);
  own.position_ids = batch.target_positions;
  return own;
}
Segments cross_segments(const BatchTensors& batch, std::int64_t sequence) {
  return segments(batch, batch.cross_segments, sequence, &PassSegments::cross);
}

namespace {

// fn(tensor, ids) of everything that a batch is made of.
template <class Fn>
void for_each_part(const Batch& batch, const BatchTensors& tensors, Fn&& fn) {
  const auto segments_part = [&](const Tensor& rows, const PackedSequences& queries, const PackedSequences& keys) {
    fn(rows, attention_segments(queries, keys, rows.rows()));
  };
  fn(tensors.target_in, batch.target_in);
  fn(tensors.target_positions, batch.target_positions);
  fn(tensors.target_out, batch.target_out);
  segments_part(tensors.target_segments, target_sequences(batch), target_sequences(batch));
  if (tensors.source_ids) {
    fn(tensors.source_ids, batch.source_ids);
    fn(tensors.source_positions, batch.source_positions);
    segments_part(tensors.source_segments, source_sequences(batch), source_sequences(batch));
    segments_part(tensors.cross_segments, target_sequences(batch), source_sequences(batch));
  }
}

std::int64_t ids_of(const BatchTensors& tensors) {
  std::int64_t ids = 0;
  for (const Tensor* part : {&tensors.source_ids, &tensors.source_positions, &tensors.target_in, &tensors.target_positions,
                             &tensors.target_out, &tensors.source_segments, &tensors.target_segments, &tensors.cross_segments}) {
    ids += *part ? part->shape().elements() : 0;
  }
  return ids;
}

}  // namespace

void upload(Context& context, const Batch& batch, const BatchTensors& tensors) {
  for_each_part(batch, tensors, [&](const Tensor& tensor, const std::vector<std::int32_t>& ids) { write_ids(context, tensor, ids); });
  if (tensors.pixels) upload_pixels(context, batch.pixels, *tensors.pixels);
}

void StagedUploads::upload(const Batch& batch, const BatchTensors& tensors) {
  auto* const cuda = std::get_if<CudaQueue>(&context_.queue());
  if (cuda == nullptr) return tilewave::upload(context_, batch, tensors);
  Slot& slot = slots_[next_];
  next_ = 1 - next_;
  slot.copied.wait();
  const std::int64_t bytes = ids_of(tensors) * size_of(DType::i32);
  if (slot.bytes < bytes) slot.data = allocate_staging(*cuda, slot.bytes = bytes);
  auto* staged = static_cast<std::int32_t*>(slot.data.get());
  for_each_part(batch, tensors, [&](const Tensor& tensor, const std::vector<std::int32_t>& ids) {
    std::copy(ids.begin(), ids.end(), staged);
    write_ids(context_, tensor, std::span<const std::int32_t>(staged, ids.size()));
    staged += ids.size();
  });
  slot.copied.record(context_.queue());
  if (tensors.pixels) upload_pixels(context_, batch.pixels, *tensors.pixels);
}

}  // namespace tilewave
