// A command line that cannot be run, as one sentence: the word, where it stood, the nearest one that is known.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>

namespace tilewave {

// " (did you mean train?)", or nothing where nothing is near.
std::string nearest_text(std::string_view word, std::span<const std::string_view> known);

// Has options refuse an empty word (an unset variable), and those of whole numbers what is no decimal number of 64 bits: CLI11 reads 010
// as 8, and what is too large as the largest there is.
void check_values(CLI::App& program);

std::string usage_sentence(const CLI::App& program, const CLI::ParseError& error);

}  // namespace tilewave
