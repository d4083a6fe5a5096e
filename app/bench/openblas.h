// OpenBLAS as a peer of the CPU's GEMMs, opened at run time by the benchmark alone.
#pragma once

#include <cstdint>
#include <string>

namespace tilewave {

class OpenBlas {
 public:
  // Opens the library with so many threads. On a CPU with AVX-512 it is told to use its SKYLAKEX kernels: left alone, builds that
  // know none newer than the CPU take ones half as fast. InputError where it is absent or does not use them.
  explicit OpenBlas(int threads);

  const std::string& core() const { return core_; }  // whose kernels it uses, by its own word

  enum class Transpose : int { no = 111, yes = 112 };  // CBLAS's numbers
  // Row-major c[m, n] = op(a) op(b) + beta c in f32.
  void sgemm(Transpose a_op, Transpose b_op, std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
             const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) const;

 private:
  void* sgemm_ = nullptr;
  std::string core_;
};

}  // namespace tilewave
