// A model's parameters and the optimizer's moments to and from safetensors (docs/use/formats.md): one tensor a parameter, under its
// name, with its logical shape: weights [out, in], biases and norms one-dimensional; a buffer likewise. Padding rows are in no file; the
// metadata names vocabulary and vocabulary_padded. Moments are called "first_moment/<name>" and "second_moment/<name>". Loading takes F32
// or F64 elements into masters of either type. A tensor that is missing, surplus, of another shape or type, or holds an element that is not
// finite, is an InputError of one sentence that names file, tensor and both shapes.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/io/safetensors_writer.h"
#include "framework/nn/parameters.h"
#include "framework/optimizer/adamw.h"

namespace tilewave {

// What files call a parameter's shape: [rows, cols], or [cols] for biases and norms.
std::vector<std::int64_t> file_shape(const Parameter& parameter);

// Elements that stay on the device until the file is written; then a row at a time is on the host. What these refer to, must live
// until then.
SafetensorsContents weight_contents(Parameters& parameters);
SafetensorsContents optimizer_contents(Parameters& parameters, const AdamW& optimizer);
// Appends one tensor a parameter, "<prefix><name>".
void add_weights(SafetensorsContents& contents, Parameters& parameters, std::string_view prefix);
void add_gradients(SafetensorsContents& contents, Parameters& parameters, std::string_view prefix);
void add_moments(SafetensorsContents& contents, Parameters& parameters, const AdamW& optimizer);

// What a step between files leaves: weights under this prefix, moments, and more.
inline constexpr std::string_view kStepContent = "step";
inline constexpr std::string_view kWeightPrefix = "weight/";

// {"tilewave": what the file holds, "vocabulary": V, "vocabulary_padded": V_padded}
std::map<std::string, std::string> file_metadata(const Parameters& parameters, std::string_view content);

// Nothing is written to the model unless every name, type and shape is right. Compute copies follow their masters.
void load_weights(const std::filesystem::path& path, Parameters& parameters);
// Of the moments' own file, or of what a step between files left, of which the rest is not looked at.
void load_optimizer(const std::filesystem::path& path, Parameters& parameters, const AdamW& optimizer);

}  // namespace tilewave
