// A column's width is that of its longest cell. Where all of them are too wide for the page, names are cut to kName, then columns are
// taken in by rank as long as they fit, and what must be shown and still does not fit is broken into shorter lines.
#include "app/text/table.h"

#include <algorithm>
#include <numeric>
#include <ostream>
#include <string_view>

#include "framework/io/utf8.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

constexpr std::size_t kGap = 2;    // between columns
constexpr std::size_t kName = 36;  // of a name, where columns would have to go for a longer one
constexpr std::size_t kLeastCell = 8;

using Cells = std::vector<std::string>;
using Widths = std::vector<std::size_t>;  // 0: the column is not shown

std::size_t longest_word(std::string_view text) {
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    longest = std::max(longest, width_of(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return longest;
}

// Where a line of at most `width` characters ends: at a space that leaves no short line, else behind what joins words, else anywhere.
std::size_t line_end(std::string_view text, std::size_t width) {
  std::size_t end = 0, space = 0, joint = 0, space_at = 0;
  for (std::size_t count = 1; count <= width; ++count) {
    end += std::max<std::size_t>(1, character_bytes(text.substr(end)));
    if (std::string_view("/,=+._").find(text[end - 1]) != std::string_view::npos) joint = end;
    if (end < text.size() && text[end] == ' ') {
      space = end;
      space_at = count;
    }
  }
  if (space > 0 && (3 * space_at >= width || joint <= space)) return space;
  return joint > 0 ? joint : end;
}

Cells broken(std::string_view text, std::size_t width) {
  Cells lines;
  while (width_of(text) > width) {
    const std::size_t cut = line_end(text, width);
    lines.emplace_back(text.substr(0, cut));
    text.remove_prefix(cut);
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  lines.emplace_back(text);
  return lines;
}

std::size_t total(const Widths& widths) {
  const auto shown = static_cast<std::size_t>(std::ranges::count_if(widths, [](std::size_t width) { return width > 0; }));
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + kGap * (shown > 0 ? shown - 1 : 0);
}

// Takes from the widest column of names, one character at a time, down to `least`, until all fit.
void narrow_names(Widths& widths, const std::vector<Column>& columns, std::size_t room, std::size_t least) {
  while (total(widths) > room) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const bool can = columns[i].align == Align::left && widths[i] > least;
      if (can && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == widths.size()) return;
    --widths[widest];
  }
}

Widths fitted(const std::vector<Column>& columns, const Widths& natural, std::size_t room) {
  if (total(natural) <= room) return natural;
  Widths names = natural;
  narrow_names(names, columns, room, kName);
  if (total(names) <= room) return names;
  std::vector<std::size_t> by_rank(columns.size());
  std::iota(by_rank.begin(), by_rank.end(), std::size_t{0});
  std::ranges::stable_sort(by_rank, {}, [&](std::size_t i) { return columns[i].rank; });
  Widths widths(columns.size());
  for (const std::size_t i : by_rank) {
    widths[i] = names[i];
    if (columns[i].rank > 0 && total(widths) > room) widths[i] = 0;
  }
  narrow_names(widths, columns, room, kLeastCell);
  return widths;
}

Widths least_widths(const std::vector<Column>& columns) {
  Widths widths;
  for (const Column& column : columns) widths.push_back(std::max(column.width, longest_word(column.heading)));
  return widths;
}

struct Row {
  const std::vector<Column>& columns;
  const Widths& widths;
  std::size_t indent = 0;
};
enum class Stack : std::uint8_t { from_the_top, on_the_ground };

// As many lines as the cell that needs most of them.
void print_cells(std::ostream& stream, const Row& row, const Cells& cells, Stack stack) {
  std::vector<Cells> all;
  std::size_t height = 1;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    all.push_back(row.widths[i] > 0 ? broken(cells[i], row.widths[i]) : Cells());
    height = std::max(height, all.back().size());
  }
  for (std::size_t n = 0; n < height; ++n) {
    std::string line(row.indent, ' ');
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (row.widths[i] == 0) continue;
      const std::size_t above = stack == Stack::on_the_ground ? height - all[i].size() : 0;
      const std::string cell = n >= above && n - above < all[i].size() ? all[i][n - above] : std::string();
      const std::string padding(row.widths[i] - std::min(row.widths[i], width_of(cell)), ' ');
      line += row.columns[i].align == Align::left ? cell + padding : padding + cell;
      line += std::string(kGap, ' ');
    }
    stream << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
}

void print_headings(std::ostream& stream, const Row& row) {
  Cells headings;
  for (const Column& column : row.columns) headings.push_back(column.heading);
  print_cells(stream, row, headings, Stack::on_the_ground);
}

void print_left_out(std::ostream& stream, const Row& row, const Widths& natural, const Page& page) {
  std::string names;
  for (std::size_t i = 0; i < row.columns.size(); ++i) {
    if (row.widths[i] == 0 && natural[i] > 0) names += (names.empty() ? "" : ", ") + row.columns[i].heading;
  }
  if (!names.empty()) stream << wrapped(concat(std::string(row.indent, ' '), "(--wide adds ", names, ")"), page) << '\n';
}

std::size_t room_of(const Page& page, std::size_t indent) { return page.columns - std::min(page.columns, indent); }

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) {
  TW_CHECK(cells.size() == columns_.size(), "a row of ", cells.size(), " cells in a table of ", columns_.size(), " columns.");
  lines_.push_back({.kind = Line::Kind::row, .cells = std::move(cells)});
}

void Table::section(std::string title) {
  lines_.push_back({.kind = Line::Kind::section, .cells = {std::move(title)}});
  indent_ = kGap;
}

void Table::remark(std::string text) { lines_.push_back({.kind = Line::Kind::remark, .cells = {std::move(text)}}); }

void Table::print(std::ostream& stream, const Page& page) const {
  Widths natural = least_widths(columns_);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t longest = 0;
    for (const Line& line : lines_) {
      if (line.kind == Line::Kind::row) longest = std::max(longest, width_of(line.cells[i]));
    }
    natural[i] = longest == 0 ? 0 : std::max(natural[i], longest);
  }
  const Widths widths = fitted(columns_, natural, room_of(page, indent_));
  const Row row = {.columns = columns_, .widths = widths, .indent = indent_};
  print_headings(stream, row);
  for (const Line& line : lines_) {
    if (line.kind == Line::Kind::row) {
      print_cells(stream, row, line.cells, Stack::from_the_top);
    } else {
      stream << wrapped(line.kind == Line::Kind::section ? line.cells.front() : std::string(indent_, ' ') + line.cells.front(), page)
             << '\n';
    }
  }
  print_left_out(stream, row, natural, page);
}

LiveTable::LiveTable(std::ostream& stream, const Page& page, const std::vector<Column>& columns)
    : stream_(stream), page_(page), columns_(columns), widths_(fitted(columns, least_widths(columns), page.columns)) {
  print_headings(stream_, {.columns = columns_, .widths = widths_});
}

void LiveTable::add(const std::vector<std::string>& cells) {
  TW_CHECK(cells.size() == columns_.size(), "a row of ", cells.size(), " cells in a table of ", columns_.size(), " columns.");
  print_cells(stream_, {.columns = columns_, .widths = widths_}, cells, Stack::from_the_top);
  stream_.flush();
}

void LiveTable::end() { print_left_out(stream_, {.columns = columns_, .widths = widths_}, least_widths(columns_), page_); }

}  // namespace tilewave
