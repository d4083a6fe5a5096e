// What one training step leaves for another framework to compare with (docs/use/formats.md): loss, gradients and updated weights, in
// a safetensors file.
#pragma once

#include "framework/io/safetensors_writer.h"
#include "models/step/train_step.h"

namespace tilewave {

// After step.run(): loss, gradient/<name> and, where the weights were updated, weight/<name>.
SafetensorsContents step_contents(TrainStep& step, const StepReport& report, Update update);

}  // namespace tilewave
