// recipes/recipe.schema.json: what the program prints, valid for every recipe, and for none with a mistake in it.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <toml++/toml.h>

#include "models/recipe/recipe.h"
#include "tests/framework/recipe/draft4.h"
#include "tests/shell.h"
#include "tests/test_environment.h"

namespace tilewave {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class RecipeSchemaFile : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(recipes_)) GTEST_SKIP() << "recipes/ is not beside --data";
  }

  static Json json_of(const std::string& toml) {
    std::ostringstream text;
    text << toml::json_formatter(toml::parse(std::string_view(toml)));
    return Json::parse(text.str());
  }

  static std::string fault(const std::string& toml) { return draft4_fault(Json::parse(recipe_schema()), json_of(toml)); }

  fs::path recipes_ = fs::absolute(test_environment().data).lexically_normal() / ".." / "recipes";
};

// TILEWAVE_WRITE_DOCS=1 tilewave_tests --gtest_filter=RecipeSchemaFile.* --data tests writes the file instead.
TEST_F(RecipeSchemaFile, IsWhatTheProgramPrints) {
  const fs::path path = recipes_ / "recipe.schema.json";
  if (std::getenv("TILEWAVE_WRITE_DOCS") != nullptr) std::ofstream(path, std::ios::binary) << recipe_schema();
  EXPECT_TRUE(file_text(path) == recipe_schema()) << "recipes/recipe.schema.json is older than models/recipe/config.h; run\n"
                                                  << "  ./tilewave schema >recipes/recipe.schema.json";
  if (!fs::exists(test_environment().program)) return;
  EXPECT_EQ(shell(quoted(fs::absolute(test_environment().program).string()) + " schema", "/").output, recipe_schema());
}

TEST_F(RecipeSchemaFile, EveryRecipeNamesItAndIsValid) {
  std::size_t count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(recipes_)) {
    if (entry.path().extension() != ".toml") continue;
    ++count;
    const std::string text = file_text(entry.path());
    EXPECT_TRUE(text.starts_with("#:schema recipe.schema.json\n")) << entry.path();
    EXPECT_EQ(fault(text), "") << entry.path();
  }
  EXPECT_GE(count, 10U);
}

TEST_F(RecipeSchemaFile, MistakesAreSeen) {
  EXPECT_EQ(fault("[model]\nd_model = 64\n"), "");
  EXPECT_EQ(fault("[model]\nd_modle = 64\n"), ".model.d_modle is no key");
  EXPECT_EQ(fault("[modle]\nd_model = 64\n"), ".modle is no key");
  EXPECT_EQ(fault("model = 3\n"), ".model is no object");
  EXPECT_EQ(fault("[model]\nd_model = \"64\"\n"), ".model.d_model is no integer");
  EXPECT_EQ(fault("[model]\nd_model = 64.0\n"), ".model.d_model is no integer");
  EXPECT_EQ(fault("[model]\nd_model = 0\n"), ".model.d_model is below the minimum");
  EXPECT_EQ(fault("[model]\ndropout = 1.0\n"), ".model.dropout is above the maximum");
  EXPECT_EQ(fault("[model]\ntied = \"yes\"\n"), ".model.tied is no boolean");
  EXPECT_EQ(fault("[run]\nprecision = \"fp8\"\n"), ".run.precision is none of the enum");
}

// Every key that is described, with its own default and with a value of another type.
TEST_F(RecipeSchemaFile, EveryKeyIsThere) {
  Recipe recipe;
  std::size_t count = 0;
  const Json properties = Json::parse(recipe_schema())["properties"];
  for (const Section& section : sections_of(recipe)) {
    for (const Field& field : section.fields) {
      ++count;
      const std::string line = concat("[", section.name, "]\n", field.name, " = ");
      EXPECT_EQ(fault(line + value_text(field) + "\n"), "");
      EXPECT_NE(fault(line + "[1]\n"), "");
      EXPECT_FALSE(properties[std::string(section.name)]["properties"][std::string(field.name)]["description"].get<std::string>().empty());
    }
  }
  EXPECT_GE(count, 50U);
}

// An implementation of somebody else's: the schema is draft 4's, and it agrees on valid and invalid recipes.
TEST_F(RecipeSchemaFile, PythonsImplementationAgrees) {
  if (shell("python3 -c 'import jsonschema, tomllib'", "/").status != 0) GTEST_SKIP() << "there is no python3 with jsonschema and tomllib";
  const TemporaryFolder folder;
  write_text(folder.path() / "misspelled.toml", "[model]\nd_modle = 64\n");
  write_text(folder.path() / "typed.toml", "[model]\nd_model = \"64\"\n");
  write_text(folder.path() / "ranged.toml", "[model]\ndropout = 1.0\n");
  write_text(folder.path() / "check.py", R"(
import json, pathlib, sys, tomllib, jsonschema
schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
jsonschema.Draft4Validator.check_schema(schema)
validator = jsonschema.Draft4Validator(schema)
for path in sys.argv[2:]:
    print(pathlib.Path(path).name, "valid" if validator.is_valid(tomllib.loads(pathlib.Path(path).read_text())) else "invalid")
)");
  const std::string recipes = quoted(recipes_.lexically_normal().string());
  const Outcome outcome = shell("python3 check.py " + recipes + "/recipe.schema.json " + recipes + "/*.toml *.toml", folder.path());
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  std::istringstream lines(outcome.output);
  std::size_t valid = 0, invalid = 0;
  for (std::string name, verdict; lines >> name >> verdict;) {
    const bool wrong = name == "misspelled.toml" || name == "typed.toml" || name == "ranged.toml";
    EXPECT_EQ(verdict, wrong ? "invalid" : "valid") << name;
    ++(wrong ? invalid : valid);
  }
  EXPECT_GE(valid, 10U);
  EXPECT_EQ(invalid, 3U);
}

}  // namespace
}  // namespace tilewave
