// Variable: a tensor that remembers how it was computed. Each operation makes one from its inputs and one closure, which is
// handed the gradient of the result and a slot for the gradient of each input. backward() walks from the result to the leaves,
// newest node first, and gives back each node's memory as soon as it is done.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/tensor/context.h"
#include "framework/tensor/tensor.h"

namespace tilewave {

struct VariableNode;

// Where a closure puts the gradient of one input.
class GradientSlot {
 public:
  explicit GradientSlot(VariableNode* node) : node_(node) {}

  struct Target {
    Tensor gradient;
    bool accumulate = false;  // add to what is there (beta = 1); otherwise write, whatever is there

    MatrixView view() const { return gradient.view(); }
  };

  // False where nobody wants this gradient: then nothing may be computed for it.
  bool needed() const;
  // Memory of the input's shape to write to or add to, of its type but for parameters in 16 bits, whose gradients are fp32. A slot opened
  // must be written completely.
  Target open(Context& context);
  // Takes a gradient that is already there: as it is where it is the first, added otherwise. The giver must not use it again.
  void adopt(Context& context, const Tensor& gradient);

 private:
  VariableNode* node_;
};

// The gradient of the result is absent where the result is a loss.
using Backward = std::function<void(Context& context, const Tensor& gradient, std::span<GradientSlot> inputs)>;

class Variable;
// Called with a leaf when backward() has written the last term of its gradient.
using LeafDone = std::function<void(const Variable& leaf)>;

class Variable {
 public:
  Variable() = default;
  explicit Variable(Tensor value);  // a constant

  // A leaf whose gradient is kept: backward() writes it to `gradient` the first time and adds to it until reset_gradient(). Without one it
  // is bound before the first backward().
  static Variable leaf(Tensor value, Tensor gradient);
  void bind_gradient(Tensor gradient) const;
  // A leaf's value may be without memory, a shape alone, until it is bound.
  void bind_value(Tensor value) const;
  // Called by each value() of a leaf before its memory is handed out: of what may be on its way, to wait for it.
  void before_reading(std::function<void()> hook) const;

  explicit operator bool() const { return node_ != nullptr; }
  const Tensor& value() const;  // throws where an operation has consumed it in place, or backward() has spent it
  const Shape& shape() const;
  std::int64_t rows() const { return shape().rows; }
  std::int64_t cols() const { return shape().cols; }
  bool requires_gradient() const;
  Tensor gradient() const;  // of a leaf
  bool gradient_written() const;
  void reset_gradient() const;  // the next backward() writes instead of adding
  // A loss has scaled its gradient itself: as the root of backward() it takes no seed, and it can be nothing else.
  bool is_loss() const;
  void mark_as_loss() const;

 private:
  friend Variable make_variable(Context&, Tensor, std::string_view, std::vector<Variable>, Backward);
  friend void consume(const Variable&, const Tensor&, std::string_view);
  friend void overwrite(const Variable&, const Tensor&, std::string_view);
  friend void backward(Context&, const Variable&, const Tensor&, const LeafDone&);
  friend std::vector<std::string> operations_of(const Variable&);
  std::shared_ptr<VariableNode> node_;
};

// The result of an operation. Without gradient mode, or where no input requires a gradient, the closure is dropped.
// Absent inputs (an optional bias) are allowed and keep their place among the slots.
Variable make_variable(Context& context, Tensor value, std::string_view operation, std::vector<Variable> inputs, Backward backward);

// Marks an operation's result as overwritten by its own gradient (cross entropy over its logits). Nobody else may have used it, or
// use it later; nor may anybody hold its memory but for `taken`, the caller's own copy: an operation that saved its result for the
// backward pass (softmax) would find the gradient there.
void consume(const Variable& variable, const Tensor& taken, std::string_view operation);

// Marks an operation's result as overwritten by the operation that reads it (rope turns queries and keys where they lie), on the same
// terms.
void overwrite(const Variable& variable, const Tensor& taken, std::string_view operation);

// Gradients of `root`, weighted by `seed` (root's shape; absent for a loss), into every leaf that requires one. The graph is
// spent afterwards.
void backward(Context& context, const Variable& root, const Tensor& seed = {}, const LeafDone& leaf_done = {});

// The names of the operations whose backward passes backward(root) would run, each once, in alphabetical order.
std::vector<std::string> operations_of(const Variable& root);

}  // namespace tilewave
