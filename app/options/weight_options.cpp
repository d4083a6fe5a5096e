#include "app/options/weight_options.h"

#include "framework/io/file.h"
#include "kernels/core/error.h"

namespace tilewave {

void WeightOptions::add_to(CLI::App& command, const std::string& without) {
  command.add_option("--weights", wanted.path, concat("a .safetensors file, a folder of Hugging Face, or a run; without it, ", without))
      ->type_name("PATH");
  command.add_flag_callback(
      "--weights-partial", [this] { wanted.fit = WeightFit::partial; }, "load the weights that fit, and list the others");
}

void WeightOptions::check() const {
  TW_CHECK_INPUT(wanted.fit == WeightFit::whole || !wanted.path.empty(),
                 "--weights-partial goes with --weights PATH; name a file or folder.");
  TW_CHECK_INPUT(wanted.path.empty() || is_there(wanted.path), "--weights ", wanted.path.string(), ": there is no such file or folder.");
}

}  // namespace tilewave
