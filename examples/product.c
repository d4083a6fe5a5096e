// tilewave from C: a layer's product with bias and ReLU, a plan, and what a mistake comes to.
//   cc -std=c99 -I PREFIX/include examples/product.c -L PREFIX/lib -ltilewave -o product && ./product recipes/tiny.toml
#include <stdio.h>
#include <string.h>
#include <tilewave.h>

static tw_matrix matrix(float* data, int64_t rows, int64_t columns) {
  const tw_matrix whole = {data, rows, columns, columns, TW_F32, 0};
  return whole;
}

int main(int argc, char** argv) {
  float x[] = {1, 2, 3, -4, 5, 6}, weight[] = {1, 2, 2, 2, 5, 5}, bias[] = {0.5f, -0.5f}, y[4] = {0};  // two tokens, three in, two out
  tw_gemm gemm;
  tw_plan_request request;
  char* lines = NULL;
  memset(&gemm, 0, sizeof gemm);
  gemm.role = TW_FORWARD;
  gemm.tokens = matrix(x, 2, 3);
  gemm.weight = matrix(weight, 2, 3);
  gemm.result = matrix(y, 2, 2);
  gemm.bias = matrix(bias, 1, 2);
  gemm.activation = TW_RELU;
  if (tw_multiply(&gemm) != TW_OK) {
    fprintf(stderr, "product: %s\n", tw_message());
    return 1;
  }
  printf("%.1f %.1f\n%.1f %.1f\n", y[0], y[1], y[2], y[3]);

  memset(&request, 0, sizeof request);
  request.recipe.path = argc > 1 ? argv[1] : "recipes/tiny.toml";
  request.profile = "h200";
  if (tw_plan(&request, &lines) != TW_OK) {
    fprintf(stderr, "product: %s\n", tw_message());
    return 1;
  }
  fputs(strstr(lines, "{\"kind\": \"step\""), stdout);
  tw_free(lines);

  gemm.tokens.stride = 2;
  if (tw_multiply(&gemm) == TW_INPUT) printf("refused: %s\n", tw_message());
  return 0;
}
