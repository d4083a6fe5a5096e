// Allocation and initialisation of parameters.
#include "framework/nn/parameters.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "framework/tensor/host_tensor.h"
#include "framework/tensor/random.h"
#include "kernels/gemm/tiling.h"
#include "kernels/ops/collective.h"
#include "kernels/ops/convert.h"
#include "kernels/ops/fill.h"

namespace tilewave {
namespace {

// The normal distribution by Box and Muller, from two uniform draws of one stream.
double standard_normal(std::uint64_t key) {
  Random random(key);
  const double radius = (static_cast<double>(random.next() >> 11) + 1.0) * 0x1p-53;  // in (0, 1]
  const double angle = static_cast<double>(random.next() >> 11) * 0x1p-53;
  return std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * std::numbers::pi * angle);
}

std::uint64_t hash(std::string_view name) {
  std::uint64_t value = name.size();
  for (const char character : name) value = mix64(value ^ (static_cast<unsigned char>(character) + kGolden64));
  return value;
}

// Draws rows [first, last) of a tensor, `cols` elements each.
struct RowsDrawn {
  std::int64_t first = 0, last = 0, cols = 0;
};
void draw_rows(std::vector<double>& elements, const RowsDrawn& rows, const Initialization& initialization, std::uint64_t key) {
  const auto draw = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      double* const out = elements.data() + (row - rows.first) * rows.cols;
      for (std::int64_t column = 0; column < rows.cols; ++column) {
        out[column] = initialization.mean + initialization.deviation * standard_normal(random_key(key, row, column));
      }
    }
  };
  constexpr std::int64_t kElementsAThread = 1 << 16;
  const std::int64_t count = rows.last - rows.first;
  const std::int64_t wanted = std::min<std::int64_t>(std::thread::hardware_concurrency(), count * rows.cols / kElementsAThread);
  const std::int64_t share = ceil_div(count, std::max<std::int64_t>(1, wanted));
  std::vector<std::jthread> threads;
  std::int64_t begin = rows.first;
  try {
    for (; begin + share < rows.last; begin += share) threads.emplace_back(draw, begin, begin + share);
  } catch (const std::system_error&) {
    // No further thread can be had: this one draws what is left.
  }
  draw(begin, rows.last);
}

// Each element is a function of its place alone, so that threads may share them out. In pieces: the whole as doubles is twice a tensor.
void initialize(Context& context, const ParameterState& state, std::uint64_t seed) {
  if (context.tracing()) return;
  constexpr std::int64_t kPieceElements = 1 << 20;
  const ParameterSpec& spec = state.parameter().spec;
  const Shape& shape = spec.shape;
  const std::uint64_t key = random_key(seed, hash(spec.name));
  const std::int64_t piece_rows =
      std::clamp<std::int64_t>(kPieceElements / std::max<std::int64_t>(1, shape.cols), 1, std::max<std::int64_t>(1, shape.rows));
  std::vector<double> elements;
  for (std::int64_t first = 0; first < shape.rows; first += piece_rows) {
    const RowsDrawn rows{.first = first, .last = std::min(first + piece_rows, shape.rows), .cols = shape.cols};
    elements.assign(static_cast<std::size_t>((rows.last - first) * rows.cols), spec.initialization.mean);
    if (spec.initialization.deviation > 0.0) draw_rows(elements, rows, spec.initialization, key);
    state.write(context, {.first_row = first, .rows = rows.last - first, .columns = shape.cols},
                [&](std::int64_t row, std::int64_t column) { return elements[static_cast<std::size_t>(row * rows.cols + column)]; });
  }
}

// The master, rounded to the compute copy's type.
void refresh_compute_copy(Context& context, const Parameter& parameter) {
  const Tensor& compute = parameter.variable.value();
  if (!parameter.master || compute.data() == parameter.master.data() || context.tracing()) return;
  context.launch(ConvertArgs{.x = parameter.master.view(), .y = compute.view()});
}

}  // namespace

Parameters::Parameters(Context& context, std::uint64_t seed, ParameterStorage storage)
    : context_(context),
      seed_(seed),
      storage_(storage),
      sharding_(storage == ParameterStorage::separate ? Sharding::none : context.options().sharding) {}

Variable Parameters::add(const ParameterSpec& spec) {
  TW_CHECK(find(spec.name) == nullptr, "two parameters are called ", spec.name, "; give one of them another name.");
  TW_CHECK(spec.padded_rows == 0 || spec.padded_rows >= spec.shape.rows, spec.name, ": ", spec.padded_rows, " padded rows cannot hold ",
           spec.shape.rows, " rows.");
  const PrecisionTable& types = context_.precision();
  const Shape stored{spec.padded_rows == 0 ? spec.shape.rows : spec.padded_rows, spec.shape.cols};
  Parameter& parameter = parameters_.emplace_back(Parameter{.spec = spec, .variable = {}, .master = {}});
  by_name_.emplace(parameter.spec.name, parameters_.size() - 1);
  const Tensor later(nullptr, stored, stored.cols, types.compute);  // a shape, until place()
  if (sharding_ != Sharding::none) return parameter.variable = Variable::leaf(later, {});
  parameter.master = context_.persistent(stored, types.master);
  const Tensor compute = types.compute == types.master ? parameter.master : context_.persistent(stored, types.compute);
  const bool separate = storage_ == ParameterStorage::separate;
  parameter.variable = Variable::leaf(compute, separate ? context_.persistent(stored, types.gradient) : Tensor());
  initialize(context_, ParameterState(parameter, parameter.master), seed_);
  refresh_compute_copy(context_, parameter);
  return parameter.variable;
}

Tensor Parameters::add_buffer(const ParameterSpec& spec) {
  const bool taken =
      find(spec.name) != nullptr || std::ranges::any_of(buffers_, [&](const Parameter& one) { return one.spec.name == spec.name; });
  TW_CHECK(!taken, "a parameter or a buffer is called ", spec.name, " already; give one of them another name.");
  Parameter& buffer = buffers_.emplace_back(
      Parameter{.spec = spec, .variable = {}, .master = context_.persistent(spec.shape, context_.precision().statistics)});
  initialize(context_, ParameterState(buffer, buffer.master), seed_);
  return buffer.master;
}

void Parameters::place() {
  if (storage_ == ParameterStorage::separate) return;
  TW_CHECK(layers_.empty(), "these parameters have been given their places already.");
  const PrecisionTable& types = context_.precision();
  const bool shares = sharding_ != Sharding::none;
  layers_ =
      layers_of(context_, parameters_, shares ? std::vector{types.gradient, types.master, types.compute} : std::vector{types.gradient});
  const std::vector<Tensor> gradients = gradient_memory();
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    place_gradients(layers_[layer], gradients[layer]);
    if (shares) place_sharded(layers_[layer]);
  }
  places_.resize(parameters_.size());
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const std::vector<ParameterPlace>& places = layers_[layer].places;
    for (std::size_t place = 0; place < places.size(); ++place) places_[places[place].index] = {.layer = layer, .place = place};
  }
  if (!shares) return;
  on_their_way_.resize(layers_.size());
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    for (const ParameterPlace& place : layers_[layer].places)
      place.parameter->variable.before_reading([this, layer] { await_compute_copy(layer); });
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) initialize(context_, master(i), seed_);
}

// Each layer's own; where gradients are in shares, one of two that layers of one make take turns in. The backward walk is then at work on
// the next layer while ranks sum this one.
std::vector<Tensor> Parameters::gradient_memory() const {
  const DType dtype = context_.precision().gradient;
  std::vector<Tensor> memory;
  struct Made {
    std::vector<Tensor> buffers;
    std::size_t layers = 0;
  };
  std::map<std::vector<std::int64_t>, Made> made;
  for (const ParameterLayer& layer : layers_) {
    std::vector<std::int64_t> make = {layer.elements};
    for (const ParameterPlace& place : layer.places)
      make.insert(make.end(), {place.first, place.elements, place.pitch, place.parameter->variable.cols()});
    Made& same = made[make];
    constexpr std::size_t kTurns = 2;
    if (sharding_ != Sharding::gradients || same.buffers.size() < kTurns)
      same.buffers.push_back(context_.persistent({1, layer.elements}, dtype));
    memory.push_back(sharding_ == Sharding::gradients ? same.buffers[same.layers++ % kTurns] : same.buffers.back());
  }
  return memory;
}

void Parameters::place_gradients(ParameterLayer& layer, const Tensor& gradients) const {
  layer.gradients = gradients;
  for (const ParameterPlace& place : layer.places) place.parameter->variable.bind_gradient(rows_in(gradients, place));
}

void Parameters::place_sharded(ParameterLayer& layer) {
  const PrecisionTable& types = context_.precision();
  const ShareRange own = share_of(layer, context_.ranks(), context_.ranks().rank);
  const auto part_of = [&](const Tensor& whole) { return whole.columns(own.first, own.count); };
  layer.compute = context_.persistent({1, layer.elements}, types.compute);
  layer.master_share = types.master == types.compute ? part_of(layer.compute) : context_.persistent({1, own.count}, types.master);
  layer.gradient_share = sharding_ == Sharding::gradients ? context_.persistent({1, own.count}, types.gradient) : part_of(layer.gradients);
  for (const ParameterPlace& place : layer.places) place.parameter->variable.bind_value(rows_in(layer.compute, place));
}

void Parameters::gather_compute_copies() {
  if (sharding_ == Sharding::none) return;
  const Communicator& ranks = context_.ranks();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const ParameterLayer& layer = layers_[i];
    const LayerScope scope(context_, layer.name);
    const ShareRange own = share_of(layer, ranks, ranks.rank);
    context_.launch_beside(
        AllGatherArgs{.x = layer.compute.columns(own.first, own.count).view(), .y = layer.compute.view(), .ranks = ranks});
    on_their_way_[i] = context_.mark_beside();
  }
  outdated_ = false;
}

void Parameters::await_compute_copies() {
  std::ranges::fill(on_their_way_, std::nullopt);
  context_.await_ranks();
}

void Parameters::await_compute_copy(std::size_t layer) {
  if (const std::optional<Context::BesideMark> mark = std::exchange(on_their_way_[layer], std::nullopt)) context_.await(*mark);
}

ParameterState Parameters::master(std::size_t index) const {
  if (sharding_ == Sharding::none) return {parameters_[index], parameters_[index].master};
  const ParameterLayer& layer = layers_[places_[index].layer];
  return {layer, layer.places[places_[index].place], layer.master_share, parameters_[index].variable.value()};
}

ParameterState Parameters::master(const Parameter& parameter) const {
  const auto found = by_name_.find(parameter.spec.name);
  return found == by_name_.end() ? ParameterState(parameter, parameter.master) : master(found->second);
}

ParameterState Parameters::state_in(const std::vector<Tensor>& shares, std::size_t index) const {
  const ParameterLayer& layer = layers_[places_[index].layer];
  return {layer, layer.places[places_[index].place], shares[places_[index].layer], {}};
}

const Parameter* Parameters::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &parameters_[found->second];
}

std::int64_t Parameters::count() const {
  std::int64_t elements = 0;
  for (const Parameter& parameter : parameters_) elements += parameter.shape().elements();
  return elements;
}

void Parameters::reset_gradients() const {
  for (const Parameter& parameter : parameters_) parameter.variable.reset_gradient();
}

void Parameters::zero_unwritten_gradients() const {
  for (const Parameter& parameter : parameters_) {
    if (!parameter.variable.gradient_written()) context_.launch(FillArgs{.y = parameter.variable.gradient().view(), .value = 0.0});
  }
}

void Parameters::refresh_compute_copies() const {
  for (const Parameter& parameter : parameters_) refresh_compute_copy(context_, parameter);
}

}  // namespace tilewave
