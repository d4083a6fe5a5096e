// Tensor maps for TMA: a matrix whose base and pitch are multiples of 16 bytes, and the box of it that one copy
// moves, 128 or 64 bytes wide and swizzled by as many, or 16 bytes wide as it lies.
// The driver encodes them; its entry point comes through the runtime, so that nothing links against libcuda.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include "kernels/core/view.h"
#include "kernels/cuda/prim/check.h"

namespace tilewave {

inline CUtensorMapDataType tensor_map_type(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::f16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::f32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    default:
      throw Error(concat("a tensor map of ", name_of(dtype), " is not made here; it is bf16, f16 or f32."));
  }
}

enum class BoxWidth : std::uint8_t { bytes_128 = 128, bytes_64 = 64, bytes_16 = 16 };
inline CUtensorMapSwizzle swizzle_of(BoxWidth width) {
  switch (width) {
    case BoxWidth::bytes_128:
      return CU_TENSOR_MAP_SWIZZLE_128B;
    case BoxWidth::bytes_64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case BoxWidth::bytes_16:
      break;
  }
  return CU_TENSOR_MAP_SWIZZLE_NONE;
}

// The driver's encoder, of `rank` dimensions, the fastest first.
struct TensorMapShape {
  int rank = 2;
  cuuint64_t sizes[3] = {}, strides[2] = {};  // bytes from one to the next, the fastest's left out
  cuuint32_t box[3] = {};
};
inline CUtensorMap encode_tensor_map(const ConstMatrixView& view, const TensorMapShape& shape, CUtensorMapSwizzle swizzle) {
  static const auto encode = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    TW_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    TW_CHECK(found == cudaDriverEntryPointSuccess, "the driver has no cuTensorMapEncodeTiled; it must know CUDA 12.0 or newer.");
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(entry);
  }();
  const cuuint32_t steps[] = {1, 1, 1};
  CUtensorMap map{};
  const CUresult status = encode(&map, tensor_map_type(view.dtype), static_cast<cuuint32_t>(shape.rank), const_cast<void*>(view.data),
                                 shape.sizes, shape.strides, shape.box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  TW_CHECK(status == CUDA_SUCCESS, "CUDA: the driver makes no tensor map of a ", name_of(view.dtype), " matrix [", view.rows, ", ",
           view.cols, "] with a pitch of ", view.ld, " elements at address ", view.data, " (error ", static_cast<int>(status), ").");
  return map;
}

inline CUtensorMap make_tensor_map(const ConstMatrixView& view, int box_rows, BoxWidth width = BoxWidth::bytes_128) {
  return encode_tensor_map(
      view,
      {.sizes = {static_cast<cuuint64_t>(view.cols), static_cast<cuuint64_t>(view.rows)},
       .strides = {static_cast<cuuint64_t>(view.ld * size_of(view.dtype))},
       .box = {static_cast<cuuint32_t>(static_cast<std::int64_t>(width) / size_of(view.dtype)), static_cast<cuuint32_t>(box_rows)}},
      swizzle_of(width));
}

// The same with rows in eights, of which there are whole ones: a box is 128 bytes of so many rows of each of so many eights.
inline CUtensorMap make_tensor_map_3d(const ConstMatrixView& view, int rows, int eights) {
  const std::int64_t pitch = view.ld * size_of(view.dtype);
  return encode_tensor_map(
      view,
      {.rank = 3,
       .sizes = {static_cast<cuuint64_t>(view.cols), 8, static_cast<cuuint64_t>(view.rows / 8)},
       .strides = {static_cast<cuuint64_t>(pitch), static_cast<cuuint64_t>(8 * pitch)},
       .box = {static_cast<cuuint32_t>(128 / size_of(view.dtype)), static_cast<cuuint32_t>(rows), static_cast<cuuint32_t>(eights)}},
      CU_TENSOR_MAP_SWIZZLE_128B);
}

}  // namespace tilewave
