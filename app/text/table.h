// The one way in which a command prints a table. A table fits its page: headings stack their words, names break into lines, and columns
// that a reader misses least are left out, which a line beneath says; --wide has them all.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "app/text/page.h"

namespace tilewave {

enum class Align : std::uint8_t { left, right };  // names to the left, numbers to the right

struct Column {
  std::string heading;
  Align align = Align::right;
  int rank = 0;           // 0: always shown; of the others the lowest come first, as far as there is room
  std::size_t width = 0;  // at least; of a table that is printed while its rows come, what they are expected to need
};

// Rows that are all known before the first one is printed. A column without a word in it is left out without one.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  void add(std::vector<std::string> cells);
  void section(std::string title);  // a line of its own above the rows that follow, which stand further in
  void remark(std::string text);    // a line of prose among the rows
  bool empty() const { return lines_.empty(); }

  void print(std::ostream& stream, const Page& page) const;

 private:
  struct Line {
    enum class Kind : std::uint8_t { row, section, remark };
    Kind kind = Kind::row;
    std::vector<std::string> cells;  // of a section or a remark its text alone
  };

  std::vector<Column> columns_;
  std::vector<Line> lines_;
  std::size_t indent_ = 0;
};

// Rows that come one after the other, each printed at once in columns of the widths declared.
class LiveTable {
 public:
  LiveTable(std::ostream& stream, const Page& page, const std::vector<Column>& columns);  // prints the headings
  void add(const std::vector<std::string>& cells);
  // What was left out, where something was.
  void end();

 private:
  std::ostream& stream_;
  Page page_;
  std::vector<Column> columns_;
  std::vector<std::size_t> widths_;
};

}  // namespace tilewave
