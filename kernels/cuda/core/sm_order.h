// Which SMs of a GPU belong together: those of one GPC (graphics processing cluster), whose requests for the same lines at about the same
// time L2 is asked for once.
#pragma once

#include <vector>

#include "kernels/core/device.h"

namespace tilewave {

// The numbers of the device's SMs (%smid), 0 to sm_count - 1 each once, those of one GPC, and in it those of one TPC, one after the other;
// empty for GPUs other than Hopper's, whose rows do not ask, and for a part of one whose SMs are numbered as the whole's. Found out once a
// device, by kernels of its own, since no call of CUDA's tells.
const std::vector<int>& sms_by_gpc(const DeviceInfo& device);

}  // namespace tilewave
