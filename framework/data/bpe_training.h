// A byte-pair encoding trained on text: no character of the text is unknown to it, whatever the character is. The same model for the
// same text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tilewave {

// What a bpe model is for. sentences: one line each, where surplus white space means nothing and a word at the start is the same
// piece as within. document: every character counts, line feeds and tabs too, and encode(a + "\n" + b) = encode(a), "\n", encode(b).
// White space is space and tab (a document's line feed); every other kind of space is a character like any other, as is U+2581.
enum class TextForm : std::uint8_t { sentences, document };

using NextLine = std::function<std::optional<std::string_view>()>;  // of UTF-8 text, good until the next one; nothing at the end

struct BpeTraining {
  std::int64_t vocabulary = 0;  // exactly so many ids, the special ones included
  TextForm form = TextForm::sentences;
  std::function<NextLine()> lines;  // from the first one on, each time it is asked
};

// SentencePiece's serialised ModelProto, and the mark of its reserved characters. InputError where the vocabulary is too small or too
// large for the text.
std::string train_bpe(const BpeTraining& training);

// A tab is SentencePiece's own mark in training, so that no piece can hold one; in sentences it separates words as a space does.
void tabs_to_spaces(std::string& text);

}  // namespace tilewave
