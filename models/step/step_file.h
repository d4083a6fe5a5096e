// What training steps leave for another framework to compare with (docs/use/formats.md): losses, gradients, updated weights, the
// optimizer's moments and logits, in a safetensors file.
#pragma once

#include <span>
#include <string>

#include "framework/io/safetensors_writer.h"
#include "models/step/batch_file.h"
#include "models/step/train_step.h"

namespace tilewave {

// After the steps of these reports, at least one: loss [steps] and gradient/<name> of the last step; where the weights were updated
// learning_rate and gradient_norm [steps], weight/<name>, first_moment/<name> and second_moment/<name> too, and the last step's number as
// metadata, from which steps_done() has it.
SafetensorsContents step_contents(TrainStep& step, std::span<const StepReport> reports, Update update);

// Of weights and moments in a file that step_contents wrote; 0 where it says none, as a checkpoint's.
std::int64_t steps_done(const SafetensorsReader& optimizer);

// Appends the batch's logits by the weights as they are, [sequences, longest target, V], zeros behind a sequence's length. They are
// computed now and stay in the host's memory.
void add_logits(SafetensorsContents& contents, TrainStep& step, std::string name, const BatchFile& file);

}  // namespace tilewave
