// y = softmax(x) over each row's columns, where it is not part of attention or of the loss.
#pragma once

#include "framework/autograd/variable.h"

namespace tilewave {

Variable softmax(Context& context, const Variable& input);  // input's shape

}  // namespace tilewave
