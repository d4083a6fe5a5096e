// Markdown: what a table cell cannot hold (a vertical bar) never occurs, because allowed values are joined by words.
#include "framework/recipe/reference.h"

#include "framework/recipe/complaints.h"
#include "framework/recipe/writer.h"
#include "kernels/core/error.h"

namespace tilewave {

std::string reference_tables(const std::vector<Section>& sections) {
  std::string text;
  for (const Section& section : sections) {
    text += "\n### [" + std::string(section.name) + "]\n\n" + std::string(section.meaning) + "\n\n";
    text += "| key | type | unit | default | meaning |\n|---|---|---|---|---|\n";
    for (const Field& field : section.fields) {
      text += "| `" + std::string(field.name) + "` | " + allowed_text(field) + " | " + std::string(field.key.unit) + " | `" +
              value_text(field) + "` | " + std::string(field.key.meaning) + " |\n";
    }
  }
  return text + "\n";
}

std::string with_reference(std::string_view document, std::string_view tables) {
  const std::size_t begin = document.find(kReferenceBegin);
  const std::size_t end = document.find(kReferenceEnd);
  TW_CHECK(begin != std::string_view::npos && end != std::string_view::npos && begin < end,
           "a document with a reference of keys needs the lines ", kReferenceBegin, "and ", kReferenceEnd);
  std::string text(document.substr(0, begin + kReferenceBegin.size()));
  text += tables;
  text += document.substr(end);
  return text;
}

}  // namespace tilewave
