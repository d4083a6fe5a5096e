// A safetensors file is refused with a sentence, or every byte behind its header belongs to one tensor and can be read.
#include <vector>

#include "framework/io/safetensors_reader.h"
#include "tests/fuzz/fuzz.h"

using namespace tilewave;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::filesystem::path path = file_of(data, bytes);
  read_or_refuse([&] {
    const SafetensorsReader reader(path);
    std::int64_t end = reader.tensors().empty() ? static_cast<std::int64_t>(bytes) : reader.tensors().front().offset;
    for (const StoredTensor& tensor : reader.tensors()) {
      must(tensor.offset == end && &reader.at(tensor.name) == &tensor, "tensors lie one after another, under their names");
      std::vector<std::byte> elements(static_cast<std::size_t>(tensor.bytes));
      reader.read(tensor, elements);
      must(std::equal(elements.begin(), elements.end(), reinterpret_cast<const std::byte*>(data) + tensor.offset), "its own bytes");
      end += tensor.bytes;
    }
    must(end == static_cast<std::int64_t>(bytes), "the file is covered");
    for (const StoredTensor& tensor : reader.tensors()) read_or_refuse([&] { read_int32_matrix(reader, tensor.name); });
  });
  return 0;
}
