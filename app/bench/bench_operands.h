// The precision that a benchmark or an exercise computes in, and how it prints the floor beside a time.
#pragma once

#include <string>

#include "app/options/command.h"
#include "framework/tensor/precision.h"

namespace tilewave {

// What --precision says; empty: bf16 on a GPU, else fp32.
Precision precision_of(const std::string& name, Backend backend);

std::string floor_text(double seconds);  // in microseconds, or "unknown"

}  // namespace tilewave
