// Elementwise operations over size.
#include "models/figures/figures.h"
#include "models/figures/operation_points.h"

namespace tilewave {
namespace {

constexpr FigurePanel kActivationsPanels[] = {{.title = "duration", .quantity = Quantity::time},
                                              {.title = "bandwidth", .quantity = Quantity::bandwidth}};
constexpr NamedOperation kActivationsOperations[] = {
    {"relu", "ReLU"},       {"relu_backward", "ReLU, backward"},       {"gelu", "GELU"}, {"gelu_backward", "GELU, backward"},
    {"sigmoid", "sigmoid"}, {"sigmoid_backward", "sigmoid, backward"}, {"tanh", "tanh"}, {"tanh_backward", "tanh, backward"}};

}  // namespace

const Figure kActivationsFigure = {
    .name = "activations",
    .references = "Deep Learning Performance, figure 34",
    .shows = "ReLU, GELU, sigmoid and tanh, forward and backward: time over size",
    .claim = "An activation is limited by memory: its time is in proportion to what it reads and writes, whatever function it is.",
    .axis = "elements",
    .scale = AxisScale::log,
    .panels = kActivationsPanels,
    .points = [](const FigureSetting& setting) { return operation_points(kActivationsOperations, setting); },
    .effects = operation_effects};

}  // namespace tilewave
