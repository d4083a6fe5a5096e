// Text and boxes as SVG says them.
#include "app/text/svg.h"

#include "app/text/html.h"
#include "app/text/units.h"
#include "kernels/core/error.h"

namespace tilewave {

std::string svg_number(double value) { return number_text(value, "%.1f"); }

std::string svg_open(const std::string& title, double width, double height) {
  return concat(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 )", svg_number(width), ' ', svg_number(height),
                R"(" role="img" font-family="system-ui,sans-serif" font-size="12" fill="#222"><title>)", html(title),
                "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
}

std::string svg_words(const SvgWords& where, const std::string& text) {
  return concat(R"(<text x=")", svg_number(where.x), R"(" y=")", svg_number(where.y), R"(" text-anchor=")", where.anchor, R"(")",
                where.more, ">", html(text), "</text>\n");
}

std::string svg_box(const SvgBox& box, const std::string& look) {
  return concat(R"(<rect x=")", svg_number(box.x), R"(" y=")", svg_number(box.y), R"(" width=")", svg_number(box.width), R"(" height=")",
                svg_number(box.height), R"(" )", look, "/>\n");
}

}  // namespace tilewave
