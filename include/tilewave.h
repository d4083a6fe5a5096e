// tilewave in C: a layer's matrix products with all that stands around them, plans of a training step, and training.
//
// Every function returns a tw_status, TW_OK or why not; tw_message() then is the sentence about this thread's last failure. No exception
// leaves a function, and none ends the process. Structs begin as zeros ({0}): zero means absent, the default, or none. Functions may be
// called from any thread; those that multiply take turns. Texts handed over are UTF-8, and tw_free gives them back.
//
// A matrix lies row by row, a row's elements one behind the other, `stride` elements from one row to the next: at least `columns`, any
// number, and on any address that is a multiple of an element's size. Nothing is copied: unaligned rows have kernels of their own. A vector
// is a matrix of one row. What an operation writes may not overlap what it reads, but where it is said.
//
// On a GPU work is put into the stream, and the call returns before it is done. Workspace is tilewave's own, one for each stream. Where
// the stream is being captured into a CUDA graph, the graph has a workspace that stays until the process ends, so that replays and other
// launches do not meet in it; launch an operation once before it is captured, so that its kernel is loaded.
#ifndef TILEWAVE_H
#define TILEWAVE_H

#include <stdint.h>

#if defined(__GNUC__)
#define TW_API __attribute__((visibility("default")))
#else
#define TW_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TW_INTERFACE 1  // counts changes that break callers

typedef enum tw_status {
  TW_OK = 0,
  TW_FAILED = 1,  // no memory, no device, a number that is not finite
  TW_INPUT = 2,   // an argument, a recipe or a file is at fault
  TW_STOPPED = 3  // the caller asked for it
} tw_status;

TW_API int32_t tw_interface(void);    // TW_INTERFACE of the library
TW_API const char* tw_version(void);  // "0.2.0"
TW_API int32_t tw_has_cuda(void);     // whether it was built with CUDA kernels
TW_API const char* tw_message(void);  // one sentence; this thread's next failure takes its place
TW_API void tw_free(char* text);

// ---- Matrix products ----

typedef enum tw_backend { TW_CPU = 0, TW_CUDA = 1 } tw_backend;
typedef enum tw_dtype { TW_F64 = 0, TW_F32 = 1, TW_BF16 = 2, TW_F16 = 3 } tw_dtype;  // a CPU takes F64 and F32, and BF16 in a plain product
typedef enum tw_activation { TW_NONE = 0, TW_RELU = 1, TW_GELU_TANH = 2, TW_GELU_ERF = 3, TW_SILU = 4 } tw_activation;

typedef struct tw_place {
  int32_t backend;  // tw_backend
  int32_t threads;  // of a CPU; 0: as many as the process may use
  int32_t index;    // of a GPU
  int32_t reserved;
  void* stream;  // a cudaStream_t; null: the default stream
} tw_place;

typedef struct tw_matrix {
  void* data;  // null: absent
  int64_t rows, columns, stride;
  int32_t dtype;  // tw_dtype
  int32_t reserved;
} tw_matrix;

// role         weight         tokens                 result
// TW_FORWARD   W [out, in]    X  [tokens, in]        Y  [tokens, out]   Y = X W^T
// TW_DGRAD     W [out, in]    dY [tokens, out]       dX [tokens, in]    dX = dY W
// TW_WGRAD     X [tokens, in] dY [tokens, out]       dW [out, in]       dW = dY^T X
typedef enum tw_role { TW_FORWARD = 0, TW_DGRAD = 1, TW_WGRAD = 2 } tw_role;

// z = the product, + bias; saved_input = z; z = activation(z); z = z * derivative'(derivative_of); z = z + residual;
// result = z, or result + z with `accumulate`. TW_SILU is none of these activations: tw_activate has it.
typedef struct tw_gemm {
  tw_place place;
  int32_t role;  // tw_role
  int32_t tf32;  // nonzero: F32 operands are multiplied as TF32
  tw_matrix weight, tokens, result;
  tw_matrix bias;                  // [1, out], forward
  tw_matrix saved_input;           // like result
  tw_matrix derivative_of;         // like result: what was saved_input, or of a ReLU its output
  tw_matrix residual;              // like result, and may be it
  tw_matrix bias_gradient;         // [1, out], wgrad: the sums of dY over tokens, of result's type or F32
  int32_t activation, derivative;  // tw_activation
  int32_t accumulate;
  int32_t reserved;
  const char* kernel;  // one to force ("cublaslt", "persistent/128x192"); null: the cost model's choice
} tw_gemm;
TW_API tw_status tw_multiply(const tw_gemm* gemm);

// y = f(x), or f(x) * up with TW_SILU where up is given (SwiGLU).
typedef struct tw_elementwise {
  tw_place place;
  int32_t activation;  // tw_activation, not TW_NONE
  int32_t reserved;
  tw_matrix x, up, y;
  tw_matrix dy, dx, dup;  // of the gradient, which reads x, up and dy and writes dx, which may be dy, and dup
} tw_elementwise;
TW_API tw_status tw_activate(const tw_elementwise* arguments);
TW_API tw_status tw_activate_gradient(const tw_elementwise* arguments);

// ---- Plans and training ----

typedef struct tw_recipe {
  const char* path;
  const char* const* settings;  // "section.key=value", over what the file says
  int64_t setting_count;
} tw_recipe;

// JSON lines, as tilewave plan RECIPE --json prints them (docs/use/formats.md).
typedef struct tw_plan_request {
  tw_recipe recipe;
  const char* profile;  // a GPU that need not be here ("h200"); null: `device`
  const char* device;   // "auto", "cpu", "cuda", "cuda:N"; null: "auto"
  int32_t threads;
  int32_t reserved;
} tw_plan_request;
TW_API tw_status tw_plan(const tw_plan_request* request, char** json_lines);

typedef struct tw_step {
  int64_t step;  // counted from 1
  int64_t target_tokens;
  double loss;  // nats per target token, with label smoothing
  double learning_rate, gradient_norm, target_tokens_per_s, elapsed_s;
} tw_step;

typedef struct tw_train_request {
  tw_recipe recipe;
  const char* run;      // the run's folder; null: runs/<recipe>, then -2, -3
  const char* device;   // as above
  const char* weights;  // a file or folder to begin with; null: the recipe's own
  int32_t threads;
  int32_t resume, force;  // nonzero: as --resume and --force
  int32_t reserved;
  void* caller;  // handed to the functions below, each of which may be null
  // Nonzero asks to stop: the step is saved, and tw_train returns TW_STOPPED.
  int32_t (*on_step)(void* caller, const tw_step* step);
  void (*on_validation)(void* caller, int64_t step, double loss);
  void (*on_note)(void* caller, const char* sentence);
  // Asked between batches and groups of sentences, where no step is taken.
  int32_t (*stopped)(void* caller);
} tw_train_request;
// One JSON object: run, steps, stopped, and of a run that has ended what summary.json has. It is there with TW_STOPPED too, unless the run
// was stopped before its first byte.
TW_API tw_status tw_train(const tw_train_request* request, char** json);

// What this machine can run on, one JSON object a line: backend, name, index, and of a GPU capability.
TW_API tw_status tw_devices(char** json_lines);

#ifdef __cplusplus
}
#endif

#endif
