// Reads TOML into described settings, strictly: every key must be known, of its type and in its range, and what is wrong is
// one InputError sentence that says where ("recipes/tiny.toml:3:11"), what was found, what was expected, and the nearest
// thing that would do, which another framework's name or word for it is too. A recipe is UTF-8 of at most kRecipeBytes; CR LF ends lines
// too.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/recipe/describe.h"
#include "framework/recipe/nearest.h"

namespace tilewave {

inline constexpr std::size_t kRecipeBytes = std::size_t{1} << 20;
inline constexpr std::size_t kRecipeDots = 8192;  // bounds how deep tables nest, hence the parser's stack

struct RecipeText {
  std::string source;  // what errors call it: the path
  std::string text;
};

RecipeText read_recipe_file(const std::filesystem::path& path);

// Sets the fields that the text names. Throws the text's first error; some fields are set then.
void read_toml(const RecipeText& recipe, std::vector<Section>& sections, const ForeignNames& names = {});

// Sets one field from "section.key=value", as --set gives it. The value is TOML, where strings may do without quotes.
void set_key(std::string_view assignment, std::vector<Section>& sections, const ForeignNames& names = {});

}  // namespace tilewave
