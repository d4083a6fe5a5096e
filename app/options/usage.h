// A command line that cannot be run, as one sentence: the word, where it stood, the nearest one that is known.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>

namespace tilewave {

// " (did you mean train?)", or nothing where nothing is near.
std::string nearest_text(std::string_view word, std::span<const std::string_view> known);

// Makes every option of the program and its commands what this command line promises: an option takes one word at a time (so that
// `--set a.b=c recipe.toml` has a recipe), a flag takes none, numbers are decimal and neither cut nor wrapped, and --help says all this
// in words of its own. Called once, when every command is there: a new option needs to do nothing.
void prepare_options(CLI::App& program);

// Refuses, before anything is parsed, what would pass for something else: an empty word (an unset variable) wherever it stands, a flag
// with a value, an option without one (the word behind it is an option itself), an option twice that holds one value.
void check_words(const CLI::App& program, std::span<const char* const> words);

std::string usage_sentence(const CLI::App& program, const CLI::ParseError& error);

}  // namespace tilewave
