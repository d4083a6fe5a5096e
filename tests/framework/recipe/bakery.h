// Settings of no Transformer, with one key of every kind, for the tests of framework/recipe.
#pragma once

#include <cstdint>
#include <string>

#include "framework/recipe/describe.h"
#include "framework/recipe/nearest.h"

namespace tilewave {

enum class Grain : std::uint8_t { wheat, rye, spelt };

template <>
inline constexpr std::array kNames<Grain> = {Named{Grain::wheat, "wheat"}, Named{Grain::rye, "rye"}, Named{Grain::spelt, "spelt"}};

struct DoughConfig {
  Grain grain = Grain::rye;
  std::int64_t loaves = 12;
  double salt = 0.02;
  std::string label = "plain";
  bool sourdough = true;

  template <class Visitor>
  void describe(Visitor& visit) {
    visit("grain", grain, {.meaning = "what is ground"});
    visit("loaves", loaves, {.unit = "loaves", .range = between(1, 100), .meaning = "made at once"});
    visit("salt", salt, {.unit = "fraction", .range = from_below(0, 1), .meaning = "of the flour"});
    visit("label", label, {.meaning = "printed on the bag"});
    visit("sourdough", sourdough, {.meaning = "no yeast"});
  }
  friend bool operator==(const DoughConfig&, const DoughConfig&) = default;
};

struct OvenConfig {
  double heat = 250.0;
  std::int64_t minutes = 40;

  template <class Visitor>
  void describe(Visitor& visit) {
    visit("heat", heat, {.unit = "degrees", .range = above(0), .meaning = "of the stone"});
    visit("minutes", minutes, {.range = at_least(0), .meaning = "until done"});
  }
  friend bool operator==(const OvenConfig&, const OvenConfig&) = default;
};

struct Bakery {
  DoughConfig dough;
  OvenConfig oven;

  template <class Visitor>
  void describe(Visitor& visit) {
    visit("dough", dough, "What is baked.");
    visit("oven", oven, "Where.");
  }
  friend bool operator==(const Bakery&, const Bakery&) = default;
};

inline constexpr Alias kBakeryAliases[] = {{"temperature degrees", "oven.heat"},
                                           {"flour_g", "dough.loaves", "It counts loaves: write the grams over 500."},
                                           {"steam", "", "The oven is dry."},
                                           {"dough.steam", "oven.minutes", "Steamed dough takes longer."}};
inline constexpr ForeignValue kBakeryValues[] = {{"dough.grain", "dinkel farro 630", "Write \"spelt\"."}};
inline constexpr ForeignNames kBakeryNames = {.keys = kBakeryAliases, .values = kBakeryValues};

}  // namespace tilewave
