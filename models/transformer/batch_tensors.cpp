// Memory of a batch and its upload.
#include "models/transformer/batch_tensors.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "framework/data/host_threads.h"
#include "framework/tensor/host_tensor.h"
#include "kernels/core/memory.h"
#include "kernels/gemm/tiling.h"

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

// Takes a slot that so many bytes fit, goes through it front to back, and leaves it to the copies under way.
class StagedUploads::Staging {
 public:
  Staging(StagedUploads& uploads, CudaQueue& queue, std::int64_t bytes) : context_(uploads.context_), slot_(uploads.slots_[uploads.next_]) {
    uploads.next_ = 1 - uploads.next_;
    slot_.copied.wait();
    if (slot_.bytes < bytes) slot_.data = allocate_staging(queue, slot_.bytes = bytes);
    next_ = static_cast<std::byte*>(slot_.data.get());
  }

  void ids(const Tensor& tensor, const std::vector<std::int32_t>& ids) {
    auto* const staged = reinterpret_cast<std::int32_t*>(next_);
    std::copy(ids.begin(), ids.end(), staged);
    write_ids(context_, tensor, std::span<const std::int32_t>(staged, ids.size()));
    next_ += ids.size() * sizeof(std::int32_t);
  }

  // Behind all ids: shades end anywhere.
  void shades(const Pixels& pixels, const std::vector<std::uint8_t>& shades) {
    constexpr std::int64_t kPart = 1 << 20, kBytesOfAThread = 1 << 22, kMaxThreads = 8;  // one thread is slower than the GPU's own copy
    auto* const staged = reinterpret_cast<std::uint8_t*>(next_);
    const std::int64_t bytes = std::ssize(shades);
    share_out(ceil_div(bytes, kPart), std::min(threads_for(bytes, kBytesOfAThread), kMaxThreads), [&](std::int64_t part) {
      std::copy(shades.begin() + part * kPart, shades.begin() + std::min((part + 1) * kPart, bytes), staged + part * kPart);
    });
    upload_pixels(context_, std::span<const std::uint8_t>(staged, shades.size()), pixels);
    next_ += shades.size();
  }

  void leave() { slot_.copied.record(context_.queue()); }

 private:
  Context& context_;
  Slot& slot_;
  std::byte* next_ = nullptr;
};

void StagedUploads::upload(const Batch& batch, const BatchTensors& tensors) {
  auto* const cuda = std::get_if<CudaQueue>(&context_.queue());
  if (cuda == nullptr) return tilewave::upload(context_, batch, tensors);
  Staging staging(*this, *cuda, ids_of(tensors) * size_of(DType::i32) + (tensors.pixels ? std::ssize(batch.pixels) : 0));
  for_each_part(batch, tensors, [&](const Tensor& tensor, const std::vector<std::int32_t>& ids) { staging.ids(tensor, ids); });
  if (tensors.pixels) staging.shades(*tensors.pixels, batch.pixels);
  staging.leave();
}

void StagedUploads::upload(const Batch& batch, const Pixels& pixels, const Tensor& labels) {
  auto* const cuda = std::get_if<CudaQueue>(&context_.queue());
  if (cuda == nullptr) {
    write_ids(context_, labels, batch.target_out);
    return upload_pixels(context_, batch.pixels, pixels);
  }
  Staging staging(*this, *cuda, std::ssize(batch.target_out) * size_of(DType::i32) + std::ssize(batch.pixels));
  staging.ids(labels, batch.target_out);
  staging.shades(pixels, batch.pixels);
  staging.leave();
}

}  // namespace tilewave
