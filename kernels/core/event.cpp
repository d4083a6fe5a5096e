// Events and ranges of whichever queue there is.
#include "kernels/core/event.h"

namespace tilewave {

void Event::record(Queue& queue) {
  if (auto* cuda = std::get_if<CudaQueue>(&queue)) tilewave::record(*cuda, cuda_);
  time_ = std::chrono::steady_clock::now();
}

double Event::seconds_since(const Event& earlier) const {
  TW_CHECK((cuda_ == nullptr) == (earlier.cuda_ == nullptr), "time between a GPU's event and a CPU's cannot be told.");
  if (cuda_) return seconds_between(*earlier.cuda_, *cuda_);
  return std::chrono::duration<double>(time_ - earlier.time_).count();
}

void Event::wait() const {
  if (cuda_) tilewave::wait(*cuda_);
}

NamedRange::NamedRange(const Queue& queue, const char* name) : open_(std::holds_alternative<CudaQueue>(queue)) {
  if (open_) push_cuda_range(name);
}

NamedRange::~NamedRange() {
  if (open_) pop_cuda_range();
}

}  // namespace tilewave
