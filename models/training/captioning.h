// What a trained run with a stem and a decoder says that pictures in files show (models/training/picture_files.h). All of them are read
// before the model is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/core/device.h"
#include "kernels/core/queue.h"

namespace tilewave {

struct CaptioningRequest {
  std::filesystem::path run;
  std::vector<std::filesystem::path> files;
  std::int64_t beams = 1;  // 1: greedy
  Queue queue;
  DeviceInfo device;
};

struct CaptionedPicture {
  std::string name;  // the file's; of an IDX file's pictures NAME[index], from 0
  std::string caption;
};

struct Captioning {
  std::int64_t step = 0;  // that the weights were saved after
  std::vector<CaptionedPicture> pictures;
  std::vector<std::string> notes;  // sentences a person should read
};

// InputError where the folder is no run of such a model, has no valid checkpoint, or a file holds no picture that can be fitted.
Captioning caption_files(const CaptioningRequest& request);

}  // namespace tilewave
