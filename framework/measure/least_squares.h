// A small robust least-squares fit: Levenberg and Marquardt's steps on residuals whose large values count by their size, not their
// square (Huber), with derivatives by differences. For a few dozen parameters.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace tilewave {

struct LeastSquaresProblem {
  // The residuals at these parameters; always as many.
  std::function<std::vector<double>(std::span<const double>)> residuals;
  std::vector<double> start;
  double huber = 0.1;  // residuals beyond this are outliers
  double pull = 0.0;   // a parameter that moves by 1 from its start costs as much as a residual of this
  int steps = 60;      // at most
};

// The parameters that the steps end at: never a larger cost than the start's.
std::vector<double> fit(const LeastSquaresProblem& problem);

}  // namespace tilewave
