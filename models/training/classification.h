// What a trained run that sees says of pictures in files: PNG, PGM and PPM, one picture each, and IDX files of many. A picture of another
// size or other channels is fitted as framework/io/picture.h says, and all of them are read before the model is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/core/device.h"
#include "kernels/core/queue.h"

namespace tilewave {

struct ClassificationRequest {
  std::filesystem::path run;
  std::vector<std::filesystem::path> files;
  std::int64_t top = 1;  // classes of a picture, the likeliest; all where there are fewer
  Queue queue;
  DeviceInfo device;
};

struct ClassProbability {
  std::int64_t label = 0;
  double probability = 0.0;
};

struct ClassifiedPicture {
  std::string name;                         // the file's; of an IDX file's pictures NAME[index], from 0
  std::vector<ClassProbability> likeliest;  // in order; of equals the lower label first
};

struct Classification {
  std::int64_t step = 0;  // that the weights were saved after
  std::vector<ClassifiedPicture> pictures;
  std::vector<std::string> notes;  // sentences a person should read
};

// InputError where the folder is no run of a model that sees, has no valid checkpoint, or a file holds no picture that can be fitted.
Classification classify(const ClassificationRequest& request);

}  // namespace tilewave
