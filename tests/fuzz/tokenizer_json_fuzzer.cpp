// A tokenizer.json is refused with a sentence, or encodes any text to ids of its vocabulary. An input is such a file, or what is changed
// in a small one that holds every byte: a whole vocabulary is more than a fuzzer finds by itself.
#include <nlohmann/json.hpp>
#include <vector>

#include "framework/data/byte_level_bpe.h"
#include "framework/io/utf8.h"
#include "tests/fuzz/fuzz.h"

using namespace tilewave;

namespace {

const nlohmann::json& small_file() {
  static const nlohmann::json file = [] {
    nlohmann::json made = {{"model", {{"type", "BPE"}, {"merges", nlohmann::json::array()}}},
                           {"pre_tokenizer", {{"type", "ByteLevel"}}},
                           {"decoder", {{"type", "ByteLevel"}}}};
    for (char32_t letter = 0x21, id = 0; letter < 0x144; ++letter) {
      const bool no_byte = (letter >= 0x7F && letter <= 0xA0) || letter == 0xAD;
      if (no_byte) continue;
      std::string text;
      append_character(text, letter);
      made["model"]["vocab"][text] = static_cast<int>(id++);
    }
    return made;
  }();
  return file;
}

void encode_with(const std::string& json, const std::string& text) {
  read_or_refuse([&] {
    const ByteLevelBpe tokenizer = ByteLevelBpe::parse(json, "fuzz.json");
    const std::vector<std::int32_t> ids = tokenizer.encode(text, SpecialIds::kept);
    for (const std::int32_t id : ids) must(id >= 0 && id < tokenizer.vocabulary(), "an id of the vocabulary");
    tokenizer.decode(ids, SpecialIds::left_out);
    must(tokenizer.decode(ids, SpecialIds::kept).size() <= 100 * (json.size() + text.size()) * (text.size() + 1), "no text out of nothing");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string text(data, data + bytes);
  encode_with(text, text);
  const nlohmann::json change = nlohmann::json::parse(text, nullptr, false);
  if (!change.is_object()) return 0;
  nlohmann::json file = small_file();
  file.merge_patch(change);
  encode_with(file.dump(), text);
  encode_with(file.dump(), "a  b\n\n 12'S e\xCC\x81");
  return 0;
}
