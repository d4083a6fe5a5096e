// The element types of the safetensors format, by the names that stand in its headers. tilewave writes any of them from bytes
// and computes in those that have a DType.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/dtype.h"

namespace tilewave {

enum class StoredType : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean, f8_e4m3, f8_e5m2, c64 };

struct StoredTypeFacts {
  std::string_view name;
  std::int64_t bytes;
};

inline constexpr std::array<StoredTypeFacts, 16> kStoredTypes{{
    {"F64", 8},
    {"F32", 4},
    {"F16", 2},
    {"BF16", 2},
    {"I64", 8},
    {"I32", 4},
    {"I16", 2},
    {"I8", 1},
    {"U64", 8},
    {"U32", 4},
    {"U16", 2},
    {"U8", 1},
    {"BOOL", 1},
    {"F8_E4M3", 1},
    {"F8_E5M2", 1},
    {"C64", 8},
}};

constexpr std::string_view name_of(StoredType type) { return kStoredTypes[static_cast<std::size_t>(type)].name; }
constexpr std::int64_t size_of(StoredType type) { return kStoredTypes[static_cast<std::size_t>(type)].bytes; }

constexpr std::optional<StoredType> stored_type_named(std::string_view name) {
  for (std::size_t i = 0; i < kStoredTypes.size(); ++i) {
    if (kStoredTypes[i].name == name) return static_cast<StoredType>(i);
  }
  return std::nullopt;
}

constexpr StoredType stored_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return StoredType::f64;
    case DType::f32:
      return StoredType::f32;
    case DType::bf16:
      return StoredType::bf16;
    case DType::f16:
      return StoredType::f16;
    case DType::i32:
      return StoredType::i32;
  }
  return StoredType::u8;
}

static_assert(name_of(StoredType::c64) == "C64" && name_of(StoredType::bf16) == "BF16", "the table follows the enumeration");

}  // namespace tilewave
