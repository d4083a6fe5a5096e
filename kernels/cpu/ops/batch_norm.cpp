// Batch normalization on a CPU; the formulas stand in kernels/ops/batch_norm.h. A task has a few neighbouring channels, or one where rows
// are channels. In one pass it goes on to their results while the caches have them; in several all statistics come first.
#include "kernels/ops/batch_norm.h"

#include <array>
#include <cmath>

#include "kernels/cpu/core/row_ranges.h"

namespace tilewave {
namespace {

constexpr std::int64_t kBatchNormLanes = 16;
using BatchNormLanes = std::array<double, kBatchNormLanes>;

// Values of one task that lie side by side: of neighbouring channels, or of one.
struct ChannelRun {
  std::int64_t row = 0, column = 0, length = 0;
};

// The channels of one task. A lane is a channel, or all lanes are one channel's, 16 columns apart.
class ChannelTask {
 public:
  template <class Args>
  ChannelTask(const Args& args, std::int64_t index)
      : rows_(args.x.rows), cols_(args.x.cols), all_(args.gamma.cols), layout_(args.layout), first_(index * width_of(args.layout)) {
    channels_ = std::min(width_of(layout_), all_ - first_);
  }
  template <class Args>
  static std::int64_t count(const Args& args) {
    return ceil_div(args.gamma.cols, width_of(args.layout));
  }

  std::int64_t first() const { return first_; }
  std::int64_t channels() const { return channels_; }
  double values() const { return static_cast<double>(layout_ == ImageLayout::nhwc ? rows_ : rows_ / all_ * cols_); }

  template <class Fn>
  void each_run(const Fn& fn) const {
    if (layout_ == ImageLayout::nhwc) {
      for (std::int64_t row = 0; row < rows_; ++row) fn(ChannelRun{.row = row, .column = first_, .length = channels_});
    } else {
      for (std::int64_t row = first_; row < rows_; row += all_) fn(ChannelRun{.row = row, .column = 0, .length = cols_});
    }
  }
  // fn(place, lane) for each value of a run.
  template <class Fn>
  static void each_value(const ChannelRun& run, const Fn& fn) {
    std::int64_t at = 0;
    for (; at + kBatchNormLanes <= run.length; at += kBatchNormLanes) {
#pragma GCC ivdep
      for (std::int64_t lane = 0; lane < kBatchNormLanes; ++lane) fn(at + lane, lane);
    }
    for (std::int64_t lane = 0; at + lane < run.length; ++lane) fn(at + lane, lane);
  }
  // The sums of the channels, each in all of its lanes.
  BatchNormLanes folded(BatchNormLanes lanes) const {
    if (layout_ == ImageLayout::nhwc) return lanes;
    double sum = 0.0;
    for (const double lane : lanes) sum += lane;
    lanes.fill(sum);
    return lanes;
  }
  // A number of each channel, in all of its lanes.
  template <class Fn>
  BatchNormLanes of_channels(const Fn& fn) const {
    BatchNormLanes lanes{};
    for (std::int64_t lane = 0; lane < kBatchNormLanes; ++lane) {
      lanes[static_cast<std::size_t>(lane)] =
          lane < channels_ || layout_ == ImageLayout::nchw ? fn(first_ + std::min(lane, channels_ - 1)) : 0.0;
    }
    return lanes;
  }

 private:
  static constexpr std::int64_t width_of(ImageLayout layout) { return layout == ImageLayout::nhwc ? kBatchNormLanes : 1; }

  std::int64_t rows_, cols_, all_;
  ImageLayout layout_;
  std::int64_t first_, channels_ = 0;
};

template <class T, class View>
auto* at_run(const View& view, const ChannelRun& run) {
  return view.template row<T>(run.row) + run.column;
}

template <class T>
void take_statistics(const BatchNormArgs& args, const ChannelTask& task) {
  T *mean_row = args.mean.row<T>(0), *rstd_row = args.rstd.row<T>(0);
  const double values = task.values();
  BatchNormLanes mean{}, variance{};
  if (args.mode == BatchNormMode::evaluation) {
    mean = task.of_channels([&](std::int64_t c) { return static_cast<double>(args.running_mean.row<T>(0)[c]); });
    variance = task.of_channels([&](std::int64_t c) { return static_cast<double>(args.running_variance.row<T>(0)[c]); });
  } else {
    task.each_run([&](const ChannelRun& run) {
      const T* x = at_run<T>(args.x, run);
      ChannelTask::each_value(run, [&](std::int64_t i, std::int64_t lane) { mean[static_cast<std::size_t>(lane)] += x[i]; });
    });
    mean = task.folded(mean);
    for (double& lane : mean) lane /= values;
    task.each_run([&](const ChannelRun& run) {
      const T* x = at_run<T>(args.x, run);
      ChannelTask::each_value(run, [&](std::int64_t i, std::int64_t lane) {
        const double distance = x[i] - mean[static_cast<std::size_t>(lane)];
        variance[static_cast<std::size_t>(lane)] += distance * distance;
      });
    });
    variance = task.folded(variance);
    for (double& lane : variance) lane /= values;
  }
  for (std::int64_t lane = 0; lane < task.channels(); ++lane) {
    const std::int64_t c = task.first() + lane;
    const double m = mean[static_cast<std::size_t>(lane)], v = variance[static_cast<std::size_t>(lane)];
    mean_row[c] = static_cast<T>(m);
    rstd_row[c] = static_cast<T>(1.0 / std::sqrt(v + args.epsilon));
    if (args.mode == BatchNormMode::evaluation || !args.running_mean) continue;
    T &running_mean = args.running_mean.row<T>(0)[c], &running_variance = args.running_variance.row<T>(0)[c];
    running_mean = static_cast<T>((1.0 - args.momentum) * running_mean + args.momentum * m);
    running_variance = static_cast<T>((1.0 - args.momentum) * running_variance + args.momentum * v * values / (values - 1.0));
  }
}

template <class T>
void normalize_channels(const BatchNormArgs& args, const ChannelTask& task) {
  const auto of = [&](const auto& view) {
    return task.of_channels([&](std::int64_t c) { return static_cast<double>(view.template row<T>(0)[c]); });
  };
  const BatchNormLanes mean = of(args.mean), rstd = of(args.rstd), gamma = of(args.gamma), beta = of(args.beta);
  task.each_run([&](const ChannelRun& run) {
    const T* x = at_run<T>(args.x, run);
    T* y = at_run<T>(args.y, run);
    ChannelTask::each_value(run, [&](std::int64_t i, std::int64_t at) {
      const auto lane = static_cast<std::size_t>(at);
      y[i] = static_cast<T>((x[i] - mean[lane]) * rstd[lane] * gamma[lane] + beta[lane]);
    });
  });
}

// dbeta and dgamma of this pass alone, which dx needs; they lie in the first two rows of `partial`.
template <class T>
void sum_channels(const BatchNormBackwardArgs& args, const ChannelTask& task) {
  const auto of = [&](const auto& view) {
    return task.of_channels([&](std::int64_t c) { return static_cast<double>(view.template row<T>(0)[c]); });
  };
  const BatchNormLanes mean = of(args.mean), rstd = of(args.rstd);
  BatchNormLanes dbeta{}, dgamma{};
  task.each_run([&](const ChannelRun& run) {
    const T *x = at_run<T>(args.x, run), *dy = at_run<T>(args.dy, run);
    ChannelTask::each_value(run, [&](std::int64_t i, std::int64_t at) {
      const auto lane = static_cast<std::size_t>(at);
      dbeta[lane] += dy[i];
      dgamma[lane] += dy[i] * ((x[i] - mean[lane]) * rstd[lane]);
    });
  });
  dbeta = task.folded(dbeta);
  dgamma = task.folded(dgamma);
  for (std::int64_t lane = 0; lane < task.channels(); ++lane) {
    const std::int64_t c = task.first() + lane;
    const T beta = static_cast<T>(dbeta[static_cast<std::size_t>(lane)]), gamma = static_cast<T>(dgamma[static_cast<std::size_t>(lane)]);
    args.partial.row<T>(0)[c] = beta;
    args.partial.row<T>(1)[c] = gamma;
    T &beta_sum = args.dbeta.row<T>(0)[c], &gamma_sum = args.dgamma.row<T>(0)[c];
    beta_sum = args.accumulate_beta ? beta_sum + beta : beta;
    gamma_sum = args.accumulate_gamma ? gamma_sum + gamma : gamma;
  }
}

template <class T>
void differentiate_channels(const BatchNormBackwardArgs& args, const ChannelTask& task) {
  const auto of = [&](const auto& view, std::int64_t row) {
    return task.of_channels([&](std::int64_t c) { return static_cast<double>(view.template row<T>(row)[c]); });
  };
  const BatchNormLanes mean = of(args.mean, 0), rstd = of(args.rstd, 0), gamma = of(args.gamma, 0);
  BatchNormLanes mean_dy = of(args.partial, 0), mean_dyh = of(args.partial, 1);
  const double part = args.mode == BatchNormMode::training ? 1.0 / task.values() : 0.0;
  for (double& lane : mean_dy) lane *= part;
  for (double& lane : mean_dyh) lane *= part;
  task.each_run([&](const ChannelRun& run) {
    const T *x = at_run<T>(args.x, run), *dy = at_run<T>(args.dy, run);
    T* dx = at_run<T>(args.dx, run);
    ChannelTask::each_value(run, [&](std::int64_t i, std::int64_t at) {
      const auto lane = static_cast<std::size_t>(at);
      const double h = (x[i] - mean[lane]) * rstd[lane];
      const T value = static_cast<T>(gamma[lane] * rstd[lane] * (dy[i] - mean_dy[lane] - h * mean_dyh[lane]));
      dx[i] = args.accumulate ? dx[i] + value : value;
    });
  });
}

// Both parts of every task, one after the other, or the first of all tasks before the second of any.
template <class Args, class First, class Second>
void run_passes(CpuQueue& queue, const Args& args, const First& first, const Second& second) {
  const std::int64_t tasks = ChannelTask::count(args);
  if (args.passes == BatchNormPasses::one) {
    queue.threads->parallel_for(tasks, [&](std::int64_t index, int) {
      const ChannelTask task(args, index);
      first(task);
      second(task);
    });
    return;
  }
  queue.threads->parallel_for(tasks, [&](std::int64_t index, int) { first(ChannelTask(args, index)); });
  queue.threads->parallel_for(tasks, [&](std::int64_t index, int) { second(ChannelTask(args, index)); });
}

}  // namespace

void run(CpuQueue& queue, const BatchNormArgs& args) {
  check(args);
  with_cpu_float(args.x.dtype, "batch_norm", [&]<class T>(T) {
    run_passes(
        queue, args, [&](const ChannelTask& task) { take_statistics<T>(args, task); },
        [&](const ChannelTask& task) { normalize_channels<T>(args, task); });
  });
}

void run(CpuQueue& queue, const BatchNormBackwardArgs& args) {
  check(args);
  with_cpu_float(args.x.dtype, "batch_norm_backward", [&]<class T>(T) {
    run_passes(
        queue, args, [&](const ChannelTask& task) { sum_channels<T>(args, task); },
        [&](const ChannelTask& task) { differentiate_channels<T>(args, task); });
  });
}

}  // namespace tilewave
