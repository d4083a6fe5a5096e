#include "app/text/html.h"

#include <algorithm>
#include <cmath>

#include "app/text/units.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

// Below 800 px a row is a card: its first cell the title, each other one a line with its heading before it.
constexpr const char* kStyle = R"(
body{font:15px/1.5 system-ui,sans-serif;max-width:1200px;margin:0 auto;padding:1em;color:#222;text-align:left;overflow-wrap:anywhere}
h1{font-size:1.4em}h2{font-size:1.15em;margin-top:2em}
.bar{display:grid;grid-template-columns:minmax(0,2fr) minmax(0,5fr) 7em;gap:.2em .8em;align-items:center;margin:.15em 0}
.bar svg{display:block;width:100%;height:16px}
.measured{fill:#4878a8}.predicted{fill:#c8a048}.bar line{stroke:#222;stroke-width:1.5}
table{border-collapse:collapse;font-size:.87em;font-variant-numeric:tabular-nums}
th,td{padding:.25em .5em;text-align:left;vertical-align:top;border-bottom:1px solid #ddd}
th{vertical-align:bottom;overflow-wrap:normal}
th.number,td.number{text-align:right}
td{min-width:6em}td.number{white-space:nowrap;min-width:0}
details{margin:.4em 0}
.sample{margin:.8em 0;padding:0 1em;border-left:3px solid #4878a8;white-space:pre-wrap}.sample p{margin:.3em 0}
.picture{overflow-x:auto;margin:1em 0}.picture svg{display:block;width:100%;min-width:600px;max-width:900px}
@media(prefers-color-scheme:dark){
:root{color-scheme:dark}
body{background:#16181b;color:#ddd}a{color:#8ab4f8}
.bar line{stroke:#ddd}.measured{fill:#6d9dcb}
th,td{border-color:#3a3d42}
.ink svg{fill:#ddd}.ink svg>rect[fill="#fff"]{fill:none}
.ink line[stroke="#ddd"]{stroke:#3a3d42}.ink line[stroke="#444"]{stroke:#999}.ink path,.ink circle,.ink line{filter:brightness(1.3)}
}
@media(max-width:800px){
.bar{grid-template-columns:minmax(0,1fr) 7em}
.bar .label{grid-column:1/-1}
table,tbody,tr,td{display:block}
thead{display:none}
tr{border:1px solid #ccc;border-radius:6px;margin:.6em 0;padding:.3em .6em}
td,td.number{display:flex;min-width:0;justify-content:space-between;gap:1em;text-align:right;white-space:normal;border:0;padding:.1em 0}
td::before{content:attr(data-label);opacity:.75;text-align:left;flex:0 0 auto;max-width:50%}
td:first-child{font-weight:600;text-align:left}
td:first-child::before,td:empty,td.text::before{content:none;display:none}
td.text{text-align:left}
table.many{display:table}.many thead{display:table-header-group}.many tbody{display:table-row-group}
.many tr{display:table-row;border:0}
.many td,.many td.number{display:table-cell;white-space:nowrap;border-bottom:1px solid #ddd;padding:.25em .5em}
.many td::before{content:none}
}
)";

std::string percent(double fraction) { return number_text(100.0 * fraction, "%.3f%%"); }

}  // namespace

std::string html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  }
  return result;
}

std::string html_name(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += html(std::string_view(&c, 1));
    if (std::string_view("/=+._,").find(c) != std::string_view::npos) result += "<wbr>";
  }
  return result;
}

std::string html_text(const HtmlPage& page) {
  return concat("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">",
                R"(<meta name="viewport" content="width=device-width,initial-scale=1"><title>)", html(page.title), "</title><style>",
                kStyle, "</style></head>\n<body><h1>", html(page.title), "</h1>\n", page.body, "</body></html>\n");
}

std::string html_bars(const std::vector<Bar>& bars) {
  if (bars.empty()) return "";
  double least = 0.0, most = 0.0;
  for (const Bar& bar : bars) {
    least = std::min({least, bar.length, bar.from});
    most = std::max({most, bar.length, bar.to});
  }
  const double range = most > least ? most - least : 1.0;
  const auto x = [&](double value) { return percent((value - least) / range); };
  std::string text = "<div class=\"chart\">\n";
  for (const Bar& bar : bars) {
    text +=
        concat(R"(<div class="bar"><span class="label">)", html_name(bar.label), R"(</span><svg role="img"><rect class=")", bar.kind,
               R"(" x=")", x(std::min(bar.length, 0.0)), R"(" width=")", percent(std::abs(bar.length) / range), R"(" y="2" height="12"/>)");
    if (bar.to > bar.from) text += concat(R"(<line x1=")", x(bar.from), R"(" x2=")", x(bar.to), R"(" y1="8" y2="8"/>)");
    text += concat(R"(</svg><span class="value">)", html(bar.value), "</span></div>\n");
  }
  return text + "</div>\n";
}

void HtmlTable::add(const std::vector<std::string>& cells) {
  TW_CHECK(cells.size() == columns_.size(), "a row of ", cells.size(), " cells in a table of ", columns_.size(), " columns.");
  rows_ += "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string label = many_ ? "" : concat(R"( data-label=")", tilewave::html(columns_[i].heading), '"');
    rows_ += concat("<td", columns_[i].number ? R"( class="number")" : "", label, ">",
                    columns_[i].number ? tilewave::html(cells[i]) : html_name(cells[i]), "</td>");
  }
  rows_ += "</tr>\n";
}

void HtmlTable::add(const std::string& name, const std::string& text) {
  rows_ += concat("<tr><td>", html_name(name), R"(</td><td class="text" colspan=")", columns_.size() - 1, R"(">)", tilewave::html(text),
                  "</td></tr>\n");
}

std::string HtmlTable::html() const {
  std::string head;
  for (const HtmlColumn& column : columns_) {
    head += concat("<th", column.number ? R"( class="number")" : "", ">", tilewave::html(column.heading), "</th>");
  }
  const std::string table =
      concat(many_ ? "<table class=\"many\">" : "<table>", "<thead><tr>", head, "</tr></thead><tbody>\n", rows_, "</tbody></table>\n");
  return many_ ? concat("<div class=\"picture\">", table, "</div>\n") : table;
}

}  // namespace tilewave
