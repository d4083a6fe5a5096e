// How an aggregate of settings says what it is, once: its member function template `describe(visit)` calls
//   visit("d_model", d_model, {.unit = "features", .range = between(1, 65536), .meaning = "width of the residual stream"})
// for every key; the member's initialiser is the default. An aggregate of such aggregates calls
//   visit("model", model, "the Transformer")
// for every section. sections_of() turns that into data, which the reader, the writer, the search for the nearest key and
// the tables of docs/use/recipes.md work on. Enums take part by specialising kNames.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace tilewave {

template <class Enum>
struct Named {
  Enum value;
  std::string_view name;
  std::string_view former = {};  // what recipes called it once: still read, and what a recipe's hash is made of
};
template <class Enum, class... Names>
Named(Enum, Names...) -> Named<Enum>;

// Specialise as a std::array of Named, one for every value a person may choose.
template <class Enum>
inline constexpr std::nullptr_t kNames = nullptr;

template <class Enum>
concept NamedEnum = std::is_enum_v<Enum> && !std::is_same_v<std::remove_cv_t<decltype(kNames<Enum>)>, std::nullptr_t>;

// Constrained by nothing that looks at kNames: its specialisations may call an enum's own name_of.
template <class Enum>
requires std::is_enum_v<Enum>
constexpr std::string_view name_of(Enum value) {
  static_assert(NamedEnum<Enum>, "an enum in a recipe needs its names: specialise kNames");
  for (const auto& named : kNames<Enum>) {
    if (named.value == value) return named.name;
  }
  return "unknown";
}

// The numbers a key may take; never an infinity or a NaN.
struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool least_included = true;
  bool most_included = true;

  bool contains(double value) const {
    return std::isfinite(value) && (least_included ? value >= least : value > least) && (most_included ? value <= most : value < most);
  }
};

constexpr Range at_least(double least) { return {.least = least}; }
constexpr Range above(double least) { return {.least = least, .least_included = false}; }
constexpr Range between(double least, double most) { return {.least = least, .most = most}; }
constexpr Range from_below(double least, double most) { return {.least = least, .most = most, .most_included = false}; }

// What becomes of a number with a fraction: the training step rounds it to the precision it computes in, or the host alone reads it.
enum class ComputedIn : std::uint8_t { run_precision, host_double };

// Whether what a run computes follows from a key, so that a run that goes on keeps its value.
enum class Resumed : std::uint8_t { keeps_value, may_change };

// Whether a recipe's hash has a key always, or where it is not at its default: a key that came later leaves the hash of a recipe that does
// not know it as it was, and runs of before go on.
enum class Hashed : std::uint8_t { always, where_set };

struct Key {
  std::string_view unit = {};
  Range range = {};
  ComputedIn computed = ComputedIn::run_precision;
  Resumed resumed = Resumed::keeps_value;
  Hashed hashed = Hashed::always;
  std::span<const std::string_view> words = {};  // of a text that may be one of these or a path
  std::string_view meaning = {};
};

// A member of an enum type, as the position of its name.
struct Choice {
  std::vector<std::string_view> names, former;  // each name's; empty where it never had another
  std::function<std::size_t()> get;
  std::function<void(std::size_t)> set;
};

struct Field {
  std::string_view name;
  Key key;
  std::variant<bool*, std::int64_t*, double*, std::string*, Choice> member;
};

// Gives a key the value that it has in another recipe of the same kind.
inline void assign(const Field& to, const Field& from) {
  std::visit(
      [&]<class Member>(const Member& member) {
        const Member& other = std::get<Member>(from.member);
        if constexpr (std::is_pointer_v<Member>) {
          *member = *other;
        } else {
          member.set(other.get());
        }
      },
      to.member);
}

struct Section {
  std::string_view name;
  std::string_view meaning;
  std::vector<Field> fields;
};

class FieldVisitor {
 public:
  explicit FieldVisitor(std::vector<Field>& fields) : fields_(fields) {}

  template <class Member>
  void operator()(std::string_view name, Member& member, const Key& key) {
    if constexpr (std::is_enum_v<Member>) {
      static_assert(NamedEnum<Member>, "an enum in a recipe needs its names: specialise kNames");
      Choice choice{.names = {},
                    .former = {},
                    .get =
                        [&member] {
                          std::size_t position = 0;
                          while (position + 1 < kNames<Member>.size() && kNames<Member>[position].value != member) ++position;
                          return position;
                        },
                    .set = [&member](std::size_t position) { member = kNames<Member>.at(position).value; }};
      for (const auto& named : kNames<Member>) {
        choice.names.push_back(named.name);
        choice.former.push_back(named.former);
      }
      fields_.push_back({name, key, std::move(choice)});
    } else {
      fields_.push_back({name, key, &member});
    }
  }

 private:
  std::vector<Field>& fields_;
};

class SectionVisitor {
 public:
  explicit SectionVisitor(std::vector<Section>& sections) : sections_(sections) {}

  template <class Config>
  void operator()(std::string_view name, Config& config, std::string_view meaning) {
    sections_.push_back({name, meaning, {}});
    FieldVisitor visit(sections_.back().fields);
    config.describe(visit);
  }

 private:
  std::vector<Section>& sections_;
};

// Every section and key of a recipe. The fields point into it: it must outlive them.
template <class Recipe>
std::vector<Section> sections_of(Recipe& recipe) {
  std::vector<Section> sections;
  SectionVisitor visit(sections);
  recipe.describe(visit);
  return sections;
}

}  // namespace tilewave
