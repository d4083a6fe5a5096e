// What tests on a GPU share: a fixture that skips loudly where there is none, and matrices whose storage, guards and gaps
// included, lies on the device.
#pragma once

#include <gtest/gtest.h>

#include "kernels/core/device.h"
#include "kernels/core/memory.h"
#include "kernels/core/queue.h"
#include "tests/kernels/support.h"

namespace tilewave::testing_support {

// Suites that derive from it are named Gpu*.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const CudaDevices devices = probe_cuda();
    if (devices.usable.empty()) GTEST_SKIP() << devices.refused;
    device_ = devices.usable.front();
    queue_ = make_cuda_queue(device_.index);
  }

  Queue queue_;
  DeviceInfo device_;
};

// A host matrix's twin on the device. fetch() brings back every byte, so that what must not be written can be looked at too.
template <class T>
class OnDevice {
 public:
  OnDevice(Queue& queue, Matrix<T>& host) : queue_(queue), host_(host), data_(allocate(queue, std::max<std::int64_t>(bytes(), 1))) {
    copy_to_device(queue_, data_, host_.storage().data(), bytes());
  }
  ~OnDevice() { release(queue_, data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  MatrixView view() const {
    MatrixView view = host_.view();
    view.data =
        static_cast<std::byte*>(data_) + (static_cast<std::byte*>(view.data) - reinterpret_cast<std::byte*>(host_.storage().data()));
    return view;
  }
  void fetch() { copy_to_host(queue_, host_.storage().data(), data_, bytes()); }

 private:
  std::int64_t bytes() const { return static_cast<std::int64_t>(host_.storage().size() * sizeof(T)); }

  Queue& queue_;
  Matrix<T>& host_;
  void* data_;
};

}  // namespace tilewave::testing_support
