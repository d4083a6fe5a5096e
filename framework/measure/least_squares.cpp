// Normal equations, solved by Cholesky's factors.
#include "framework/measure/least_squares.h"

#include <algorithm>
#include <cmath>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

using Vector = std::vector<double>;

// Solves A x = b in place of b; A is n x n, symmetric. False where it is not positive definite.
bool solve(Vector a, Vector& b) {
  const std::size_t n = b.size();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = j; i < n; ++i) {
      double sum = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      if (i == j && !(sum > 0.0)) return false;
      a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
  return true;
}

}  // namespace

std::vector<double> fit(const LeastSquaresProblem& problem) {
  constexpr double kDifference = 1e-4;
  const std::size_t n = problem.start.size();
  const auto cost = [&](const Vector& residuals, const Vector& parameters) {
    double sum = 0.0;
    for (const double r : residuals) {
      const double size = std::abs(r);
      sum += size <= problem.huber ? r * r : problem.huber * (2.0 * size - problem.huber);
    }
    for (std::size_t i = 0; i < n; ++i) sum += std::pow(problem.pull * (parameters[i] - problem.start[i]), 2.0);
    return sum;
  };

  Vector at = problem.start, residuals = problem.residuals(at);
  double least = cost(residuals, at), damping = 1e-2;
  TW_CHECK(std::isfinite(least), "a fit needs finite residuals at its start.");
  for (int step = 0; step < problem.steps && damping < 1e8; ++step) {
    // The slopes of each residual, and with the weight of each: J'WJ and J'Wr.
    std::vector<Vector> slopes(n);
    for (std::size_t i = 0; i < n; ++i) {
      Vector moved = at;
      moved[i] += kDifference;
      slopes[i] = problem.residuals(moved);
      for (std::size_t r = 0; r < residuals.size(); ++r) slopes[i][r] = (slopes[i][r] - residuals[r]) / kDifference;
    }
    Vector normal(n * n), gradient(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t r = 0; r < residuals.size(); ++r) {
        const double weight = std::min(1.0, problem.huber / std::max(std::abs(residuals[r]), 1e-300));
        gradient[i] -= weight * slopes[i][r] * residuals[r];
        for (std::size_t j = 0; j <= i; ++j) normal[i * n + j] += weight * slopes[i][r] * slopes[j][r];
      }
      gradient[i] -= problem.pull * problem.pull * (at[i] - problem.start[i]);
      normal[i * n + i] += problem.pull * problem.pull;
    }
    // A step that lowers the cost is taken; else the next is shorter.
    const double before = least;
    for (; damping < 1e8; damping *= 4.0) {
      Vector damped = normal, change = gradient;
      for (std::size_t i = 0; i < n; ++i) damped[i * n + i] += damping * (normal[i * n + i] + 1e-9);
      if (!solve(damped, change)) continue;
      Vector next = at;
      for (std::size_t i = 0; i < n; ++i) next[i] += std::min(std::max(change[i], -1.0), 1.0);
      Vector next_residuals = problem.residuals(next);
      const double next_cost = cost(next_residuals, next);
      if (!(next_cost < least)) continue;
      at = std::move(next);
      residuals = std::move(next_residuals);
      least = next_cost;
      damping = std::max(damping / 8.0, 1e-9);
      break;
    }
    if (before - least < 1e-9 * before) break;
  }
  return at;
}

}  // namespace tilewave
