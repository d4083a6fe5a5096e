// Memory of a batch and its upload.
#include "models/batch_tensors.h"

#include "framework/host_tensor.h"

namespace tilewave {

BatchTensors make_batch_tensors(Context& context, const BatchShape& shape) {
  const auto row = [&](std::int64_t rows) { return context.persistent({1, rows}, DType::i32); };
  const auto segments = [&] { return context.persistent({max_sequences(shape), 4}, DType::i32); };
  BatchTensors tensors{.source_ids = {},
                       .source_positions = {},
                       .target_in = row(shape.target_rows),
                       .target_positions = row(shape.target_rows),
                       .target_out = row(shape.target_rows),
                       .source_segments = {},
                       .target_segments = segments(),
                       .cross_segments = {}};
  if (shape.source_rows > 0) {
    tensors.source_ids = row(shape.source_rows);
    tensors.source_positions = row(shape.source_rows);
    tensors.source_segments = segments();
    tensors.cross_segments = segments();
  }
  return tensors;
}

void upload(Context& context, const Batch& batch, const BatchTensors& tensors) {
  const auto write_segments = [&](const Tensor& segments, const std::vector<std::int32_t>& queries, const std::vector<std::int32_t>& keys) {
    write_ids(context, segments, attention_segments(queries, keys, segments.rows()));
  };
  write_ids(context, tensors.target_in, batch.target_in);
  write_ids(context, tensors.target_positions, batch.target_positions);
  write_ids(context, tensors.target_out, batch.target_out);
  write_segments(tensors.target_segments, batch.target_lengths, batch.target_lengths);
  if (tensors.source_ids) {
    write_ids(context, tensors.source_ids, batch.source_ids);
    write_ids(context, tensors.source_positions, batch.source_positions);
    write_segments(tensors.source_segments, batch.source_lengths, batch.source_lengths);
    write_segments(tensors.cross_segments, batch.target_lengths, batch.source_lengths);
  }
}

}  // namespace tilewave
