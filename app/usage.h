// A command line that cannot be run, as one sentence: the word, where it stood, the nearest one that is known.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tilewave {

std::string usage_sentence(const CLI::App& program, const CLI::ParseError& error);

}  // namespace tilewave
