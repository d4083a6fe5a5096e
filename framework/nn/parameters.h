// The named parameters of a model: what files hold, what the optimizer updates, what gradient checks probe.
// Names are paths, "decoder.3.ffn.up.weight". Buffers are what a layer keeps of the batches that it has seen (running statistics): files
// hold them too, and the layer's own launches move them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/nn/parameter.h"
#include "framework/nn/parameter_layers.h"
#include "framework/nn/parameter_state.h"
#include "framework/tensor/context.h"
#include "framework/tensor/sharding.h"

namespace tilewave {

// Each by itself, or a layer's one behind another, as ranks want them.
enum class ParameterStorage : std::uint8_t { separate, by_layer };

class Parameters {
 public:
  // By layer, ranks share out what the context's options say.
  Parameters(Context& context, std::uint64_t seed, ParameterStorage storage = ParameterStorage::separate);
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  // Allocates and initialises one. Throws where the name is taken.
  Variable add(const ParameterSpec& spec);
  // A buffer of the statistics' type. Throws where the name is taken.
  Tensor add_buffer(const ParameterSpec& spec);

  Context& context() { return context_; }
  const std::deque<Parameter>& all() const { return parameters_; }
  const std::deque<Parameter>& buffers() const { return buffers_; }
  const Parameter* find(std::string_view name) const;
  std::int64_t count() const;  // logical elements

  // By layer: gives every parameter its memory, as far as add() has not, once all have been added.
  void place();
  const std::vector<ParameterLayer>& layers() const { return layers_; }  // none where they are separate
  Sharding sharding() const { return sharding_; }
  // What this rank has of all compute copies becomes everybody's, where masters are in shares: launched beside what follows, layer by layer
  // in the order of the forward pass. The first reader of a parameter waits for its layer.
  void gather_compute_copies();
  // What nobody has read since is there too.
  void await_compute_copies();
  // An update has moved each rank's own share alone: until the next gather a compute copy is of two steps.
  void outdate_compute_copies() { outdated_ = sharding_ != Sharding::none; }
  bool compute_copies_outdated() const { return outdated_; }

  ParameterState master(std::size_t index) const;
  ParameterState master(const Parameter& parameter) const;  // or of a buffer
  // Of another state in shares, a share a layer: the parameter's part.
  ParameterState state_in(const std::vector<Tensor>& shares, std::size_t index) const;

  // The next backward() writes gradients instead of adding to them.
  void reset_gradients() const;
  // Gradients that no operation wrote since reset_gradients() become zero.
  void zero_unwritten_gradients() const;
  // Writes the compute copies from the masters, after these were read from a file. Those of shares follow what is written by themselves.
  void refresh_compute_copies() const;

 private:
  struct Index {
    std::size_t layer = 0, place = 0;
  };
  void place_gradients(ParameterLayer& layer, const Tensor& gradients) const;
  void place_sharded(ParameterLayer& layer);
  std::vector<Tensor> gradient_memory() const;
  void await_compute_copy(std::size_t layer);

  Context& context_;
  std::uint64_t seed_;
  ParameterStorage storage_;
  Sharding sharding_;
  bool outdated_ = false;
  std::vector<ParameterLayer> layers_;
  std::vector<std::optional<Context::BesideMark>> on_their_way_;  // of each layer whose compute copies nobody has waited for
  std::vector<Index> places_;                                     // of each parameter in layers_
  std::deque<Parameter> parameters_, buffers_;
  std::unordered_map<std::string_view, std::size_t> by_name_;  // index
};

}  // namespace tilewave
