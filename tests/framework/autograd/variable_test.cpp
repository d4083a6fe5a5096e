// Autograd's bookkeeping: who gets a gradient, written once and then added to, in which order and under whose name; and the
// sentences for graphs that cannot be walked.
#include "framework/autograd/variable.h"

#include "framework/ops/add.h"
#include "framework/ops/linear.h"
#include "tests/framework/support.h"

namespace tilewave {
namespace {

using namespace testing_support;

class VariableTest : public Fp64Test {
 protected:
  Tensor seed_of(const Variable& variable, double value = 1.0) {
    return tensor_of(variable.shape(), std::vector<double>(static_cast<std::size_t>(variable.shape().elements()), value));
  }
  std::vector<double> gradient_of(const Variable& variable) { return read_elements(context, variable.gradient()); }

  const Variable a = leaf({2, 3}, 1), b = leaf({2, 3}, 2);
};

// An operation that notes in which order backward passes run and whether each slot was written before.
Variable noted(Context& context, const std::string& name, std::vector<Variable> inputs, std::vector<std::string>& notes) {
  const Tensor y = context.tensor(inputs[0].shape(), DType::f64);
  write_elements(context, y, [](std::int64_t, std::int64_t) { return 1.0; });
  return make_variable(context, y, name, std::move(inputs), [name, &notes](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
    std::string note = name + '@' + ctx.layer();
    for (GradientSlot& slot : slots) {
      if (!slot.needed()) {
        note += " -";
        continue;
      }
      const GradientSlot::Target target = slot.open(ctx);
      note += target.accumulate ? " +" : " =";
      const HostMatrix before(ctx, target.gradient), gradient(ctx, dy);
      write_elements(ctx, target.gradient,
                     [&](std::int64_t r, std::int64_t c) { return gradient(r, c) + (target.accumulate ? before(r, c) : 0.0); });
    }
    notes.push_back(note);
  });
}

TEST_F(VariableTest, WalksNewestFirstAndWritesBeforeItAdds) {
  std::vector<std::string> notes;
  context.set_layer("model");
  Variable first, second, last;
  {
    const LayerScope scope(context, "0");
    first = noted(context, "first", {a, Variable(b.value()), Variable()}, notes);
  }
  second = noted(context, "second", {first, a}, notes);
  last = noted(context, "last", {first, second, first}, notes);
  backward(context, last, seed_of(last));
  EXPECT_EQ(notes, (std::vector<std::string>{"last@model = = +", "second@model + =", "first@model.0 + - -"}));
  EXPECT_EQ(gradient_of(a), std::vector<double>(6, 4.0));  // last -> first twice, last -> second -> first, last -> second -> a
  EXPECT_EQ(context.layer(), "model");
}

TEST_F(VariableTest, LeavesAccumulateUntilReset) {
  const auto go = [&] {
    const Variable y = add(context, a, b);
    backward(context, y, seed_of(y, 2.0));
  };
  EXPECT_FALSE(a.gradient_written());
  go();
  go();
  EXPECT_EQ(gradient_of(a), std::vector<double>(6, 4.0));
  a.reset_gradient();
  EXPECT_FALSE(a.gradient_written());
  go();
  EXPECT_EQ(gradient_of(a), std::vector<double>(6, 2.0));
  EXPECT_EQ(gradient_of(b), std::vector<double>(6, 6.0));
}

TEST_F(VariableTest, SeedsStayAsTheyAre) {
  const Tensor seed = seed_of(a, 3.0);
  backward(context, add(context, a, a), seed);
  EXPECT_EQ(read_elements(context, seed), std::vector<double>(6, 3.0));
  EXPECT_EQ(gradient_of(a), std::vector<double>(6, 6.0));
}

TEST_F(VariableTest, RemembersNothingWithoutGradients) {
  const Variable constant(a.value());
  EXPECT_FALSE(add(context, constant, constant).requires_gradient());
  {
    const NoGradient scope(context);
    EXPECT_FALSE(add(context, a, b).requires_gradient());
  }
  EXPECT_TRUE(add(context, a, constant).requires_gradient());
}

TEST_F(VariableTest, GivesBackWhatIsSpent) {
  Variable y = add(context, a, b);
  std::weak_ptr<int> alive;
  {
    const auto held = std::make_shared<int>(1);
    alive = held;
    y = make_variable(context, y.value(), "hold", {y},
                      [held](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) { slots[0].adopt(ctx, dy); });
  }
  EXPECT_FALSE(alive.expired());
  backward(context, y, seed_of(y));
  EXPECT_TRUE(alive.expired());
}

TEST_F(VariableTest, BearsLongChains) {
  Variable y = a;
  for (int i = 0; i < 20000; ++i) {
    y = make_variable(context, y.value(), "pass", {y},
                      [](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) { slots[0].adopt(ctx, dy); });
  }
  backward(context, y, seed_of(y));
  EXPECT_EQ(gradient_of(a), std::vector<double>(6, 1.0));
}

TEST_F(VariableTest, NamesTheOperationsOfAGraph) {
  const Variable y = linear(context, {.x = add(context, a, add(context, a, b)), .weight = leaf({4, 3}, 3)});
  EXPECT_EQ(operations_of(y), (std::vector<std::string>{"add", "linear"}));
  EXPECT_EQ(operations_of(a), (std::vector<std::string>{}));
}

TEST_F(VariableTest, SaysWhatItCannotDifferentiate) {
  const Variable y = add(context, a, b);
  expect_error([&] { backward(context, y); }, {"add", "needs a seed"});
  expect_error([&] { backward(context, y, tensor_of({3, 2}, {1, 1, 1, 1, 1, 1})); }, {"backward", "[2, 3]", "[3, 2]"});
  expect_error([&] { backward(context, a, seed_of(a)); }, {"leaf"});
  expect_error([&] { backward(context, Variable(a.value()), seed_of(a)); }, {"nothing to do"});
  expect_error([&] { Variable().value(); }, {"empty Variable"});
  expect_error([&] { Variable::leaf(a.value(), context.persistent({3, 2}, DType::f64)); }, {"leaf", "[2, 3]", "[3, 2]"});
}

TEST_F(VariableTest, GraphsAreWalkedOnce) {
  const Variable shared = add(context, a, b);
  const Variable first = add(context, shared, a), second = add(context, shared, b);
  backward(context, first, seed_of(first));
  expect_error([&] { backward(context, first, seed_of(first)); }, {"add", "spent"});
  expect_error([&] { backward(context, second, seed_of(second)); }, {"add", "spent"});
  expect_error([&] { shared.value(); }, {"add", "backward()"});
}

TEST_F(VariableTest, SlotsAreForThoseWhoNeedThem) {
  const Variable y = make_variable(context, a.value(), "careless", {a, Variable(b.value())},
                                   [](Context& ctx, const Tensor&, std::span<GradientSlot> slots) { slots[1].open(ctx); });
  expect_error([&] { backward(context, y, seed_of(y)); }, {"needed()"});
  const Variable z = make_variable(context, a.value(), "misshapen", {a}, [](Context& ctx, const Tensor& dy, std::span<GradientSlot> slots) {
    slots[0].adopt(ctx, dy.columns(0, 2));
  });
  expect_error([&] { backward(context, z, seed_of(z)); }, {"[2, 3]", "[2, 2]"});
}

}  // namespace
}  // namespace tilewave
