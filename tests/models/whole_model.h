// What a whole model says of one pair, alone in its batch, without cache and without dropout: what decoding and validation are
// compared with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "tests/models/training/small_runs.h"

namespace tilewave {

// Logits of every position of a target: [target + 1][V].
inline std::vector<std::vector<double>> whole_logits(SmallRun& run, const std::vector<std::int32_t>& source,
                                                     const std::vector<std::int32_t>& target) {
  const NoGradient scope(run.context);
  const auto source_rows = static_cast<std::int64_t>(source.size()), target_rows = static_cast<std::int64_t>(target.size()) + 1;
  const BatchShape shape{.source_rows = source_rows, .target_rows = target_rows, .sequence = std::max(source_rows, target_rows)};
  Packer packer(shape);
  EXPECT_TRUE(packer.add_pair(source, target));
  const BatchTensors tensors = make_batch_tensors(run.context, shape);
  upload(run.context, std::move(packer).take(), tensors);
  const Tensor logits = run.step.model().logits(tensors, shape.sequence, {}).value();
  std::vector<std::vector<double>> rows;
  for (std::int64_t row = 0; row < logits.rows(); ++row)
    rows.push_back(read_elements(run.context, logits.slice_rows(row, 1).columns(0, run.resolved.shapes.vocabulary)));
  return rows;
}

// Of the first `vocabulary` ids, as if there were no others.
inline std::vector<double> log_probabilities(std::vector<double> logits, std::size_t vocabulary) {
  logits.resize(vocabulary);
  double exponentials = 0.0;
  for (const double logit : logits) exponentials += std::exp(logit);
  for (double& logit : logits) logit -= std::log(exponentials);
  return logits;
}

}  // namespace tilewave
