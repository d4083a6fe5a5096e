// A model.safetensors.index.json is refused with a sentence, or names for each tensor a file that can only lie beside it.
#include "models/exchange/weight_source.h"
#include "tests/fuzz/fuzz.h"

using namespace tilewave;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::filesystem::path folder = "/models/of/somebody";
  read_or_refuse([&] {
    const auto places = parse_weight_index(std::string(data, data + bytes), "fuzz.index.json");
    must(!places.empty(), "an index names a tensor");
    for (const auto& [tensor, shard] : places) {
      const std::filesystem::path path = (folder / shard).lexically_normal();
      must(path.parent_path() == folder && path.has_filename(), "a shard lies beside its index");
    }
  });
  return 0;
}
