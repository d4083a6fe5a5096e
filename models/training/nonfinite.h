// Which tensor of a step is the first that is not finite.
#pragma once

#include <cstdint>
#include <string>

#include "models/step/train_step.h"

namespace tilewave {

// "the output in decoder.3.ffn, row 17, column 4 (inf)": the step is done again, launch by launch, without its update. Of several ranks,
// which all call it, the first one that found something is named.
std::string first_nonfinite(TrainStep& step, const PassBatches& batches, std::int64_t number);

}  // namespace tilewave
