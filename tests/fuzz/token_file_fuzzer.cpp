// A token file is refused with a sentence, or holds what its size says, every id below the vocabulary.
#include <vector>

#include "framework/data/token_file.h"
#include "tests/fuzz/fuzz.h"

using namespace tilewave;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  constexpr std::int64_t kVocabulary = 50257;
  const std::filesystem::path path = file_of(data, bytes);
  read_or_refuse([&] {
    const TokenFile file(path, kVocabulary);
    must(file.size() > 0 && file.size() <= static_cast<std::int64_t>(bytes) / 2, "as many tokens as there are bytes for");
    std::vector<std::int32_t> ids(static_cast<std::size_t>(file.size()));
    file.read(0, ids);
    for (const std::int32_t id : ids) must(id >= 0 && id < kVocabulary, "an id of the vocabulary");
    std::int32_t last = -1;
    file.read(file.size() - 1, {&last, 1});
    must(last == ids.back(), "the same token from any position");
  });
  return 0;
}
