// A user's program: adds two matrices with tilewave's kernels.
#include <cstdio>
#include <vector>

#include "kernels/add.h"
#include "kernels/queue.h"
#include "kernels/view.h"

int main() {
  tilewave::Queue queue = tilewave::make_cpu_queue();
  std::vector<float> a = {1, 2, 3, 4}, b = {10, 20, 30, 40};
  const tilewave::MatrixView y{.data = a.data(), .rows = 2, .cols = 2, .ld = 2};
  run(queue, tilewave::AddArgs{.a = y, .b = {b.data(), 2, 2, 2, tilewave::DType::f32}, .y = y});
  std::printf("%g %g %g %g\n", a[0], a[1], a[2], a[3]);
}
