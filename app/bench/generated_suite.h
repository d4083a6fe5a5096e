// GEMMs that nobody chose: drawn by a seed from what Transformers have, in all phases, with and without epilogues. What the cost model and
// the kernels were tuned on is another suite; here is what a claim about any Transformer is made over.
#pragma once

#include <cstdint>

#include "app/bench/gemm_suite.h"

namespace tilewave {

inline constexpr int kGeneratedAligned = 60, kGeneratedUnaligned = 30, kGeneratedNarrow = 12;

// So many layers whose rows are whole 16 bytes, so many others, the wide layers that hurt (of large vocabularies and hidden layers) and so
// many of 1 to 16 outputs, inputs or tokens, each with the targets of its claim. The same seed draws the same suite everywhere.
GemmSuite generated_suite(std::uint64_t seed);

// A number of eight hexadecimal digits or a decimal one; InputError otherwise.
std::uint64_t parse_seed(const std::string& text);

}  // namespace tilewave
