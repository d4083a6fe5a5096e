// An IDX file of pictures, or of labels, is refused with a sentence, or holds as many bytes as its sizes say. The first byte says which.
#include <vector>

#include "framework/io/idx_file.h"
#include "tests/fuzz/fuzz.h"

using namespace tilewave;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  const std::filesystem::path path = file_of(data + 1, bytes - 1);
  read_or_refuse([&] {
    if (data[0] % 2 == 0) {
      const IdxPictures pictures = read_idx_pictures(path);
      must(pictures.count > 0 && pictures.shape.values() > 0, "a picture");
      must(pictures.count * pictures.shape.values() == std::ssize(pictures.pixels), "as many bytes as the sizes say");
      must(pictures.pixels.size() < bytes, "no more bytes than the file has");
    } else {
      const std::vector<std::uint8_t> labels = read_idx_labels(path);
      must(!labels.empty() && labels.size() + 8 == bytes - 1, "what is behind the header");
      must(labels.back() == data[bytes - 1], "the last label last");
    }
  });
  return 0;
}
