// The page that a command prints on: how many columns a line may have, and prose that keeps to them. Tables do so by table.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewave {

enum class Columns : std::uint8_t { fitting, all };  // all: --wide

struct Page {
  static constexpr std::size_t kMax = 100;                                 // of a file or a pipe, and on a wider terminal
  static constexpr std::size_t kLeast = 40;                                // on a narrower terminal, which breaks lines itself
  static constexpr std::size_t kUnbounded = static_cast<std::size_t>(-1);  // --wide

  std::size_t columns = kMax;
};

// What a descriptor that may be a terminal leaves room for.
Page page_of(int descriptor, Columns columns);

// Characters, not bytes.
std::size_t width_of(std::string_view text);

// Lines of the page's width, broken at spaces, but not between a number and what it counts; a word longer than a line stays whole. What a
// line begins with by way of spaces, its continuations begin with too, and with `hang` spaces more. No line feed behind the last one.
std::string wrapped(std::string_view text, const Page& page, std::size_t hang = 2);

}  // namespace tilewave
