// Parts of a page that reads alike on a wide screen and on a phone: bars whose labels wrap, tables that become cards. No script, nothing
// beside the page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewave {

// For the page: text, and attributes in double quotes.
std::string html(std::string_view text);
// The same, of names that may break behind what joins their words.
std::string html_name(std::string_view text);

struct HtmlPage {
  std::string title, body;  // the body is HTML
};
std::string html_text(const HtmlPage& page);

struct Bar {
  std::string label, value;
  double length = 0.0, from = 0.0, to = 0.0;  // from and to: a whisker, none where they are equal
  const char* kind = "measured";              // or "predicted"
};
// Horizontal bars from a common zero, which negative ones stand to the left of; nothing where there are none.
std::string html_bars(const std::vector<Bar>& bars);

struct HtmlColumn {
  std::string heading;
  bool number = true;  // to the right, and never broken
};
// Of many rows: a table stays one on a phone, to be moved sideways, and no cell repeats its heading.
enum class HtmlRows : std::uint8_t { few, many };
class HtmlTable {
 public:
  explicit HtmlTable(std::vector<HtmlColumn> columns, HtmlRows rows = HtmlRows::few)
      : columns_(std::move(columns)), many_(rows == HtmlRows::many) {}
  // Cells are text; the first one names the row.
  void add(const std::vector<std::string>& cells);
  // A row of a name, and text across all other columns.
  void add(const std::string& name, const std::string& text);
  std::string html() const;

 private:
  std::vector<HtmlColumn> columns_;
  bool many_;
  std::string rows_;
};

}  // namespace tilewave
