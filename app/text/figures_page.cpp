#include "app/text/figures_page.h"

#include "app/text/figure_text.h"
#include "app/text/html.h"
#include "app/text/units.h"
#include "kernels/core/error.h"

namespace tilewave {
namespace {

std::string prose(const std::string& text) { return concat("<p>", html(text), "</p>\n"); }
std::string fraction_or_nothing(double fraction) { return std::isnan(fraction) ? "" : percent_text(fraction); }
std::string time_or_nothing(double seconds) { return std::isnan(seconds) ? "" : time_text(seconds); }

std::string sizes_text(const FigureRecord& one) {
  return one.operation == "gemm" ? concat(one.m, 'x', one.n, 'x', one.k) : concat(one.m, 'x', one.n);
}

std::string kernel_cell(const FigureRecord& one) {
  return concat(one.kernel, one.tile.empty() ? "" : "/", one.tile, one.split > 1 ? concat("/k", one.split) : std::string());
}

std::string points_table(const PagedFigure& paged) {
  HtmlTable table({{"series", false},
                   {std::string(paged.figure->axis)},
                   {"MxNxK"},
                   {"alignment of A/B/D, bytes"},
                   {"kernel/tile", false},
                   {"tiles"},
                   {"useful"},
                   {"waves"},
                   {"tail"},
                   {"roofline time"},
                   {"predicted time"},
                   {"measured time"},
                   {"quartiles"},
                   {"rate"},
                   {"GB/s"}},
                  HtmlRows::many);
  for (const FigureRecord& one : paged.records) {
    const std::string series = one.series + (one.group.empty() ? "" : ", " + one.group);
    if (!one.refused.empty() && !one.measured()) {
      table.add(series, concat(one.label.empty() ? number_text(one.x, "%.9g") : one.label, ": ", one.refused));
      continue;
    }
    const double seconds = one.measured() ? one.measured_s : one.predicted_s;
    const bool gemm = one.operation == "gemm", planned = one.tiles > 0;
    table.add({series, one.label.empty() ? number_text(one.x, "%.9g") : one.label, sizes_text(one),
               gemm ? concat(one.a_alignment, '/', one.b_alignment, '/', one.d_alignment) : "", kernel_cell(one),
               planned ? count_text(one.tiles) : "", fraction_or_nothing(one.useful_fraction),
               planned ? number_text(one.waves, "%.2f") : "", fraction_or_nothing(one.tail_fraction), time_or_nothing(one.floor_s),
               time_or_nothing(one.predicted_s), time_or_nothing(one.measured_s),
               one.measured() ? concat(time_text(one.lower_quartile_s), " to ", time_text(one.upper_quartile_s)) : "",
               gemm && !std::isnan(seconds) ? flops_text(1e12 * one.value(Quantity::rate, seconds)) : "",
               std::isnan(seconds) ? "" : number_text(one.value(Quantity::bandwidth, seconds), "%.4g")});
  }
  return concat("<details><summary>", paged.records.size(), paged.records.size() == 1 ? " point" : " points", "</summary>\n", table.html(),
                "</details>\n");
}

std::string checklist_table(const std::vector<ChecklistLine>& lines) {
  HtmlTable table({{"guideline", false}, {"question", false}, {"answer", false}, {"of the time"}, {"where not", false}});
  for (const ChecklistLine& line : lines) {
    table.add({line.chapter, line.guideline, std::string(name_of(line.answer)), percent_text(line.share), line.detail});
  }
  return table.html();
}

std::string section_of(const PagedFigure& paged) {
  const Figure& figure = *paged.figure;
  std::string text = concat("<section id=\"", figure.name, "\"><h2>", html(figure.name), "</h2>\n");
  text += prose(concat(figure.references, ": ", figure.shows, '.'));
  if (!figure.claim.empty()) text += concat("<p><b>The guide:</b> ", html(figure.claim), "</p>\n");
  if (!paged.absent.empty()) text += prose(paged.absent);
  std::string items;
  for (const Effect& effect : paged.effects) items += concat("<li>", html(effect_text(effect)), "</li>\n");
  if (!items.empty()) text += concat("<p><b>Here:</b></p>\n<ul>\n", items, "</ul>\n");
  for (const std::string& picture : paged.pictures) text += concat("<div class=\"picture\">", picture, "</div>\n");
  if (!paged.checklist.empty()) text += checklist_table(paged.checklist);
  const std::string error = error_text(paged.records);
  if (!error.empty()) text += prose(error + ".");
  if (!paged.how.empty()) text += prose(paged.how);
  for (const std::string& gap : gap_texts(paged.records)) text += prose(gap);
  if (!paged.records.empty()) text += points_table(paged);
  if (!paged.command.empty()) text += concat("<p><code>", html(paged.command), "</code></p>\n");
  return text + "</section>\n";
}

}  // namespace

std::string figures_page(const FiguresPage& page) {
  std::string body, links;
  for (const std::string& note : page.notes) body += prose(note);
  for (const PagedFigure& paged : page.figures) {
    links += concat(links.empty() ? "" : " &middot; ", "<a href=\"#", paged.figure->name, "\">", html(paged.figure->name), "</a>");
  }
  body += concat("<p>", links, "</p>\n");
  for (const PagedFigure& paged : page.figures) body += section_of(paged);
  return html_text({.title = page.title, .body = body});
}

}  // namespace tilewave
