// Described settings as a JSON Schema: each kind of key, and that the schema and the reader agree on every value.
#include "framework/recipe/schema.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "framework/recipe/reader.h"
#include "kernels/core/error.h"
#include "tests/framework/recipe/bakery.h"
#include "tests/framework/recipe/draft4.h"

namespace tilewave {
namespace {

using Json = nlohmann::json;

Json schema() {
  Bakery bakery;
  return Json::parse(recipe_schema(sections_of(bakery), "a bakery"));
}

TEST(RecipeSchema, HasEveryKindOfKey) {
  const Json all = schema();
  EXPECT_EQ(all["title"], "a bakery");
  EXPECT_EQ(all["additionalProperties"], false);
  const Json dough = all["properties"]["dough"];
  EXPECT_EQ(dough["description"], "What is baked.");
  EXPECT_EQ(dough["additionalProperties"], false);
  EXPECT_EQ(dough["properties"]["grain"], Json::parse(R"json({"description": "what is ground", "type": "string",
                                                          "enum": ["wheat", "rye", "spelt"], "default": "rye"})json"));
  EXPECT_EQ(dough["properties"]["loaves"], Json::parse(R"json({"description": "made at once (loaves)", "type": "integer", "minimum": 1,
                                                           "maximum": 100, "default": 12})json"));
  EXPECT_EQ(dough["properties"]["salt"], Json::parse(R"json({"description": "of the flour (fraction)", "type": "number", "minimum": 0,
                                                         "maximum": 1, "exclusiveMaximum": true, "default": 0.02})json"));
  EXPECT_EQ(dough["properties"]["label"],
            Json::parse(R"json({"description": "printed on the bag", "type": "string", "default": "plain"})json"));
  EXPECT_EQ(dough["properties"]["sourdough"], Json::parse(R"json({"description": "no yeast", "type": "boolean", "default": true})json"));
  const Json heat = all["properties"]["oven"]["properties"]["heat"];
  EXPECT_EQ(heat["minimum"], 0);
  EXPECT_EQ(heat["exclusiveMinimum"], true);
  EXPECT_FALSE(heat.contains("maximum"));
}

TEST(RecipeSchema, AgreesWithTheReaderOnEveryValue) {
  const Json all = schema();
  Bakery described;
  std::size_t accepted = 0, refused = 0;
  for (const Section& section : sections_of(described)) {
    for (const Field& field : section.fields) {
      for (const char* value : {"true", "false", "0",    "1",       "-1",      "100",       "101",    "12", "0.5", "0.0", "1.0",    "0.999",
                                "-0.5", "1e30",  "\"\"", "\"rye\"", "\"Rye\"", "\"wheat\"", "\"12\"", "[]", "[1]", "{}",  "{a = 1}"}) {
        Bakery bakery;
        std::vector<Section> sections = sections_of(bakery);
        bool read = true;
        try {
          read_toml({.source = "r.toml", .text = concat("[", section.name, "]\n", field.name, " = ", value, "\n")}, sections);
        } catch (const InputError&) {
          read = false;
        }
        const std::string json = std::string_view(value) == "{a = 1}" ? R"({"a": 1})" : value;
        const Json document = {{std::string(section.name), {{std::string(field.name), Json::parse(json)}}}};
        const std::string fault = draft4_fault(all, document);
        EXPECT_EQ(fault.empty(), read) << section.name << '.' << field.name << " = " << value << " " << fault;
        ++(read ? accepted : refused);
      }
    }
  }
  EXPECT_GE(accepted, 20U);
  EXPECT_GE(refused, 60U);
}

}  // namespace
}  // namespace tilewave
