// Tensors as views of shared memory, and their elements on the host.
#include "framework/tensor/tensor.h"

#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

class TensorTest : public Fp64Test {};

TEST_F(TensorTest, ColumnsAndRowsAreTheSameMemory) {
  const Tensor tensor = context.tensor({3, 5}, DType::f64);
  write_elements(context, tensor, [](std::int64_t r, std::int64_t c) { return static_cast<double>(10 * r + c); });
  const Tensor part = tensor.columns(1, 3).slice_rows(1, 2);
  EXPECT_EQ(part.shape(), (Shape{2, 3}));
  EXPECT_EQ(part.pitch(), tensor.pitch());
  EXPECT_EQ(read_elements(context, part), (std::vector<double>{11, 12, 13, 21, 22, 23}));
  write_elements(context, part, std::vector<double>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(read_elements(context, tensor), (std::vector<double>{0, 1, 2, 3, 4, 10, 1, 2, 3, 14, 20, 4, 5, 6, 24}));
}

TEST_F(TensorTest, PartsKeepTheMemoryAlive) {
  Tensor part;
  std::weak_ptr<void> memory;
  {
    const auto storage = std::make_shared<std::vector<double>>(12, 1.5);
    memory = storage;
    part = Tensor(std::shared_ptr<void>(storage, storage->data()), {3, 4}, 4, DType::f64).slice_rows(2, 1);
  }
  EXPECT_FALSE(memory.expired());
  EXPECT_EQ(read_elements(context, part), (std::vector<double>{1.5, 1.5, 1.5, 1.5}));
  part = {};
  EXPECT_TRUE(memory.expired());
}

TEST_F(TensorTest, RoundsToItsType) {
  const auto through = [&](DType dtype, double value) {
    const Tensor tensor = context.tensor({1, 1}, dtype);
    write_elements(context, tensor, std::vector<double>{value});
    return read_elements(context, tensor)[0];
  };
  EXPECT_EQ(through(DType::f64, 0.1), 0.1);
  EXPECT_EQ(through(DType::f32, 0.1), static_cast<double>(0.1F));
  EXPECT_EQ(through(DType::bf16, 1.00390625), 1.0);  // half way, to even
  EXPECT_EQ(through(DType::bf16, 1.01171875), 1.015625);
  EXPECT_EQ(through(DType::f16, 65504.0), 65504.0);
  EXPECT_EQ(through(DType::i32, -7.0), -7.0);
}

TEST_F(TensorTest, CountsItsBytesWithThePitch) {
  const Tensor tensor = context.tensor({3, 5}, DType::f32);
  EXPECT_EQ(tensor.pitch(), 32);
  EXPECT_EQ(tensor.bytes(), 3 * 32 * 4);
  EXPECT_EQ(tensor.view().bytes(), 3 * 5 * 4);
}

TEST_F(TensorTest, RefusesWhatIsNotThere) {
  const Tensor tensor = context.tensor({3, 5}, DType::f64);
  expect_error([&] { tensor.columns(3, 3); }, {"columns 3 to 6", "[3, 5]"});
  expect_error([&] { tensor.columns(-1, 2); }, {"[3, 5]"});
  expect_error([&] { tensor.slice_rows(3, 1); }, {"rows 3 to 4", "[3, 5]"});
  expect_error([&] { Tensor(nullptr, {3, 5}, 4, DType::f64); }, {"[3, 5]", "pitch of 4"});
  expect_error([&] { write_elements(context, tensor, std::vector<double>(4)); }, {"4 elements", "[3, 5]"});
  expect_error([&] { write_ids(context, tensor, std::vector<std::int32_t>(15)); }, {"15 ids", "f64"});
  expect_error(
      [&] {
        check_same_shape("op", "a", {1, 2}, "b", {2, 1});
      },
      {"op: a has shape [1, 2] and b has shape [2, 1]; they must be the same."});
}

TEST_F(TensorTest, OfATraceCannotBeRead) {
  Context traced(TraceQueue{}, context.device());
  const Tensor tensor = traced.tensor({2, 2}, DType::f32);
  write_elements(traced, tensor, std::vector<double>{1, 2, 3, 4});
  expect_error([&] { read_elements(traced, tensor); }, {"traced"});
}

}  // namespace
}  // namespace tilewave
