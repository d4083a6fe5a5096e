// The few elements that pictures are made of. Lengths are of the picture's own units.
#pragma once

#include <string>

namespace tilewave {

// Everything up to the picture's first element, on white; "</svg>\n" ends it.
std::string svg_open(const std::string& title, double width, double height);

struct SvgWords {
  double x = 0.0, y = 0.0;
  const char* anchor = "middle";
  const char* more = "";  // attributes
};
std::string svg_words(const SvgWords& where, const std::string& text);

struct SvgBox {
  double x = 0.0, y = 0.0, width = 0.0, height = 0.0;
};
std::string svg_box(const SvgBox& box, const std::string& look);

std::string svg_number(double value);  // to a tenth

}  // namespace tilewave
