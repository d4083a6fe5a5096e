// Pixels by their table on a GPU: the CPU's bits in every type, at pitches that allow wide accesses and at such that do not, and where
// shades start on any word.
#include "tests/kernels/gpu_operations.h"
#include "tests/kernels/ops/shades.h"

namespace tilewave {
namespace {

using namespace testing_support;

template <class T>
class GpuNormalizePixels : public GpuOperation<T> {};
TYPED_TEST_SUITE(GpuNormalizePixels, DeviceFloats);

// Shades on the device that start `before` words into memory.
class DeviceWords {
 public:
  DeviceWords(Queue& queue, const Matrix<std::int32_t>& words, std::int64_t before)
      : queue_(queue), view_(words.view()), data_(allocate(queue, (words.cols() + before) * 4)) {
    void* const first = static_cast<std::int32_t*>(data_) + before;
    copy_to_device(queue, first, view_.data, words.cols() * 4);
    view_.data = first;
  }
  ~DeviceWords() { release(queue_, data_); }
  DeviceWords(const DeviceWords&) = delete;
  DeviceWords& operator=(const DeviceWords&) = delete;

  const ConstMatrixView& view() const { return view_; }

 private:
  Queue& queue_;
  ConstMatrixView view_;
  void* data_;
};

TYPED_TEST(GpuNormalizePixels, AreTheCpusBits) {
  using T = TypeParam;
  CpuQueue cpu = make_cpu_queue(2);
  for (const std::int64_t channels : {1, 3, 8, 17}) {
    for (const std::int64_t rows : {1, 7, 256, 4099, 70'003}) {
      for (const std::int64_t padding : {0, 5, 256}) {
        const std::int64_t all = rows + padding;
        const Matrix<std::int32_t> words = words_of(every_shade(rows, channels), all * channels);
        const Matrix<float> table = table_of(channels);
        Matrix<T> expected(all, channels);
        run(cpu, NormalizePixelsArgs{.shades = words.view(), .table = table.view(), .y = expected.view(), .real_rows = rows});
        const Twin<float> device_table(this->queue_, table);
        for (const std::int64_t before : {0, 1}) {
          const DeviceWords device_words(this->queue_, words, before);
          for (const std::int64_t gap : {0, 1, 16 - static_cast<int>(channels % 16)}) {
            SCOPED_TRACE(
                concat(rows, " rows of ", channels, " channels, ", padding, " of padding, gaps of ", gap, ", ", before, " word before"));
            Matrix<T> y(all, channels, gap);
            OnDevice<T> device_y(this->queue_, y);
            run(this->queue_,
                NormalizePixelsArgs{.shades = device_words.view(), .table = device_table.view(), .y = device_y.view(), .real_rows = rows});
            device_y.fetch();
            EXPECT_TRUE(same_bits(converted<T>(y), expected));
            EXPECT_TRUE(y.guards_intact());
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewave
