// A picture is refused with a sentence, or has as many bytes as its shape says, in 1 or 3 channels, and is brought to a model's shape, or
// refused with a sentence there.
#include "framework/io/picture_file.h"
#include "tests/fuzz/fuzz.h"

using namespace tilewave;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::filesystem::path path = file_of(data, bytes);
  read_or_refuse([&] {
    const Picture picture = read_picture(path);
    must(picture.shape.channels == 1 || picture.shape.channels == 3, "grey or color");
    must(picture.shape.values() > 0 && picture.shape.values() == std::ssize(picture.pixels), "as many bytes as the shape says");
    for (const std::int64_t channels : {1, 3}) {
      const PictureShape wanted{.height = 5, .width = 4, .channels = channels};
      read_or_refuse([&] {
        const Picture fit = fitted(picture, {.shape = wanted, .tones = Tones::inverted}, path.native());
        must(fit.shape == wanted && std::ssize(fit.pixels) == wanted.values(), "the wanted shape");
      });
    }
  });
  return 0;
}
