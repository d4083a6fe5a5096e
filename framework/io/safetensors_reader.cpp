// Reads the safetensors format: a SAX handler that knows the one shape a header may have and refuses all else on sight (so depth,
// duplicates and memory are bounded without a document in memory), then the checks that need all tensors at once.
#include "framework/io/safetensors_reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>
#include <utility>

namespace tilewave {
namespace {

constexpr std::string_view kDamaged = "; the file is damaged or not a safetensors file: copy or write it again.";

// {"__metadata__": {text: text}, name: {"dtype": text, "shape": [counts], "data_offsets": [begin, end]}}
class HeaderHandler {
 public:
  HeaderHandler(const std::string& file, std::vector<StoredTensor>& tensors, std::map<std::string, std::string>& metadata)
      : file_(file), tensors_(tensors), metadata_(metadata) {}

  bool null() {  // the reference writes and reads metadata that is not there so
    if (place_ != Place::header || key_ != "__metadata__") unexpected("null");
    if (std::exchange(has_metadata_, true)) fail("__metadata__ stands twice in the header");
    return true;
  }
  bool boolean(bool) { unexpected("a boolean"); }
  bool number_integer(std::int64_t) { unexpected("a negative number"); }
  bool number_float(double, const std::string&) { unexpected("a number that is no integer below 2^63"); }
  bool binary(nlohmann::json::binary_t&) { unexpected("binary data"); }

  bool number_unsigned(std::uint64_t value) {
    if (place_ != Place::shape && place_ != Place::offsets) unexpected("a number");
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) unexpected("a number of 2^63 or more");
    std::vector<std::int64_t>& list = place_ == Place::shape ? tensors_.back().shape : offsets_;
    if (list.size() == (place_ == Place::shape ? kMaxDimensions : 2)) unexpected("one number too many");
    list.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(std::string& value) {
    if (place_ == Place::metadata) {
      if (!metadata_.emplace(key_, value).second) fail("the key \"", printable(key_), "\" stands twice in __metadata__");
    } else if (place_ == Place::tensor && key_ == "dtype") {
      const auto type = stored_type_named(value);
      if (!type) unknown_type(value);
      tensors_.back().type = *type;
    } else {
      unexpected("a text");
    }
    return true;
  }

  bool key(std::string& name) {
    key_ = name;
    if (place_ == Place::tensor) {
      const int bit = name == "dtype" ? 1 : name == "shape" ? 2 : name == "data_offsets" ? 4 : 0;
      if (bit == 0) fail(where(), "has the unknown key \"", printable(name), "\"");
      if ((seen_ & bit) != 0) fail(where(), "has the key \"", name, "\" twice");
      seen_ |= bit;
    }
    return true;
  }

  bool start_object(std::size_t) {
    if (place_ == Place::before) {
      place_ = Place::header;
    } else if (place_ == Place::header && key_ == "__metadata__") {
      if (std::exchange(has_metadata_, true)) fail("__metadata__ stands twice in the header");
      place_ = Place::metadata;
    } else if (place_ == Place::header) {
      place_ = Place::tensor;
      tensors_.push_back({.name = key_});
      offsets_.clear();
      seen_ = 0;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool end_object() {
    if (place_ == Place::tensor) {
      if (seen_ != 7) fail(where(), "lacks one of dtype, shape and data_offsets");
      if (offsets_.size() != 2) fail(where(), "has ", offsets_.size(), " data_offsets instead of 2");
      finish_tensor();
    }
    place_ = Place::header;
    return true;
  }

  bool start_array(std::size_t) {
    if (place_ != Place::tensor || key_ == "dtype") unexpected("a list");
    place_ = key_ == "shape" ? Place::shape : Place::offsets;
    return true;
  }

  bool end_array() {
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    fail("the header is no JSON: it breaks off or goes wrong at its byte ", position);
  }

 private:
  enum class Place { before, header, metadata, tensor, shape, offsets };

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw InputError(concat(file_, ": ", parts..., kDamaged));
  }
  // A later edition of the format may have it: its bytes cannot be counted here, which is no damage.
  [[noreturn]] void unknown_type(const std::string& name) const {
    std::string known;
    for (const StoredTypeFacts& type : kStoredTypes) known += (known.empty() ? "" : ", ") + std::string(type.name);
    throw InputError(concat(file_, ": ", where(), "is of the type \"", printable(name),
                            "\", which this tilewave does not know; convert it to one of ", known, "."));
  }
  [[noreturn]] void unexpected(std::string_view what) const { fail(where(), "has ", what, " where the format has none"); }

  std::string where() const {
    switch (place_) {
      case Place::before:
      case Place::header:
        return concat("the header at the key \"", printable(key_), "\" ");
      case Place::metadata:
        return "__metadata__ ";
      default:
        return concat("tensor \"", printable(tensors_.back().name), "\" ");
    }
  }

  void finish_tensor() {
    StoredTensor& tensor = tensors_.back();
    const std::optional<std::int64_t> bits = bits_of(tensor.type, tensor.shape);
    if (!bits) fail(where(), "has the shape ", shape_text(tensor.shape), ", which is more than 2^63 bits");
    if (*bits % 8 != 0) {
      fail(where(), "has the shape ", shape_text(tensor.shape), " in ", name_of(tensor.type), " of ", bits_of(tensor.type),
           " bits, which fills no whole number of bytes");
    }
    const std::int64_t bytes = *bits / 8;
    if (offsets_[1] < offsets_[0]) fail(where(), "ends at byte ", offsets_[1], " of the data, before it begins at ", offsets_[0]);
    if (offsets_[1] - offsets_[0] != bytes) {
      fail(where(), "has ", offsets_[1] - offsets_[0], " bytes, but ", name_of(tensor.type), " ", shape_text(tensor.shape), " takes ",
           bytes);
    }
    tensor.offset = offsets_[0];
    tensor.bytes = bytes;
  }

  const std::string& file_;
  std::vector<StoredTensor>& tensors_;
  std::map<std::string, std::string>& metadata_;
  Place place_ = Place::before;
  std::string key_;
  bool has_metadata_ = false;
  int seen_ = 0;  // bits: dtype, shape, data_offsets
  std::vector<std::int64_t> offsets_;
};

// The header's text; afterwards data_begin is where it ends.
std::string read_header(const InputFile& file, std::int64_t& data_begin) {
  const std::string path = file.path().string();
  TW_CHECK_INPUT(file.bytes() >= 8, path, ": has ", file.bytes(), " bytes, too few for a header", kDamaged);
  std::array<std::byte, 8> prefix{};
  file.read(0, prefix);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < prefix.size(); ++i) length |= std::to_integer<std::uint64_t>(prefix[i]) << (8 * i);
  TW_CHECK_INPUT(length <= static_cast<std::uint64_t>(file.bytes()) - 8, path, ": announces a header of ", length, " bytes, but only ",
                 file.bytes() - 8, " follow", kDamaged);
  TW_CHECK_INPUT(length <= static_cast<std::uint64_t>(kMaxHeaderBytes), path, ": announces a header of ", length, " bytes, more than the ",
                 kMaxHeaderBytes, " that the format allows", kDamaged);
  std::string header(length, '\0');
  file.read(8, std::as_writable_bytes(std::span(header)));
  // nlohmann's lexer takes a zero byte for the end of the text and skips a byte order mark; the format has neither.
  TW_CHECK_INPUT(header.starts_with('{'), path, ": its header does not begin with '{'", kDamaged);
  const std::size_t zero = header.find('\0');
  TW_CHECK_INPUT(zero == std::string::npos, path, ": the header is no JSON: it goes wrong at its byte ", zero + 1, kDamaged);
  data_begin = 8 + static_cast<std::int64_t>(length);
  return header;
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t dimension : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(dimension);
  return text + "]";
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : file_(path) {
  const std::string file = path.string();
  std::int64_t data_begin = 0;
  {
    const std::string header = read_header(file_, data_begin);
    HeaderHandler handler(file, tensors_, metadata_);
    nlohmann::json::sax_parse(header, &handler);
  }

  by_name_.resize(tensors_.size());
  std::sort(tensors_.begin(), tensors_.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::sort(by_name_.begin(), by_name_.end(), [&](std::size_t a, std::size_t b) { return tensors_[a].name < tensors_[b].name; });
  const auto twice = std::adjacent_find(by_name_.begin(), by_name_.end(),
                                        [&](std::size_t a, std::size_t b) { return tensors_[a].name == tensors_[b].name; });
  TW_CHECK_INPUT(twice == by_name_.end(), file, ": tensor \"", printable(tensors_[*twice].name), "\" stands twice in the header", kDamaged);

  // The data is covered from its first byte to its last, each byte once.
  const std::int64_t data_bytes = file_.bytes() - data_begin;
  std::int64_t end = 0;
  for (StoredTensor& tensor : tensors_) {
    TW_CHECK_INPUT(tensor.offset <= data_bytes && tensor.bytes <= data_bytes - tensor.offset, file, ": tensor \"", printable(tensor.name),
                   "\" reaches to byte ", tensor.offset + tensor.bytes, " of ", data_bytes, " bytes of data", kDamaged);
    TW_CHECK_INPUT(tensor.offset >= end, file, ": tensor \"", printable(tensor.name), "\" begins at byte ", tensor.offset,
                   " of the data and overlaps the tensor before it, which ends at ", end, kDamaged);
    TW_CHECK_INPUT(tensor.offset == end, file, ": bytes ", end, " to ", tensor.offset, " of the data, before tensor \"",
                   printable(tensor.name), "\", belong to no tensor", kDamaged);
    end = tensor.offset + tensor.bytes;
    tensor.offset += data_begin;
  }
  TW_CHECK_INPUT(end == data_bytes, file, ": the last ", data_bytes - end, " bytes belong to no tensor", kDamaged);
}

const StoredTensor* SafetensorsReader::find(std::string_view name) const {
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                      [&](std::size_t index, std::string_view wanted) { return tensors_[index].name < wanted; });
  return found != by_name_.end() && tensors_[*found].name == name ? &tensors_[*found] : nullptr;
}

const StoredTensor& SafetensorsReader::at(std::string_view name) const {
  const StoredTensor* tensor = find(name);
  TW_CHECK_INPUT(tensor != nullptr, path().string(), ": has no tensor \"", printable(name), "\" among its ", tensors_.size(),
                 tensors_.empty() ? "" : ", which begin with \"" + printable(tensors_.front().name) + "\"", "; write it under that name.");
  return *tensor;
}

void SafetensorsReader::read(const StoredTensor& tensor, std::span<std::byte> out) const {
  TW_CHECK(std::ssize(out) == tensor.bytes, "tensor \"", printable(tensor.name), "\" has ", tensor.bytes, " bytes and cannot be read into ",
           out.size(), "; give it a buffer of its size.");
  file_.read(tensor.offset, out);
}

void SafetensorsReader::read_part(const StoredTensor& tensor, std::int64_t first_byte, std::span<std::byte> out) const {
  TW_CHECK(first_byte >= 0 && first_byte <= tensor.bytes && static_cast<std::int64_t>(out.size()) <= tensor.bytes - first_byte, "bytes ",
           first_byte, " to ", first_byte + static_cast<std::int64_t>(out.size()), " of tensor \"", printable(tensor.name),
           "\" do not exist: it has ", tensor.bytes, ".");
  file_.read(tensor.offset + first_byte, out);
}

void SafetensorsReader::read(std::string_view name, const MatrixView& out) const {
  const StoredTensor& tensor = at(name);
  const std::int64_t cols = tensor.shape.empty() ? 1 : tensor.shape.back();
  const bool same_type = tensor.type == stored_type(out.dtype);
  const bool same_shape = same_type && cols == out.cols && tensor.bytes == cols * out.rows * size_of(out.dtype);
  TW_CHECK_INPUT(same_shape, path().string(), ": tensor \"", printable(name), "\" is ", name_of(tensor.type), " ", shape_text(tensor.shape),
                 ", but ", name_of(stored_type(out.dtype)), " ", shape_text({out.rows, out.cols}),
                 " is wanted; take a file written for this model, or change the recipe.");
  const std::int64_t row_bytes = cols * size_of(out.dtype);
  const std::int64_t pitch_bytes = out.ld * size_of(out.dtype);
  auto* data = static_cast<std::byte*>(out.data);
  if (row_bytes == pitch_bytes || out.rows <= 1) {
    file_.read(tensor.offset, {data, static_cast<std::size_t>(tensor.bytes)});
    return;
  }
  for (std::int64_t row = 0; row < out.rows; ++row) {
    file_.read(tensor.offset + row * row_bytes, {data + row * pitch_bytes, static_cast<std::size_t>(row_bytes)});
  }
}

Int32Matrix read_int32_matrix(const SafetensorsReader& reader, std::string_view name, std::int64_t most_elements) {
  const StoredTensor& tensor = reader.at(name);
  const std::string file = reader.path().string();
  TW_CHECK_INPUT(tensor.type == StoredType::i32 && tensor.shape.size() == 2, file, ": tensor \"", printable(name), "\" is ",
                 name_of(tensor.type), " ", shape_text(tensor.shape),
                 ", but I32 of two dimensions is wanted; convert it (in PyTorch: tensor.to(torch.int32)).");
  TW_CHECK_INPUT(tensor.bytes / 4 <= most_elements, file, ": tensor \"", printable(name), "\" has ", tensor.bytes / 4,
                 " elements, more than the ", most_elements, " that are read; split the batch.");
  Int32Matrix matrix{.rows = tensor.shape[0], .cols = tensor.shape[1], .values = {}};
  matrix.values.resize(static_cast<std::size_t>(tensor.bytes / 4));
  reader.read(tensor, std::as_writable_bytes(std::span(matrix.values)));
  return matrix;
}

}  // namespace tilewave
