#include "models/training/rank_agreement.h"

#include <sstream>
#include <vector>

#include "framework/distributed/host_name.h"

namespace tilewave {
namespace {

// What must be equal, a line each, and how a person knows it.
struct Fact {
  const char* what;
  std::string value;
};
// Files may lie elsewhere on another machine: what is in them is the corpus's fingerprint.
Recipe without_paths(Recipe recipe) {
  DataConfig& data = recipe.data;
  for (std::string* const path : {&data.source, &data.target, &data.validation_source, &data.validation_target}) path->clear();
  return recipe;
}

std::vector<Fact> facts_of(const Context& context, const ResolvedRecipe& resolved, const Corpus& corpus, const std::string& program) {
  return {{"tilewave", program},
          {"recipe", hash_of(without_paths(resolved.recipe))},
          {"corpus", concat(corpus.fingerprint())},
          {"rows of a step", concat(resolved.shapes.source_rows, " and ", resolved.shapes.target_rows)},
          {"kind of device", context.device().backend == Backend::cuda ? "cuda" : "cpu"}};
}

std::string text_of(const std::vector<Fact>& facts) {
  std::string text = host_name();
  for (const Fact& fact : facts) text += concat('\n', fact.value);
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

void agree(Context& context, const ResolvedRecipe& resolved, const Corpus& corpus, const std::string& program) {
  if (context.ranks().alone()) return;
  const std::vector<Fact> facts = facts_of(context, resolved, corpus, program);
  const std::vector<std::string> all = exchange(context.queue(), context.ranks(), text_of(facts));
  const std::vector<std::string> first = lines_of(all.front());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const std::vector<std::string> other = lines_of(all[rank]);
    for (std::size_t fact = 0; fact < facts.size(); ++fact) {
      TW_CHECK_INPUT(other.size() == facts.size() + 1 && other[fact + 1] == first[fact + 1], "rank ", rank, " on ",
                     other.empty() ? "a host without a name" : other.front(), " has another ", facts[fact].what, " than rank 0 on ",
                     first.front(), "; start all ranks with the same program, recipe and files.");
    }
  }
}

std::string told_by_first(Context& context, const std::string& said) { return exchange(context.queue(), context.ranks(), said).front(); }

}  // namespace tilewave
