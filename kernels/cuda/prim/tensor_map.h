// Tensor maps for the bulk copy engine: a matrix whose base and pitch are multiples of 16 bytes, and the box of it that one copy
// moves, 128 bytes wide and swizzled by 128 bytes, or 16 bytes wide as it lies.
// The driver encodes them; its entry point comes through the runtime, so that nothing links against libcuda.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include "kernels/cuda/check.h"
#include "kernels/view.h"

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
      throw Error(sentence("a tensor map of ", name_of(dtype), " is not made here; it is bf16, f16 or f32."));
  }
}

enum class BoxWidth : std::uint8_t { bytes_128, bytes_16 };

inline CUtensorMap make_tensor_map(const ConstMatrixView& view, int box_rows, BoxWidth width = BoxWidth::bytes_128) {
  static const auto encode = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    TW_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    TW_CHECK(found == cudaDriverEntryPointSuccess, "the driver has no cuTensorMapEncodeTiled; it must know CUDA 12.0 or newer.");
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(entry);
  }();
  const cuuint64_t dimensions[] = {static_cast<cuuint64_t>(view.cols), static_cast<cuuint64_t>(view.rows)};
  const cuuint64_t pitch[] = {static_cast<cuuint64_t>(view.ld * size_of(view.dtype))};
  const cuuint32_t box[] = {static_cast<cuuint32_t>((width == BoxWidth::bytes_128 ? 128 : 16) / size_of(view.dtype)),
                            static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t strides[] = {1, 1};
  CUtensorMap map{};
  const CUresult status =
      encode(&map, tensor_map_type(view.dtype), 2, const_cast<void*>(view.data), dimensions, pitch, box, strides,
             CU_TENSOR_MAP_INTERLEAVE_NONE, width == BoxWidth::bytes_128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  TW_CHECK(status == CUDA_SUCCESS, "CUDA: the driver makes no tensor map of a ", name_of(view.dtype), " matrix [", view.rows, ", ",
           view.cols, "] with a pitch of ", view.ld, " elements at address ", view.data, " (error ", static_cast<int>(status), ").");
  return map;
}

}  // namespace tilewave
