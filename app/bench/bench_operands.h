// The precision that a benchmark or an exercise computes in.
#pragma once

#include <string>

#include "app/options/command.h"
#include "framework/tensor/precision.h"

namespace tilewave {

// What --precision says; empty: bf16 on a GPU, else fp32.
Precision precision_of(const std::string& name, Backend backend);

}  // namespace tilewave
