// The element types of the safetensors format, by the names that stand in its headers (the 22 of the reference implementation,
// https://github.com/huggingface/safetensors). Some are narrower than a byte: elements then lie packed, and a tensor fills whole bytes.
// tilewave writes any of them from bytes and computes in those that have a DType.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kernels/core/dtype.h"

namespace tilewave {

enum class StoredType : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  c64,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  f6_e2m3,
  f6_e3m2,
  f4
};

struct StoredTypeFacts {
  std::string_view name;
  std::int64_t bits;
};

inline constexpr std::array<StoredTypeFacts, 22> kStoredTypes{{
    {"F64", 64},    {"F32", 32},        {"F16", 16},        {"BF16", 16},   {"I64", 64},    {"I32", 32}, {"I16", 16},    {"I8", 8},
    {"U64", 64},    {"U32", 32},        {"U16", 16},        {"U8", 8},      {"BOOL", 8},    {"C64", 64}, {"F8_E4M3", 8}, {"F8_E5M2", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},
}};

constexpr std::string_view name_of(StoredType type) { return kStoredTypes[static_cast<std::size_t>(type)].name; }
constexpr std::int64_t bits_of(StoredType type) { return kStoredTypes[static_cast<std::size_t>(type)].bits; }

// The bits of all elements; none where they are no more to be counted. An empty dimension hides no overflow of the others.
constexpr std::optional<std::int64_t> bits_of(StoredType type, std::span<const std::int64_t> shape) {
  std::int64_t bits = bits_of(type);
  bool empty = false;
  for (const std::int64_t dimension : shape) {
    empty = empty || dimension == 0;
    if (dimension < 0 || __builtin_mul_overflow(bits, std::max<std::int64_t>(dimension, 1), &bits)) return std::nullopt;
  }
  return empty ? 0 : bits;
}

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

static_assert(name_of(StoredType::c64) == "C64" && name_of(StoredType::bf16) == "BF16" && name_of(StoredType::f4) == "F4",
              "the table follows the enumeration");

}  // namespace tilewave
