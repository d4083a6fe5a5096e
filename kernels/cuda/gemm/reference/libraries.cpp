// The reference rows. D as it lies in memory, [rows, cols], is a library's column-major cols x rows: right^T times left^T. cuBLAS
// multiplies, and has a way of its own for a matrix times one vector; cuBLASLt also fuses what it can (bias, ReLU, GELU by tanh with its
// input stored, GELU's derivative and the sums of D beside it, the bias gradient of a wgrad). Everything else is a following pass: sums to
// the workspace, then our own rows' epilogue; but sums of D are never stored by a pass, so that their time is the library's.
#include "kernels/gemm/reference/libraries.h"

#include <array>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/core/error.h"
#include "kernels/cuda/core/stream.h"
#include "kernels/cuda/gemm/reference/library_pass.h"
#include "kernels/cuda/prim/check.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemv/gemv.h"

namespace tilewave {
namespace {

// A library that is opened when it is first asked for and stays open.
class Library {
 public:
  explicit Library(std::string name) : name_(std::move(name)), handle_(dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    TW_CHECK_INPUT(handle_ != nullptr, name_, " cannot be opened: ", dlerror(),
                   "; install it beside CUDA, or use gemm.engine = \"tilewave\".");
  }
  template <class Function>
  Function* symbol(const char* name) const {
    void* const found = dlsym(handle_, name);
    TW_CHECK_INPUT(found != nullptr, name_, " has no ", name, "; it must be of CUDA ", CUBLAS_VER_MAJOR, ".");
    return reinterpret_cast<Function*>(found);
  }

 private:
  std::string name_;
  void* handle_;
};

void check_status(cublasStatus_t status, const char* what) {
  TW_CHECK(status == CUBLAS_STATUS_SUCCESS, what, " failed with status ", static_cast<int>(status), ".");
}

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return CUDA_R_64F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}
cublasComputeType_t compute_of(const GemmProblem& problem) {
  if (problem.operand_dtype == DType::f64) return CUBLAS_COMPUTE_64F;
  return problem.math == MathMode::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// The product as a column-major library sees it: C[m, n] = first[m, k] second[k, n] + beta C.
struct ColumnMajor {
  ConstMatrixView first, second;
  cublasOperation_t first_op, second_op;
  std::int64_t m = 0, n = 0, k = 0;
  LibraryTarget c;
  cudaDataType_t type, c_type;
  cublasComputeType_t compute;

  ColumnMajor(const GemmArgs& args, const GemmProblem& problem, const LibraryTarget& target)
      : c(target), type(type_of(problem.operand_dtype)), c_type(type_of(target.dtype)), compute(compute_of(problem)) {
    const bool along_m = args.d_major == Major::m, a_along_k = args.a_major == Major::k, b_along_k = args.b_major == Major::k;
    first = along_m ? args.a : args.b;
    second = along_m ? args.b : args.a;
    first_op = (along_m ? a_along_k : b_along_k) ? CUBLAS_OP_T : CUBLAS_OP_N;
    second_op = (along_m ? b_along_k : a_along_k) ? CUBLAS_OP_N : CUBLAS_OP_T;
    m = args.d.cols;
    n = args.d.rows;
    k = problem.k;
  }
};

// alpha or beta in the type that sums have.
struct HostScalar {
  double f64 = 1.0;
  float f32 = 1.0F;

  explicit HostScalar(double value) : f64(value), f32(static_cast<float>(value)) {}
  const void* of(bool fp64) const { return fp64 ? static_cast<const void*>(&f64) : &f32; }
};
// What a library multiplies its product by: alpha where it writes D itself, and where a pass follows, which knows alpha, one.
HostScalar alpha_of(const GemmArgs& args, bool straight) {
  TW_CHECK(!straight || args.alpha.at == nullptr, "gemm ", name_of(args.role),
           ": alpha lies on the device, and NVIDIA's libraries are called with scalars of the host; give its value.");
  return HostScalar(straight ? args.alpha.value : 1.0);
}

struct Cublas {
  Library library{concat("libcublas.so.", CUBLAS_VER_MAJOR)};
  decltype(cublasCreate_v2)* create = library.symbol<decltype(cublasCreate_v2)>("cublasCreate_v2");
  decltype(cublasSetStream_v2)* set_stream = library.symbol<decltype(cublasSetStream_v2)>("cublasSetStream_v2");
  decltype(cublasSetWorkspace_v2)* set_workspace = library.symbol<decltype(cublasSetWorkspace_v2)>("cublasSetWorkspace_v2");
  using GemmEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*, const void*, cudaDataType,
                                int, const void*, cudaDataType, int, const void*, void*, cudaDataType, int, cublasComputeType_t,
                                cublasGemmAlgo_t);
  GemmEx* gemm = library.symbol<GemmEx>("cublasGemmEx");
  std::map<int, cublasHandle_t> handles;  // by device

  // The device's handle, on the queue's stream and with the workspace.
  cublasHandle_t handle_on(CudaQueue& queue, void* workspace) {
    cublasHandle_t& handle = handles[device_of(queue).index];
    if (handle == nullptr) check_status(create(&handle), "cublasCreate");
    check_status(set_stream(handle, stream_of(queue)), "cublasSetStream");
    check_status(set_workspace(handle, workspace, kLibraryWorkspace), "cublasSetWorkspace");
    return handle;
  }
};

// A matrix times one vector as cuBLAS sees it: y = op(A) x + beta y, A column-major. fp32 and fp64 have functions of their own; those of 16
// bits take many products, and here one.
struct Vectors {
  ConstMatrixView matrix;
  bool along_k;
  const void* x;
  int x_step;
  LibraryTarget y;
  int y_step;
  HostScalar alpha;

  Vectors(const GemmCall& call, const LibraryTarget& target, const HostScalar& factor) : y(target), alpha(factor) {
    const GemvSides sides = gemv_sides(call.problem, call.plan.tile);
    const bool rows_along_cols = sides.matrix_is_a == (call.args.d_major == Major::m);
    const ConstMatrixView& vector = sides.matrix_is_a ? call.args.b : call.args.a;
    matrix = sides.matrix_is_a ? call.args.a : call.args.b;
    along_k = sides.matrix_along_k;
    x = vector.data;
    x_step = sides.vectors_along_k ? 1 : static_cast<int>(vector.ld);
    y_step = rows_along_cols ? 1 : static_cast<int>(target.ld);
  }

  cublasOperation_t op() const { return along_k ? CUBLAS_OP_T : CUBLAS_OP_N; }
  int size(std::int64_t value) const { return static_cast<int>(value); }

  template <class T>
  void multiply(const Cublas& library, cublasHandle_t handle, const char* name) const {
    using Gemv = cublasStatus_t(cublasHandle_t, cublasOperation_t, int, int, const T*, const T*, int, const T*, int, const T*, T*, int);
    const T first = static_cast<T>(alpha.f64), beta = y.accumulate ? 1 : 0;
    check_status(
        library.library.symbol<Gemv>(name)(handle, op(), size(matrix.cols), size(matrix.rows), &first, static_cast<const T*>(matrix.data),
                                           size(matrix.ld), static_cast<const T*>(x), x_step, &beta, static_cast<T*>(y.data), y_step),
        name);
  }
  template <class In, class Out>
  void multiply_in_batch(const Cublas& library, cublasHandle_t handle, const char* name) const {
    using Gemv = cublasStatus_t(cublasHandle_t, cublasOperation_t, int, int, const float*, const In*, int, long long, const In*, int,
                                long long, const float*, Out*, int, long long, int);
    const float beta = y.accumulate ? 1.0F : 0.0F;
    check_status(library.library.symbol<Gemv>(name)(handle, op(), size(matrix.cols), size(matrix.rows), &alpha.f32,
                                                    static_cast<const In*>(matrix.data), size(matrix.ld), 0, static_cast<const In*>(x),
                                                    x_step, 0, &beta, static_cast<Out*>(y.data), y_step, 0, 1),
                 name);
  }
};

// What cuBLASLt is asked once for a problem: its description and the candidates of its heuristic.
struct Matmul {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, c = nullptr;
  std::vector<cublasLtMatmulAlgo_t> candidates;
  bool asked = false;  // whether all of this is there
};

struct CublasLt {
  Library library{concat("libcublasLt.so.", CUBLAS_VER_MAJOR)};
  template <class Function>
  Function* find(const char* name) const {
    return library.symbol<Function>(name);
  }
#define TW_LT(name) decltype(::name)* name = find<decltype(::name)>(#name)
  TW_LT(cublasLtCreate);
  TW_LT(cublasLtMatmul);
  TW_LT(cublasLtMatmulDescCreate);
  TW_LT(cublasLtMatmulDescSetAttribute);
  TW_LT(cublasLtMatrixLayoutCreate);
  TW_LT(cublasLtMatmulPreferenceCreate);
  TW_LT(cublasLtMatmulPreferenceSetAttribute);
  TW_LT(cublasLtMatmulPreferenceDestroy);
  TW_LT(cublasLtMatmulAlgoGetHeuristic);
#undef TW_LT
  std::map<int, cublasLtHandle_t> handles;  // by device
  // Alignments in bytes: of the three matrices, the epilogue's vector and its auxiliary matrix.
  using Alignments = std::array<std::uint32_t, 5>;
  // By device, problem, epilogue and whether D is written itself.
  using Key = std::tuple<int, GemmProblem, cublasLtEpilogue_t, bool, Alignments>;
  std::map<Key, Matmul> matmuls;
};

// One of each for the process: a library's handles are its own state.
std::mutex library_mutex;
Cublas& cublas() {
  static Cublas instance;
  return instance;
}
CublasLt& cublaslt() {
  static CublasLt instance;
  return instance;
}

// cuBLASLt's name for the epilogue, or nothing where a pass of our own must follow. Its vector has D's type (that of a bias gradient is
// written), and so has its auxiliary matrix, with a pitch of a multiple of 8.
struct LtEpilogue {
  bool fused = false;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* vector = nullptr;
  ConstMatrixView auxiliary;
  ConstMatrixView c;  // what is added, times beta, where it is not D
};
// Whether the library can sum the bias gradient: over K of its second operand, into a vector of D's type.
bool sums_bias_gradient(const GemmArgs& args) {
  return args.bias_gradient && !args.accumulate_bias_gradient && args.bias_gradient.dtype == args.d.dtype && args.d_major == Major::m;
}
// C of the library's product.
bool adds_residual_alone(const GemmArgs& args) {
  const bool alone = !args.bias && args.activation == Activation::none && !args.saved_input && !args.derivative_of && !args.accumulate &&
                     !args.output_sums && !args.bias_gradient;
  return alone && args.beta.at == nullptr && args.alpha.at == nullptr && args.residual.dtype == args.d.dtype &&
         args.residual.ld == args.d.ld;
}
LtEpilogue lt_epilogue(const GemmArgs& args) {
  const bool half = args.d.dtype == DType::bf16 || args.d.dtype == DType::f16;
  const auto auxiliary = [&](const ConstMatrixView& view) {
    return half && view.dtype == args.d.dtype && view.ld % 8 == 0 && reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
  };
  if (args.residual && adds_residual_alone(args)) return {.fused = true, .auxiliary = {}, .c = args.residual};
  if (args.residual || args.d_major != Major::m) return {};
  if (args.accumulate) {
    const bool alone = !args.bias && args.activation == Activation::none && !args.saved_input && !args.derivative_of;
    return {.fused = alone, .auxiliary = {}};
  }
  if (args.bias && args.bias.dtype != args.d.dtype) return {};
  if (args.derivative_of) {
    const bool alone = !args.bias && args.activation == Activation::none && !args.saved_input;
    if (!alone || args.derivative != Activation::gelu_tanh || !auxiliary(args.derivative_of)) return {};
    const cublasLtEpilogue_t epilogue = args.output_sums ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
    return {.fused = true, .epilogue = epilogue, .vector = args.output_sums.data, .auxiliary = args.derivative_of};
  }
  const bool bias = static_cast<bool>(args.bias);
  LtEpilogue result = {.fused = true, .vector = args.bias.data, .auxiliary = {}};
  if (args.saved_input) {
    if (args.activation != Activation::gelu_tanh || !auxiliary(args.saved_input)) return {};
    result.epilogue = bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    result.auxiliary = args.saved_input;
    return result;
  }
  switch (args.activation) {
    case Activation::none:
      result.epilogue = bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
      return result;
    case Activation::relu:
      result.epilogue = bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
      return result;
    case Activation::gelu_tanh:
      result.epilogue = bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
      return result;
    default:
      return {};
  }
}

cublasLtHandle_t lt_handle(CublasLt& lt, int device) {
  cublasLtHandle_t& handle = lt.handles[device];
  if (handle == nullptr) check_status(lt.cublasLtCreate(&handle), "cublasLtCreate");
  return handle;
}

void describe(CublasLt& lt, Matmul& matmul, cublasLtMatmulDescAttributes_t attribute, const auto& value) {
  check_status(lt.cublasLtMatmulDescSetAttribute(matmul.description, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
}

// The problem's matmul, its pointers set to these arguments'.
Matmul& matmul_of(CublasLt& lt, int device, const GemmArgs& args, const ColumnMajor& product, const LtEpilogue& epilogue, bool straight) {
  const auto alignment = [](const void* data) {
    return static_cast<std::uint32_t>(alignment_of(reinterpret_cast<std::uintptr_t>(data), 0));
  };
  const CublasLt::Alignments alignments = {alignment(product.first.data), alignment(product.second.data), alignment(product.c.data),
                                           alignment(epilogue.vector), alignment(epilogue.auxiliary.data)};
  Matmul& matmul = lt.matmuls[{device, problem_of(args), epilogue.epilogue, straight, alignments}];
  const bool known = matmul.asked;
  if (!known) {
    check_status(lt.cublasLtMatmulDescCreate(&matmul.description, product.compute, product.type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F),
                 "cublasLtMatmulDescCreate");
    describe(lt, matmul, CUBLASLT_MATMUL_DESC_TRANSA, product.first_op);
    describe(lt, matmul, CUBLASLT_MATMUL_DESC_TRANSB, product.second_op);
    if (straight) describe(lt, matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue.epilogue);
    const auto layout = [&](cublasLtMatrixLayout_t& result, cudaDataType_t type, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
      check_status(lt.cublasLtMatrixLayoutCreate(&result, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols), ld),
                   "cublasLtMatrixLayoutCreate");
    };
    layout(matmul.first, product.type, product.first.cols, product.first.rows, product.first.ld);
    layout(matmul.second, product.type, product.second.cols, product.second.rows, product.second.ld);
    layout(matmul.c, product.c_type, product.m, product.n, product.c.ld);
  }
  if (epilogue.vector != nullptr) describe(lt, matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, epilogue.vector);
  if (epilogue.auxiliary) {
    describe(lt, matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, epilogue.auxiliary.data);
    describe(lt, matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, epilogue.auxiliary.ld);
  }
  if (!known) {
    constexpr int kAsked = 64;
    cublasLtMatmulPreference_t preference = nullptr;
    check_status(lt.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    const std::uint64_t workspace = kLibraryWorkspace;
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check_status(lt.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
                   "cublasLtMatmulPreferenceSetAttribute");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments[0]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments[1]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments[2]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments[2]);
    cublasLtMatmulHeuristicResult_t results[kAsked];
    int found = 0;
    // A status that is no success is an answer too: nothing was found.
    lt.cublasLtMatmulAlgoGetHeuristic(lt_handle(lt, device), matmul.description, matmul.first, matmul.second, matmul.c, matmul.c,
                                      preference, kAsked, results, &found);
    lt.cublasLtMatmulPreferenceDestroy(preference);
    for (int i = 0; i < found; ++i) {
      if (results[i].state == CUBLAS_STATUS_SUCCESS) matmul.candidates.push_back(results[i].algo);
    }
    matmul.asked = true;
  }
  return matmul;
}

// Where the product goes: D itself where there is no epilogue beside what the library does.
bool straight(const GemmArgs& args, const LtEpilogue& epilogue) { return epilogue.fused || library_sums_bytes(problem_of(args)) == 0; }

// A launch as the library is asked for it. A bias gradient that it will not sum is left to the following pass.
struct LtLaunch {
  LtEpilogue epilogue;
  bool direct = false;
  ColumnMajor product;
  Matmul* matmul = nullptr;

  LtLaunch(CublasLt& lt, int device, const GemmArgs& args)
      : epilogue(lt_epilogue(args)), direct(straight(args, epilogue)), product(args, problem_of(args), library_target(args, direct)) {
    TW_CHECK(!args.output_sums || epilogue.fused, "gemm ", name_of(args.role),
             ": cuBLASLt sums D over N beside a derivative_of of D's type, ", name_of(args.d.dtype),
             ", that starts on 16 bytes and has a pitch of a multiple of 8; here it is ", name_of(args.derivative_of.dtype),
             " with a pitch of ", args.derivative_of.ld, ".");
    LtEpilogue summing = epilogue;
    summing.epilogue = CUBLASLT_EPILOGUE_BGRADB;
    summing.vector = args.bias_gradient.data;
    if (direct && epilogue.epilogue == CUBLASLT_EPILOGUE_DEFAULT && sums_bias_gradient(args)) {
      matmul = &matmul_of(lt, device, args, product, summing, direct);
      if (!matmul->candidates.empty()) epilogue = summing;
    }
    if (matmul == nullptr || matmul->candidates.empty()) matmul = &matmul_of(lt, device, args, product, epilogue, direct);
  }
};

}  // namespace

void launch_cublas(CudaQueue& queue, const GemmCall& call) {
  const GemmProblem& problem = call.problem;
  const bool straight = library_sums_bytes(problem) == 0;
  {
    const std::lock_guard lock(library_mutex);
    Cublas& library = cublas();
    const cublasHandle_t handle = library.handle_on(queue, call.args.workspace);
    const ColumnMajor p(call.args, problem, library_target(call.args, straight));
    const bool fp64 = p.type == CUDA_R_64F;
    const HostScalar alpha = alpha_of(call.args, straight), beta(p.c.accumulate ? 1.0 : 0.0);
    check_status(
        library.gemm(handle, p.first_op, p.second_op, static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), alpha.of(fp64),
                     p.first.data, p.type, static_cast<int>(p.first.ld), p.second.data, p.type, static_cast<int>(p.second.ld),
                     beta.of(fp64), p.c.data, p.c_type, static_cast<int>(p.c.ld), p.compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
  }
  finish_library(queue, call.args, straight);
}

void launch_cublas_gemv(CudaQueue& queue, const GemmCall& call) {
  const bool straight = library_sums_bytes(call.problem) == 0;
  {
    const std::lock_guard lock(library_mutex);
    Cublas& library = cublas();
    const cublasHandle_t handle = library.handle_on(queue, call.args.workspace);
    const Vectors vectors(call, library_target(call.args, straight), alpha_of(call.args, straight));
    const DType in = call.problem.operand_dtype, out = vectors.y.dtype;
    if (in == DType::f64) {
      vectors.multiply<double>(library, handle, "cublasDgemv_v2");
    } else if (in == DType::f32) {
      vectors.multiply<float>(library, handle, "cublasSgemv_v2");
    } else if (in == DType::bf16) {
      out == DType::f32 ? vectors.multiply_in_batch<__nv_bfloat16, float>(library, handle, "cublasTSSgemvStridedBatched")
                        : vectors.multiply_in_batch<__nv_bfloat16, __nv_bfloat16>(library, handle, "cublasTSTgemvStridedBatched");
    } else {
      out == DType::f32 ? vectors.multiply_in_batch<__half, float>(library, handle, "cublasHSSgemvStridedBatched")
                        : vectors.multiply_in_batch<__half, __half>(library, handle, "cublasHSHgemvStridedBatched");
    }
  }
  finish_library(queue, call.args, straight);
}

void launch_cublaslt(CudaQueue& queue, const GemmCall& call) {
  GemmArgs rest = call.args;  // what the pass behind it does
  bool direct = false;
  {
    const std::lock_guard lock(library_mutex);
    CublasLt& lt = cublaslt();
    const int device = device_of(queue).index;
    const LtLaunch launch(lt, device, call.args);
    const ColumnMajor& p = launch.product;
    const Matmul& matmul = *launch.matmul;
    direct = launch.direct;
    if (launch.epilogue.epilogue == CUBLASLT_EPILOGUE_BGRADB) rest.bias_gradient = {};
    TW_CHECK(call.plan.algorithm >= 0 && call.plan.algorithm < static_cast<int>(matmul.candidates.size()), "gemm ", name_of(call.args.role),
             ": cuBLASLt's heuristic has ", matmul.candidates.size(), " candidates for this problem, and number ", call.plan.algorithm,
             " was planned.");
    const bool fp64 = p.type == CUDA_R_64F;
    const ConstMatrixView& c = launch.epilogue.c;
    const HostScalar alpha = alpha_of(call.args, direct), beta(c ? call.args.beta.value : p.c.accumulate ? 1.0 : 0.0);
    check_status(lt.cublasLtMatmul(lt_handle(lt, device), matmul.description, alpha.of(fp64), p.first.data, matmul.first, p.second.data,
                                   matmul.second, beta.of(fp64), c ? c.data : p.c.data, matmul.c, p.c.data, matmul.c,
                                   &matmul.candidates[static_cast<std::size_t>(call.plan.algorithm)], call.args.workspace,
                                   kLibraryWorkspace, stream_of(queue)),
                 "cublasLtMatmul");
  }
  finish_library(queue, rest, direct);
}

int cublaslt_candidates(CudaQueue& queue, const GemmArgs& args) {
  const std::lock_guard lock(library_mutex);
  return static_cast<int>(LtLaunch(cublaslt(), device_of(queue).index, args).matmul->candidates.size());
}

}  // namespace tilewave
