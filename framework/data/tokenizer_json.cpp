#include "framework/data/tokenizer_json.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "framework/io/file.h"
#include "framework/io/json_fault.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

using Json = nlohmann::json;

class TokenizerJsonReader {
 public:
  TokenizerJsonReader(const Json& file, std::string_view origin) : file_(file), origin_(origin) {}

  TokenizerJson read() {
    if (!file_.is_object() || !file_.contains("model")) refuse("it has no \"model\"; name a tokenizer.json of Hugging Face's tokenizers");
    only(file_, "the file",
         {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"});
    for (const char* key : {"truncation", "padding"}) {
      if (given(file_, key)) refuse(concat("its ", key, " is set, which would change ids; set it to null"));
    }
    read_model(file_.at("model"));
    read_added_tokens();
    if (given(file_, "normalizer")) read_normalizer(file_.at("normalizer"), 0);
    if (!given(file_, "pre_tokenizer")) refuse("it has no pre_tokenizer, and byte-level BPE needs ByteLevel");
    read_pre_tokenizer(file_.at("pre_tokenizer"), 0);
    if (!byte_level_) refuse("its pre_tokenizer has no ByteLevel, and only byte-level BPE is read");
    if (given(file_, "post_processor")) read_post_processor(file_.at("post_processor"), 0);
    read_decoder();
    return std::move(read_);
  }

 private:
  static constexpr int kMaxDepth = 8;

  [[noreturn]] void refuse(std::string_view what) const { throw InputError(concat(origin_, ": ", what, ".")); }
  [[noreturn]] void refuse_kind(std::string_view what, const std::string& kind, std::string_view handled) const {
    refuse(concat("its ", what, " \"", printable(kind), "\" is not handled; ", handled));
  }

  static bool given(const Json& object, const char* key) { return object.contains(key) && !object.at(key).is_null(); }
  static bool flag(const Json& object, const char* key, bool otherwise) {
    return given(object, key) ? object.at(key).get<bool>() : otherwise;
  }
  static bool empty(const Json& object, const char* key) {
    return !given(object, key) || object.at(key).get_ref<const std::string&>().empty();
  }
  static std::string kind_of(const Json& part) { return part.at("type").get<std::string>(); }

  void only(const Json& object, std::string_view whose, std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : object.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        refuse(concat("the field \"", printable(key), "\" of ", whose, " is not handled"));
    }
  }

  std::int32_t id_of(const Json& value, std::string_view token) const {
    const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() < (1u << 24);
    if (!fits) refuse(concat("the id of \"", printable(token), "\" is ", printable(value.dump()), ", and ids are 0 to ", (1 << 24) - 1));
    return value.get<std::int32_t>();
  }

  void read_model(const Json& model) {
    only(model, "the model",
         {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
          "vocab", "merges"});
    const std::string kind = model.contains("type") ? kind_of(model) : "BPE";
    if (kind != "BPE") refuse_kind("model", kind, "byte-level \"BPE\" is");
    if (given(model, "dropout") && model.at("dropout").get<double>() != 0.0)
      refuse("the model's dropout is set, which draws ids; set it to null");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!empty(model, key)) refuse(concat("the model's ", key, " is set, and byte-level BPE has none"));
    }
    if (flag(model, "byte_fallback", false)) refuse("the model's byte_fallback is true, which is not handled; byte-level BPE has none");
    read_.ignores_merges = flag(model, "ignore_merges", false);
    const auto& vocabulary = model.at("vocab").get_ref<const Json::object_t&>();
    if (vocabulary.empty()) refuse("the model's vocab is empty");
    for (const auto& [token, id] : vocabulary) read_.vocabulary.emplace_back(token, id_of(id, token));
    for (const Json& merge : model.at("merges").get_ref<const Json::array_t&>()) read_merge(merge);
  }

  // "a b", or ["a", "b"].
  void read_merge(const Json& merge) {
    if (merge.is_array()) {
      if (merge.size() != 2) refuse(concat("its merge ", printable(merge.dump()), " is of ", merge.size(), " tokens, not of two"));
      read_.merges.emplace_back(merge.at(0).get<std::string>(), merge.at(1).get<std::string>());
      return;
    }
    const auto& text = merge.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      refuse(concat("its merge \"", printable(text), "\" is not two tokens with a space between them"));
    read_.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }

  void read_added_tokens() {
    if (!given(file_, "added_tokens")) return;
    for (const Json& token : file_.at("added_tokens").get_ref<const Json::array_t&>()) {
      only(token, "an added token", {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
      AddedToken added{.content = token.at("content").get<std::string>()};
      if (added.content.empty()) continue;  // which no text holds
      added.id = id_of(token.at("id"), added.content);
      added.special = flag(token, "special", false);
      added.normalized = flag(token, "normalized", !added.special);
      added.single_word = flag(token, "single_word", false);
      added.strips_left = flag(token, "lstrip", false);
      added.strips_right = flag(token, "rstrip", false);
      if (added.single_word)
        refuse(concat("the added token \"", printable(added.content), "\" is a single_word, which is not handled; set it to false"));
      read_.added.push_back(std::move(added));
    }
  }

  void read_normalizer(const Json& part, int depth) {
    const std::string kind = kind_of(part);
    if (kind == "NFC") {
      read_.nfc = true;
    } else if (kind == "Sequence" && depth < kMaxDepth) {
      for (const Json& inner : part.at("normalizers").get_ref<const Json::array_t&>()) read_normalizer(inner, depth + 1);
    } else {
      refuse_kind("normalizer", kind, "\"NFC\" is, and none");
    }
  }

  void read_pre_tokenizer(const Json& part, int depth) {
    const std::string kind = kind_of(part);
    if (byte_level_) refuse_kind("pre_tokenizer", kind, "nothing can follow ByteLevel");
    if (kind == "Sequence" && depth < kMaxDepth) {
      for (const Json& inner : part.at("pretokenizers").get_ref<const Json::array_t&>()) read_pre_tokenizer(inner, depth + 1);
    } else if (kind == "Split") {
      read_split(part);
    } else if (kind == "Digits") {
      read_.splits.push_back({.pattern = flag(part, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)"});
    } else if (kind == "ByteLevel") {
      byte_level_ = true;
      read_.adds_prefix_space = flag(part, "add_prefix_space", true);
      read_.splits_before_prefix = read_.splits.size();
      if (flag(part, "use_regex", true)) read_.splits.push_back({.pattern = std::string(kGpt2Pattern)});
    } else {
      refuse_kind("pre_tokenizer", kind, R"("ByteLevel", "Split", "Digits" and a "Sequence" of them are)");
    }
  }

  void read_split(const Json& part) {
    only(part, "a Split", {"type", "pattern", "behavior", "invert"});
    const auto behavior = part.at("behavior").get<std::string>();
    const bool inverted = flag(part, "invert", false);
    const bool isolated = behavior == "Isolated";
    if (!(isolated || (behavior == "Removed" && inverted)))
      refuse(concat("a Split of its pre_tokenizer has the behavior \"", printable(behavior), "\"", inverted ? ", inverted" : "",
                    R"(, which is not handled; "Isolated" is, and "Removed", inverted)"));
    const Json& pattern = part.at("pattern");
    only(pattern, "a Split's pattern", {"Regex", "String"});
    std::string regex;
    if (pattern.contains("Regex")) {
      regex = pattern.at("Regex").get<std::string>();
    } else {
      for (const char c : pattern.at("String").get_ref<const std::string&>()) {
        const bool plain = (c & 0x80) != 0 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c < 0x20;
        if (!plain) regex += '\\';
        regex += c;
      }
    }
    read_.splits.push_back({.pattern = std::move(regex), .kept = isolated ? SplitStep::Kept::all : SplitStep::Kept::matches});
  }

  void read_post_processor(const Json& part, int depth) {
    const std::string kind = kind_of(part);
    if (kind == "ByteLevel") return;  // which moves offsets alone
    if (kind == "Sequence" && depth < kMaxDepth) {
      for (const Json& inner : part.at("processors").get_ref<const Json::array_t&>()) read_post_processor(inner, depth + 1);
    } else if (kind == "TemplateProcessing") {
      read_template(part);
    } else {
      refuse_kind("post_processor", kind, R"("ByteLevel", "TemplateProcessing" and a "Sequence" of them are)");
    }
  }

  void read_template(const Json& part) {
    if (!read_.before.empty() || !read_.after.empty()) refuse("its post_processor has two templates; one is handled");
    bool behind = false;
    for (const Json& piece : part.at("single").get_ref<const Json::array_t&>()) {
      only(piece, "the template", {"SpecialToken", "Sequence"});
      if (piece.contains("Sequence")) {
        if (behind) refuse("its post_processor's template has the text twice");
        behind = true;
        continue;
      }
      const auto name = piece.at("SpecialToken").at("id").get<std::string>();
      for (const Json& id : part.at("special_tokens").at(name).at("ids").get_ref<const Json::array_t&>())
        (behind ? read_.after : read_.before).push_back(id_of(id, name));
    }
    if (!behind) refuse("its post_processor's template leaves the text out");
  }

  void read_decoder() const {
    if (!given(file_, "decoder")) refuse("it has no decoder, and byte-level BPE needs ByteLevel");
    const Json* decoder = &file_.at("decoder");
    if (kind_of(*decoder) == "Sequence" && decoder->at("decoders").size() == 1) decoder = &decoder->at("decoders").at(0);
    if (kind_of(*decoder) != "ByteLevel") refuse_kind("decoder", kind_of(*decoder), "\"ByteLevel\" is");
  }

  const Json& file_;
  std::string_view origin_;
  TokenizerJson read_;
  bool byte_level_ = false;
};

}  // namespace

TokenizerJson read_tokenizer_json(std::string_view text, std::string_view origin) {
  try {
    const Json file = Json::parse(text);
    return TokenizerJsonReader(file, origin).read();
  } catch (const nlohmann::json::exception& error) {
    throw InputError(concat(origin, " is no tokenizer.json: ", json_fault(error), "."));
  }
}

}  // namespace tilewave
