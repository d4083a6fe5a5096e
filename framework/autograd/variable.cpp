// The walk: reachable nodes by decreasing number (a node is younger than its inputs, so this order is topological).
#include "framework/autograd/variable.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "kernels/ops/add.h"

namespace tilewave {

struct VariableNode {
  Tensor value;
  Tensor gradient;
  bool requires_gradient = false;
  bool loss = false;
  bool gradient_written = false;
  std::uint64_t number = 0;
  std::vector<Variable> inputs;
  std::vector<VariableNode*> input_nodes;
  Backward backward;
  std::string operation;
  std::string layer;
  std::string consumed_by;
  std::string used_by;  // the last operation that took it as an input
  std::function<void()> before_reading;
};

bool GradientSlot::needed() const { return node_ != nullptr && node_->requires_gradient; }

GradientSlot::Target GradientSlot::open(Context& context) {
  TW_CHECK(needed(), "a gradient was computed that nobody needs; ask GradientSlot::needed() first.");
  if (!node_->gradient) node_->gradient = context.tensor(node_->value.shape(), node_->value.dtype());
  return {.gradient = node_->gradient, .accumulate = std::exchange(node_->gradient_written, true)};
}

void GradientSlot::adopt(Context& context, const Tensor& gradient) {
  check_same_shape("backward", "the input", node_->value.shape(), "its gradient", gradient.shape());
  if (!node_->gradient) {
    node_->gradient = gradient;
    node_->gradient_written = true;
    return;
  }
  const Target target = open(context);
  if (target.gradient.data() == gradient.data()) return;
  context.launch(
      AddArgs{.a = gradient.view(), .b = target.accumulate ? ConstMatrixView(target.view()) : ConstMatrixView(), .y = target.view()});
}

Variable::Variable(Tensor value) : node_(std::make_shared<VariableNode>()) { node_->value = std::move(value); }

Variable Variable::leaf(Tensor value, Tensor gradient) {
  Variable variable(std::move(value));
  variable.node_->requires_gradient = true;
  if (gradient) variable.bind_gradient(std::move(gradient));
  return variable;
}

void Variable::bind_gradient(Tensor gradient) const {
  check_same_shape("leaf", "the value", node_->value.shape(), "its gradient", gradient.shape());
  node_->gradient = std::move(gradient);
}

void Variable::bind_value(Tensor value) const {
  check_same_shape("leaf", "the value", node_->value.shape(), "what it is bound to", value.shape());
  node_->value = std::move(value);
}

void Variable::before_reading(std::function<void()> hook) const { node_->before_reading = std::move(hook); }

const Tensor& Variable::value() const {
  TW_CHECK(node_, "an empty Variable has no value.");
  TW_CHECK(node_->consumed_by.empty(), "the result of ", node_->operation, " was consumed by ", node_->consumed_by,
           ", which reuses its memory; read it before.");
  if (node_->before_reading) node_->before_reading();
  return node_->value;
}

const Shape& Variable::shape() const {
  TW_CHECK(node_, "an empty Variable has no shape.");
  return node_->value.shape();
}

bool Variable::requires_gradient() const { return node_ && node_->requires_gradient; }
Tensor Variable::gradient() const { return node_ ? node_->gradient : Tensor(); }
bool Variable::gradient_written() const { return node_ && node_->gradient_written; }
void Variable::reset_gradient() const {
  if (node_) node_->gradient_written = false;
}

bool Variable::is_loss() const { return node_ && node_->loss; }
void Variable::mark_as_loss() const { node_->loss = true; }

Variable make_variable(Context& context, Tensor value, std::string_view operation, std::vector<Variable> inputs, Backward backward) {
  context.inspected(context.layer(), operation, value);
  Variable result(std::move(value));
  VariableNode& node = *result.node_;
  node.operation = operation;
  for (const Variable& input : inputs) {
    if (!input.node_) continue;
    TW_CHECK(input.node_->consumed_by.empty() || (input.node_->consumed_by == operation && input.node_->used_by.empty()), operation,
             " reads the result of ", input.node_->operation, ", which ", input.node_->consumed_by,
             " has consumed to reuse its memory; call ", operation, " before.");
    TW_CHECK(!input.node_->loss, operation, " reads the result of ", input.node_->operation,
             ", which is a loss: it has scaled its gradient itself and can only be the root of backward().");
    input.node_->used_by = operation;
    node.requires_gradient = node.requires_gradient || (context.gradient_mode() == GradientMode::on && input.node_->requires_gradient);
  }
  if (node.requires_gradient) {
    node.number = context.next_node() + 1;
    node.layer = context.layer();
    node.backward = std::move(backward);
    for (const Variable& input : inputs) node.input_nodes.push_back(input.node_.get());
    node.inputs = std::move(inputs);
  }
  return result;
}

namespace {

// That nobody but this operation reads the node's value, now or later. `with` says what it is overwritten with.
void check_sole_reader(const VariableNode& node, const Tensor& taken, std::string_view operation, std::string_view with) {
  TW_CHECK(node.used_by.empty(), operation, " overwrites the result of ", node.operation, with, ", but ", node.used_by,
           " reads it too; give ", operation, " a result of its own.");
  constexpr std::int64_t kNodeAndCaller = 2;
  TW_CHECK(taken.owners() == kNodeAndCaller, operation, " overwrites the result of ", node.operation, with,
           ", but somebody else holds that memory: ", node.operation,
           " itself, for its backward pass or as a view, or a copied Tensor; give ", operation, " a result that nobody keeps.");
}

}  // namespace

void consume(const Variable& variable, const Tensor& taken, std::string_view operation) {
  VariableNode& node = *variable.node_;
  TW_CHECK(node.backward, operation, " would overwrite a leaf with its gradient, but leaves keep their values; give ", operation,
           " the result of an operation.");
  check_sole_reader(node, taken, operation, " with its gradient");
  node.consumed_by = operation;
  node.gradient = node.value;
  node.gradient_written = true;
}

void overwrite(const Variable& variable, const Tensor& taken, std::string_view operation) {
  VariableNode& node = *variable.node_;
  TW_CHECK(!node.operation.empty(), operation, " would overwrite a leaf, but leaves keep their values; give ", operation,
           " the result of an operation.");
  check_sole_reader(node, taken, operation, "");
  node.consumed_by = operation;
}

namespace {

// The nodes with a backward pass that lead to this one, in the order of the walk.
std::vector<VariableNode*> walk_from(VariableNode* root) {
  std::vector<VariableNode*> order;
  std::unordered_set<VariableNode*> seen;
  std::vector<VariableNode*> open = {root};
  while (!open.empty()) {
    VariableNode* node = open.back();
    open.pop_back();
    if (node == nullptr || !node->requires_gradient || !seen.insert(node).second) continue;
    TW_CHECK(node->backward || node->operation.empty(), "backward() meets the result of ", node->operation,
             ", whose graph an earlier backward() has spent; compute it again, or add the results up and go backward once.");
    if (!node->backward) continue;  // a leaf
    order.push_back(node);
    open.insert(open.end(), node->input_nodes.begin(), node->input_nodes.end());
  }
  std::sort(order.begin(), order.end(), [](const VariableNode* a, const VariableNode* b) { return a->number > b->number; });
  return order;
}

// How many operations of the walk each leaf is an input of.
std::unordered_map<const VariableNode*, int> terms_of_leaves(const std::vector<VariableNode*>& order) {
  std::unordered_map<const VariableNode*, int> terms;
  for (const VariableNode* node : order) {
    for (const VariableNode* input : node->input_nodes) {
      if (input != nullptr && input->requires_gradient && input->operation.empty()) ++terms[input];
    }
  }
  return terms;
}

// Around an operation's backward pass. The negative control of gradient checks: one more time the gradient that was written.
void plant_wrong_term(Context& context, std::span<GradientSlot> slots) {
  const auto wrong = std::find_if(slots.begin(), slots.end(), [](const GradientSlot& slot) { return slot.needed(); });
  const GradientSlot::Target target = wrong->open(context);
  context.launch(AddArgs{.a = target.view(), .b = target.view(), .y = target.view()});
}

// What it wrote, for whoever looks on.
void show_gradients(const Context& context, const VariableNode& node) {
  for (const VariableNode* input : node.input_nodes) {
    if (input == nullptr || !input->gradient_written) continue;
    context.inspected(node.layer, node.operation + "'s backward pass", input->gradient);
  }
}

void differentiate(Context& context, VariableNode& node) {
  context.set_layer(node.layer);
  std::vector<GradientSlot> slots(node.input_nodes.begin(), node.input_nodes.end());
  node.backward(context, node.gradient, slots);
  if (context.planted() == node.operation) plant_wrong_term(context, slots);
  if (context.inspecting()) show_gradients(context, node);
}

}  // namespace

std::vector<std::string> operations_of(const Variable& root) {
  std::vector<std::string> operations;
  for (const VariableNode* node : walk_from(root.node_.get())) operations.push_back(node->operation);
  std::sort(operations.begin(), operations.end());
  operations.erase(std::unique(operations.begin(), operations.end()), operations.end());
  return operations;
}

void backward(Context& context, const Variable& root, const Tensor& seed, const LeafDone& leaf_done) {
  VariableNode* root_node = root.node_.get();
  TW_CHECK(root.requires_gradient(), "backward() has nothing to do: no leaf that requires a gradient leads to this result.");
  TW_CHECK(!root_node->operation.empty(), "backward() starts from the result of an operation, not from a leaf.");
  const std::vector<VariableNode*> order = walk_from(root_node);
  TW_CHECK(root_node->loss != static_cast<bool>(seed), "backward() from ", root_node->operation,
           root_node->loss ? " takes no seed: a loss has scaled its gradient itself." : " needs a seed: only a loss can do without.");
  if (seed) {
    check_same_shape("backward", "the result", root.shape(), "the seed", seed.shape());
    root_node->gradient = context.tensor(seed.shape(), seed.dtype());
    context.launch(AddArgs{.a = seed.view(), .b = {}, .y = root_node->gradient.view()});
  }
  root_node->gradient_written = true;

  std::unordered_map<const VariableNode*, int> terms = leaf_done ? terms_of_leaves(order) : std::unordered_map<const VariableNode*, int>();
  // A node's inputs are kept until the walk is over: the nodes still to come live in them. Its memory is not.
  std::vector<Variable> keep;
  const std::string layer = context.layer();
  for (VariableNode* node : order) {
    if (node->gradient_written) differentiate(context, *node);
    if (leaf_done) {
      for (const Variable& input : node->inputs) {
        const auto leaf = terms.find(input.node_.get());
        if (leaf != terms.end() && --leaf->second == 0) leaf_done(input);
      }
    }
    node->backward = nullptr;
    node->gradient = {};
    if (node != root_node) {
      node->value = {};
      if (node->consumed_by.empty()) node->consumed_by = "backward()";
    }
    keep.insert(keep.end(), std::make_move_iterator(node->inputs.begin()), std::make_move_iterator(node->inputs.end()));
    node->inputs.clear();
    node->input_nodes.clear();
  }
  context.set_layer(layer);
}

}  // namespace tilewave
