#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "framework/io/safetensors_reader.h"
#include "framework/io/safetensors_writer.h"
#include "kernels/core/error.h"
#include "tests/framework/io/files.h"

namespace tilewave {
namespace {

std::string with_header(std::string_view header, std::size_t data_bytes, std::uint64_t length) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(length >> (8 * i) & 0xffu);
  return file.append(header) + std::string(data_bytes, 'd');
}
std::string with_header(std::string_view header, std::size_t data_bytes) { return with_header(header, data_bytes, header.size()); }

TensorSource bytes_source(std::string name, StoredType type, std::vector<std::int64_t> shape, std::string bytes) {
  return {.name = std::move(name), .type = type, .shape = std::move(shape), .stream = [bytes = std::move(bytes)](const ByteSink& sink) {
            sink(std::as_bytes(std::span(bytes)));
          }};
}

std::string bytes_of(const SafetensorsReader& reader, const StoredTensor& tensor) {
  std::string bytes(static_cast<std::size_t>(tensor.bytes), '?');
  reader.read(tensor, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

TEST(Safetensors, WritesTheFormatByteForByte) {
  const MemoryFolder folder;
  const std::vector<float> values{1.0f, -2.0f};
  const FileDigest digest = write_safetensors(
      folder / "a", {.tensors = {bytes_source("b", StoredType::u8, {}, "\x07"), host_tensor("w", {values.data(), 1, 2, 2, DType::f32})},
                     .metadata = {{"step", "3"}}});
  const std::string header =
      R"({"__metadata__":{"step":"3"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}})";
  const std::string padded = header + std::string(184 - header.size(), ' ');  // 8 + 184 is a multiple of 64
  EXPECT_EQ(contents_of(folder / "a"), std::string("\xb8\0\0\0\0\0\0\0", 8) + padded + std::string("\0\0\x80\x3f\0\0\0\xc0\x07", 9));
  EXPECT_EQ(digest, digest_file(folder / "a"));
}

TEST(Safetensors, MatricesOfAnyPitchComeBack) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i32}) {
    for (const std::int64_t pitch : {5, 8, 64}) {
      const MemoryFolder folder;
      constexpr std::int64_t rows = 7;
      constexpr std::int64_t cols = 5;
      const auto bytes = static_cast<std::size_t>(rows * pitch * size_of(dtype));
      std::vector<unsigned char> in(bytes);
      std::mt19937 random(static_cast<unsigned>(pitch));
      for (auto& byte : in) byte = static_cast<unsigned char>(random());
      write_safetensors(folder / "a", {.tensors = {host_tensor("w", {in.data(), rows, cols, pitch, dtype})}, .metadata = {}});

      const SafetensorsReader reader(folder / "a");
      EXPECT_EQ(reader.at("w").shape, (std::vector<std::int64_t>{rows, cols}));
      EXPECT_EQ(reader.at("w").bytes, rows * cols * size_of(dtype)) << "the pitch stays at home";
      for (const std::int64_t other_pitch : {std::int64_t{5}, pitch + 3}) {
        const auto row = static_cast<std::size_t>(other_pitch * size_of(dtype));
        std::vector<unsigned char> out(rows * row, 0xee);
        reader.read("w", MatrixView{.data = out.data(), .rows = rows, .cols = cols, .ld = other_pitch, .dtype = dtype});
        for (std::size_t r = 0; r < rows; ++r) {
          for (std::size_t i = 0; i < row; ++i) {
            const auto logical = static_cast<std::size_t>(cols * size_of(dtype));
            const unsigned char wanted = i < logical ? in[r * static_cast<std::size_t>(pitch * size_of(dtype)) + i] : 0xee;
            ASSERT_EQ(out[r * row + i], wanted) << name_of(dtype) << " pitch " << pitch << " to " << other_pitch;
          }
        }
      }
    }
  }
}

TEST(Safetensors, EveryTypeAndShapeComesBackAligned) {
  const MemoryFolder folder;
  SafetensorsContents contents;
  contents.metadata = {{"", "empty key"}, {"quote \" and \n", "snow \xe2\x98\x83"}};
  std::map<std::string, std::string> expected;
  std::mt19937 random(3);
  for (std::size_t i = 0; i < kStoredTypes.size(); ++i) {
    const bool whole_bytes = kStoredTypes[i].bits % 8 == 0;
    const std::vector<std::vector<std::int64_t>> shapes = {{}, {3}, {0, 7}, {2, 1, 3}}, packed_shapes = {{4}, {0, 7}, {2, 1, 6}, {3, 20}};
    for (const std::vector<std::int64_t>& shape : whole_bytes ? shapes : packed_shapes) {
      const std::string name = concat(kStoredTypes[i].name, "/", shape_text(shape));
      const std::int64_t elements = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
      std::string bytes(static_cast<std::size_t>(elements * kStoredTypes[i].bits / 8), '\0');
      for (char& byte : bytes) byte = static_cast<char>(random());
      expected[name] = bytes;
      contents.tensors.push_back(bytes_source(name, static_cast<StoredType>(i), shape, bytes));
    }
  }
  write_safetensors(folder / "a", contents);
  const SafetensorsReader reader(folder / "a");
  EXPECT_EQ(reader.metadata(), contents.metadata);
  ASSERT_EQ(reader.tensors().size(), expected.size());
  for (const StoredTensor& tensor : reader.tensors()) {
    EXPECT_EQ(bytes_of(reader, tensor), expected.at(tensor.name)) << tensor.name;
    EXPECT_EQ(tensor.name, concat(name_of(tensor.type), "/", shape_text(tensor.shape)));
    EXPECT_EQ(tensor.offset % std::max<std::int64_t>(bits_of(tensor.type) / 8, 1), 0) << tensor.name;
  }
  EXPECT_EQ(
      std::min_element(reader.tensors().begin(), reader.tensors().end(), [](auto& a, auto& b) { return a.offset < b.offset; })->offset % 64,
      0);
}

TEST(Safetensors, AnEmptyFileIsAFile) {
  const MemoryFolder folder;
  write_safetensors(folder / "a", {});
  const SafetensorsReader reader(folder / "a");
  EXPECT_TRUE(reader.tensors().empty());
  EXPECT_EQ(reader.find("w"), nullptr);
  EXPECT_NE(sentence_of<InputError>([&] { reader.at("w"); }).find("has no tensor \"w\" among its 0"), std::string::npos);
}

TEST(Safetensors, TheWriterRefusesWhatNobodyCouldRead) {
  const MemoryFolder folder;
  const auto refusal = [&](SafetensorsContents contents) {
    const std::string complaint = sentence_of<Error>([&] { write_safetensors(folder / "a", contents); });
    EXPECT_TRUE(names_in(folder.path()).empty()) << "no file and no temporary is left";
    return complaint;
  };
  const auto source = [](std::string name) { return bytes_source(std::move(name), StoredType::u8, {1}, "x"); };
  EXPECT_NE(refusal({.tensors = {source("w"), source("w")}, .metadata = {}}).find("both be called \"w\""), std::string::npos);
  EXPECT_NE(refusal({.tensors = {source("__metadata__")}, .metadata = {}}), "");
  EXPECT_NE(refusal({.tensors = {source("\xff")}, .metadata = {}}).find("not UTF-8"), std::string::npos);
  EXPECT_NE(refusal({.tensors = {bytes_source("w", StoredType::f32, {2}, "1234567")}, .metadata = {}}).find("streamed 7 bytes"),
            std::string::npos);
  EXPECT_NE(refusal({.tensors = {bytes_source("w", StoredType::f32, {-1}, "")}, .metadata = {}}), "");
}

struct Hostile {
  std::string file;
  std::string complaint;
};

std::vector<Hostile> hostile_files() {
  const auto tensor = [](std::string_view fields, std::size_t bytes = 4) { return with_header(concat("{\"w\":{", fields, "}}"), bytes); };
  const auto shaped = [&](std::string_view shape, std::string_view offsets, std::size_t bytes = 4) {
    return tensor(concat(R"("dtype":"F32","shape":)", shape, R"(,"data_offsets":)", offsets), bytes);
  };
  const auto two = [](std::string_view first, std::string_view second, std::size_t bytes) {
    return with_header(concat(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)", first,
                              R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)", second, "}}"),
                       bytes);
  };
  std::string deep = "{\"w\":";
  for (int i = 0; i < 100'000; ++i) deep += "[";
  std::string deep_objects;
  for (int i = 0; i < 100'000; ++i) deep_objects += "{\"w\":";
  std::string dimensions = "[1";
  for (int i = 0; i < 64; ++i) dimensions += ",1";

  return {
      {"", "has 0 bytes, too few"},
      {"1234567", "has 7 bytes, too few"},
      {with_header("{}", 0, 3), "announces a header of 3 bytes, but only 2 follow"},
      {with_header("{}", 0, ~std::uint64_t{0}), "announces a header of 18446744073709551615"},
      {with_header("{}", 0, std::uint64_t{1} << 63), "announces a header of"},
      {with_header("", 0), "does not begin with '{'"},
      {with_header(" {}", 0), "does not begin with '{'"},
      {with_header("\xef\xbb\xbf{}", 0), "does not begin with '{'"},
      {with_header("[]", 0), "does not begin with '{'"},
      {with_header("{", 0), "no JSON"},
      {with_header("{} {}", 0), "no JSON"},
      {with_header("{}x", 0), "no JSON"},
      {with_header(std::string_view("{}\0\0", 4), 0), "no JSON: it goes wrong at its byte 3"},
      {with_header("{\"\xff\":1}", 0), "no JSON"},
      {with_header("{\"w\":1}", 0), "has a number where"},
      {with_header("{\"w\":\"x\"}", 0), "has a text where"},
      {with_header("{\"w\":null}", 0), "has null where"},
      {with_header("{\"__metadata__\":{\"a\":null}}", 0), "has null where"},
      {with_header("{\"__metadata__\":null,\"__metadata__\":null}", 0), "__metadata__ stands twice"},
      {with_header("{\"__metadata__\":null,\"__metadata__\":{}}", 0), "__metadata__ stands twice"},
      {tensor(R"("dtype":"F32","shape":null,"data_offsets":[0,4])"), "has null where"},
      {tensor(R"("dtype":"F4","shape":[3],"data_offsets":[0,1])", 1), "F4 of 4 bits, which fills no whole number of bytes"},
      {tensor(R"("dtype":"F6_E2M3","shape":[2,3],"data_offsets":[0,4])"), "F6_E2M3 of 6 bits, which fills no whole number of bytes"},
      {tensor(R"("dtype":"F6_E3M2","shape":[4],"data_offsets":[0,4])"), "has 4 bytes, but F6_E3M2 [4] takes 3"},
      {tensor(R"("dtype":"F4","shape":[2305843009213693952,2],"data_offsets":[0,4])"), "more than 2^63 bits"},
      {with_header("{\"w\":true}", 0), "has a boolean where"},
      {with_header("{\"w\":[]}", 0), "has a list where"},
      {with_header(deep, 0), "has a list where"},
      {with_header(deep_objects, 0), "has the unknown key \"w\""},
      {with_header("{\"w\":{\"shape\":" + deep, 0), "where the format has none"},
      {with_header("{\"__metadata__\":{\"a\":1}}", 0), "has a number where"},
      {with_header("{\"__metadata__\":{\"a\":{}}}", 0), "has an object where"},
      {with_header("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0), "\"a\" stands twice in __metadata__"},
      {with_header("{\"__metadata__\":{},\"__metadata__\":{}}", 0), "__metadata__ stands twice"},
      {with_header("{\"__metadata__\":\"a\"}", 0), "has a text where"},
      {tensor(R"("dtype":"F32","shape":[1])"), "lacks one of"},
      {tensor(R"("dtype":"F32","data_offsets":[0,4])"), "lacks one of"},
      {tensor(R"("shape":[1],"data_offsets":[0,4])"), "lacks one of"},
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1)"), "unknown key \"more\""},
      {tensor(R"("dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4])"), "the key \"dtype\" twice"},
      {tensor(R"("dtype":32,"shape":[1],"data_offsets":[0,4])"), "has a number where"},
      {tensor(R"("dtype":["F32"],"shape":[1],"data_offsets":[0,4])"), "has a list where"},
      {tensor(R"("dtype":"F32","shape":1,"data_offsets":[0,4])"), "has a number where"},
      {shaped("[-1]", "[0,4]"), "has a negative number"},
      {shaped("[1.0]", "[0,4]"), "no integer below 2^63"},
      {shaped("[1e0]", "[0,4]"), "no integer below 2^63"},
      {shaped("[18446744073709551617]", "[0,4]"), "no integer below 2^63"},
      {shaped("[9223372036854775808]", "[0,4]"), "a number of 2^63 or more"},
      {shaped("[\"1\"]", "[0,4]"), "has a text where"},
      {shaped("[[1]]", "[0,4]"), "has a list where"},
      {shaped("[4611686018427387905]", "[0,4]"), "more than 2^63 bits"},
      {shaped("[4294967296,4294967296]", "[0,4]"), "more than 2^63 bits"},
      {shaped("[0,4294967296,4294967296]", "[0,0]", 0), "more than 2^63 bits"},
      {shaped(dimensions + "]", "[0,4]"), "one number too many"},
      {shaped("[2]", "[0,4]"), "has 4 bytes, but F32 [2] takes 8"},
      {shaped("[1]", "[4,0]"), "ends at byte 0 of the data, before it begins at 4"},
      {shaped("[1]", "[0]"), "has 1 data_offsets instead of 2"},
      {shaped("[1]", "[0,4,8]"), "one number too many"},
      {shaped("[1]", "[-4,0]"), "has a negative number"},
      {shaped("[1]", "[0,4]", 3), "reaches to byte 4 of 3"},
      {shaped("[1]", "[9223372036854775803,9223372036854775807]"), "reaches to byte 9223372036854775807"},
      {shaped("[1]", "[0,4]", 5), "the last 1 bytes belong to no tensor"},
      {shaped("[1]", "[1,5]", 5), "bytes 0 to 1 of the data, before tensor \"w\""},
      {with_header("{}", 1), "the last 1 bytes belong to no tensor"},
      {two("[0,4]", "[0,4]", 4), "overlaps the tensor before it"},
      {two("[0,4]", "[3,7]", 7), "tensor \"b\" begins at byte 3 of the data and overlaps"},
      {two("[4,8]", "[1,5]", 8), "bytes 0 to 1"},
      {two("[0,4]", "[5,9]", 9), "bytes 4 to 5 of the data, before tensor \"b\""},
      {with_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})", 8),
       "tensor \"a\" stands twice"},
  };
}

TEST(Safetensors, EveryHostileFileIsOneSentence) {
  const MemoryFolder folder;
  const auto path = folder / "hostile.safetensors";
  for (const Hostile& hostile : hostile_files()) {
    put(path, hostile.file);
    const std::string complaint = sentence_of<InputError>([&] { SafetensorsReader{path}; });
    EXPECT_NE(complaint.find(hostile.complaint), std::string::npos) << hostile.file.substr(8, 200) << "\nsays: " << complaint;
    EXPECT_TRUE(complaint.starts_with(path.string() + ": ") && complaint.ends_with("copy or write it again.")) << complaint;
    EXPECT_LT(complaint.size(), path.string().size() + 600);
    EXPECT_EQ(std::count_if(complaint.begin(), complaint.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }), 0);
  }
}

// The types of the reference implementation, written down a second time.
TEST(Safetensors, KnowsEveryTypeOfTheFormatAndItsBits) {
  const std::map<std::string, std::int64_t> bits = {
      {"BOOL", 8},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
      {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16}, {"F16", 16}, {"BF16", 16},   {"I32", 32},
      {"U32", 32},    {"F32", 32},        {"C64", 64},        {"F64", 64},    {"I64", 64}, {"U64", 64}};
  ASSERT_EQ(kStoredTypes.size(), bits.size());
  const MemoryFolder folder;
  for (const auto& [name, width] : bits) {
    put(folder / "a", with_header(concat(R"({"w":{"dtype":")", name, R"(","shape":[2,4],"data_offsets":[0,)", width, "]}}"),
                                  static_cast<std::size_t>(width)));
    const SafetensorsReader reader(folder / "a");
    EXPECT_EQ(name_of(reader.at("w").type), name);
    EXPECT_EQ(reader.at("w").bytes, width) << name << ": eight elements";
    std::vector<float> out(8);
    const MatrixView view{.data = out.data(), .rows = 2, .cols = 4, .ld = 4, .dtype = DType::f32};
    const std::string complaint = sentence_of<InputError>([&] { reader.read("w", view); });
    EXPECT_EQ(complaint.empty(), name == "F32") << name;
    if (name == "F32") continue;
    EXPECT_NE(complaint.find(concat("tensor \"w\" is ", name, " [2, 4], but F32 [2, 4] is wanted")), std::string::npos);
  }
}

TEST(Safetensors, ATypeThatIsNotKnownIsNoDamage) {
  const MemoryFolder folder;
  for (const char* type : {"F33", "f32", "F2", "BF4_X"}) {
    put(folder / "a", with_header(concat(R"({"w":{"dtype":")", type, R"(","shape":[1],"data_offsets":[0,4]}})"), 4));
    const std::string complaint = sentence_of<InputError>([&] { SafetensorsReader(folder / "a"); });
    EXPECT_NE(
        complaint.find(concat("tensor \"w\" is of the type \"", type, "\", which this tilewave does not know; convert it to one of F64, ")),
        std::string::npos)
        << complaint;
    EXPECT_EQ(complaint.find("damaged"), std::string::npos) << complaint;
  }
}

TEST(Safetensors, MetadataMayBeNull) {
  const MemoryFolder folder;
  for (const char* header : {R"({"__metadata__":null,"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                             R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"__metadata__": null })"}) {
    put(folder / "a", with_header(header, 4));
    const SafetensorsReader reader(folder / "a");
    EXPECT_TRUE(reader.metadata().empty());
    EXPECT_EQ(bytes_of(reader, reader.at("w")), "dddd");
  }
}

TEST(Safetensors, AHeaderBeyondTheLimitIsRefusedBeforeItIsRead) {
  const MemoryFolder folder;
  put(folder / "a", with_header("{}", 0, kMaxHeaderBytes + 1));
  std::filesystem::resize_file(folder / "a", 8 + kMaxHeaderBytes + 1);
  const std::string complaint = sentence_of<InputError>([&] { SafetensorsReader(folder / "a"); });
  EXPECT_NE(complaint.find("announces a header of 100000001 bytes, more than the 100000000"), std::string::npos) << complaint;
}

TEST(Safetensors, AMutatedFileReadsIdenticallyOrIsRefused) {
  const MemoryFolder folder;
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  write_safetensors(folder / "a",
                    {.tensors = {host_tensor("w", {values.data(), 2, 3, 3, DType::f32}),
                                 bytes_source("b", StoredType::i64, {1}, "12345678"), bytes_source("c", StoredType::u8, {0, 2}, "")},
                     .metadata = {{"k", "v"}}});
  const std::string valid = contents_of(folder / "a");
  std::mt19937 random(20);
  const std::string interesting = std::string("{}[]\",:0129-.eE \\untfa\x7f\xff") + '\0';
  int refused = 0;
  int read = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string mutated = valid;
    for (unsigned edits = 1 + random() % 3; edits > 0 && !mutated.empty(); --edits) {
      const std::size_t at = random() % mutated.size();
      switch (random() % 5) {
        case 0:
          mutated[at] = static_cast<char>(random());
          break;
        case 1:
          mutated[at] = interesting[random() % interesting.size()];
          break;
        case 2:
          mutated.erase(at, 1 + random() % 8);
          break;
        case 3:
          mutated.insert(at, 1 + random() % 3, interesting[random() % interesting.size()]);
          break;
        default:
          mutated.resize(at);
          break;
      }
    }
    put(folder / "b", mutated);
    try {
      const SafetensorsReader reader(folder / "b");
      std::int64_t covered = 0;
      for (const StoredTensor& tensor : reader.tensors()) {
        const std::string bytes = bytes_of(reader, tensor);
        EXPECT_EQ(bytes, mutated.substr(static_cast<std::size_t>(tensor.offset), bytes.size()));
        covered += tensor.bytes;
      }
      EXPECT_LE(covered, std::ssize(mutated));
      ++read;
    } catch (const InputError& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with((folder / "b").string() + ": "));
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 50) << "edits of the data, of the padding and of names leave a file readable";
}

TEST(Safetensors, OffsetsReachBeyondTwoGibibytes) {
  const MemoryFolder folder;
  constexpr std::int64_t first_bytes = (std::int64_t{5} << 30) + 4;  // the file is sparse
  const std::string header = concat(R"({"a":{"dtype":"I8","shape":[)", first_bytes, R"(],"data_offsets":[0,)", first_bytes,
                                    R"(]},"b":{"dtype":"I32","shape":[1,2],"data_offsets":[)", first_bytes, ",", first_bytes + 8, "]}}");
  put(folder / "a", with_header(header, 0));
  const std::int64_t begin = 8 + std::ssize(header);
  std::filesystem::resize_file(folder / "a", static_cast<std::uintmax_t>(begin + first_bytes));
  {
    std::ofstream stream(folder / "a", std::ios::binary | std::ios::app);
    stream.write("\x01\0\0\0\xff\xff\xff\xff", 8);
  }
  const SafetensorsReader reader(folder / "a");
  EXPECT_EQ(reader.at("b").offset, begin + first_bytes);
  EXPECT_EQ(read_int32_matrix(reader, "b").values, (std::vector<std::int32_t>{1, -1}));
  EXPECT_NE(sentence_of<InputError>([&] { read_int32_matrix(reader, "a"); }), "");
}

TEST(Safetensors, SaysWhichShapeAndTypeIsWanted) {
  const MemoryFolder folder;
  const std::vector<float> values(6);
  write_safetensors(folder / "a", {.tensors = {host_tensor("w", {values.data(), 2, 3, 3, DType::f32})}, .metadata = {}});
  const SafetensorsReader reader(folder / "a");
  std::vector<double> out(12, -1);
  const auto refusal = [&](std::int64_t rows, std::int64_t cols, DType dtype) {
    return sentence_of<InputError>(
        [&] { reader.read("w", MatrixView{.data = out.data(), .rows = rows, .cols = cols, .ld = cols, .dtype = dtype}); });
  };
  EXPECT_NE(refusal(3, 2, DType::f32).find("tensor \"w\" is F32 [2, 3], but F32 [3, 2] is wanted"), std::string::npos);
  EXPECT_NE(refusal(1, 6, DType::f32), "");
  EXPECT_NE(refusal(1, 3, DType::f64), "") << "half as many elements of twice the size";
  EXPECT_NE(refusal(4, 3, DType::f32), "");
  EXPECT_NE(refusal(2, 3, DType::i32).find("but I32 [2, 3] is wanted"), std::string::npos);
  EXPECT_EQ(out, std::vector<double>(12, -1)) << "a refusal writes nothing";
  EXPECT_EQ(refusal(2, 3, DType::f32), "");
  EXPECT_NE(sentence_of<InputError>([&] { reader.at("v"); }).find("has no tensor \"v\" among its 1, which begin with \"w\""),
            std::string::npos);
}

TEST(Safetensors, ReadsBatchesOfIds) {
  const MemoryFolder folder;
  const std::vector<std::int32_t> ids{1, 2, 3, -4, 5, 6};
  const std::vector<float> floats(2);
  write_safetensors(folder / "a", {.tensors = {host_tensor("ids", {ids.data(), 2, 3, 3, DType::i32}),
                                               host_tensor("flat", {ids.data(), 1, 6, 6, DType::i32}, {6}),
                                               host_tensor("f", {floats.data(), 1, 2, 2, DType::f32})},
                                   .metadata = {}});
  const SafetensorsReader reader(folder / "a");
  const Int32Matrix matrix = read_int32_matrix(reader, "ids");
  EXPECT_EQ(matrix.rows, 2);
  EXPECT_EQ(matrix.cols, 3);
  EXPECT_EQ(matrix.values, ids);
  EXPECT_NE(sentence_of<InputError>([&] { read_int32_matrix(reader, "f"); }).find("tensor.to(torch.int32)"), std::string::npos);
  EXPECT_NE(sentence_of<InputError>([&] { read_int32_matrix(reader, "flat"); }).find("I32 [6]"), std::string::npos);
  EXPECT_NE(sentence_of<InputError>([&] { read_int32_matrix(reader, "ids", 5); }).find("has 6 elements, more than the 5"),
            std::string::npos);
}

}  // namespace
}  // namespace tilewave
