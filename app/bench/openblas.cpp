// The library's C interface by name.
#include "app/bench/openblas.h"

#include <cstdlib>
#include <dlfcn.h>

#include "kernels/core/device.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr int kRowMajor = 101;
constexpr const char* kLibrary = "libopenblas.so.0";
constexpr const char* kCore = "SkylakeX";

template <class Function>
Function* symbol(void* library, const char* name) {
  void* address = dlsym(library, name);
  TW_CHECK_INPUT(address != nullptr, kLibrary, " has no ", name, "; install Debian's libopenblas0-pthread.");
  return reinterpret_cast<Function*>(address);
}

using Sgemm = void(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);

}  // namespace

OpenBlas::OpenBlas(int threads) {
  const bool avx512 = probe_cpu(1).vector_bytes == 64;
  if (avx512) setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 1);
  setenv("OPENBLAS_NUM_THREADS", std::to_string(threads).c_str(), 1);
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  TW_CHECK_INPUT(library != nullptr, kLibrary, " cannot be opened; install Debian's libopenblas0-pthread.");
  symbol<void(int)>(library, "openblas_set_num_threads")(threads);
  core_ = symbol<char*()>(library, "openblas_get_corename")();
  TW_CHECK_INPUT(!avx512 || core_ == kCore, "OpenBLAS uses its ", core_, " kernels on this AVX-512 machine and not ", kCore,
                 ": that would flatter tilewave, so there is no comparison.");
  sgemm_ = reinterpret_cast<void*>(symbol<Sgemm>(library, "cblas_sgemm"));
}

void OpenBlas::sgemm(Transpose a_op, Transpose b_op, std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
                     const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) const {
  reinterpret_cast<Sgemm*>(sgemm_)(kRowMajor, static_cast<int>(a_op), static_cast<int>(b_op), static_cast<int>(m), static_cast<int>(n),
                                   static_cast<int>(k), 1.0F, a, static_cast<int>(lda), b, static_cast<int>(ldb), beta, c,
                                   static_cast<int>(ldc));
}

}  // namespace tilewave
