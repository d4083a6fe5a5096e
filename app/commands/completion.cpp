// tilewave completion SHELL, tilewave man, tilewave schema: what shells, man and editors take from the program itself.
#include "app/commands/completion.h"

#include <algorithm>
#include <array>
#include <iostream>

#include "app/options/command.h"
#include "app/options/version.h"
#include "app/text/completion_scripts.h"
#include "app/text/man_page.h"
#include "framework/measure/operation_work.h"
#include "kernels/core/device_profiles.h"
#include "kernels/gemm/catalog.h"
#include "models/figures/figures.h"

namespace tilewave {
namespace {

using Words = std::vector<std::string>;

Words assignments() {
  Recipe recipe;
  Words words;
  for (const Section& section : sections_of(recipe)) {
    for (const Field& field : section.fields) {
      const std::string key = concat(section.name, '.', field.name, '=');
      if (const auto* choice = std::get_if<Choice>(&field.member)) {
        for (const std::string_view name : choice->names) words.push_back(concat(key, name));
      } else if (std::holds_alternative<bool*>(field.member)) {
        words.insert(words.end(), {key + "true", key + "false"});
      } else {
        for (const std::string_view word : field.key.words) words.push_back(concat(key, word));
        words.push_back(key);
      }
    }
  }
  return words;
}

Words profiles() {
  Words words;
  for (const DeviceProfile& profile : device_profiles()) words.emplace_back(profile.key);
  return words;
}

Words precisions() {
  Words words;
  for (const auto& named : kNames<Precision>) words.emplace_back(named.name);
  return words;
}

Words kernels() { return gemm_kernel_names(); }

Words operations() {
  Words words;
  for (const BenchedOperation& operation : benched_operations()) words.emplace_back(operation.name);
  return words;
}

Words figure_names() {
  Words words = {"all"};
  for (const Figure* figure : figures()) {
    if (figure->absent.empty()) words.emplace_back(figure->name);
  }
  return words;
}

constexpr auto kValues = std::to_array<CompletedValue>({
    {"", "recipe", Completion::recipes},
    {"", "run", Completion::folders},
    {"", "path", Completion::files},
    {"", "file", Completion::files},
    {"bench op", "name", Completion::words, operations},
    {"plan", "--op", Completion::words, operations},
    {"", "--set", Completion::assignments, assignments},
    {"", "--switch", Completion::assignments, assignments},
    {"", "--device", Completion::words,
     [] {
       return Words{"auto", "cpu", "cuda"};
     }},
    {"", "--for", Completion::words, profiles},
    {"", "--precision", Completion::words, precisions},
    {"bench gemm", "--dtype", Completion::words,
     [] {
       return Words{"bf16", "f16", "tf32", "f32", "f64"};
     }},
    {"bench gemm", "--against", Completion::words,
     [] {
       return Words{"openblas", "cublas", "cublas_gemv", "cublaslt"};
     }},
    {"bench gemm", "--kernel", Completion::words, kernels},
    {"bench op", "--row-pitch", Completion::words,
     [] {
       return Words{"aligned", "packed"};
     }},
    {"check", "--layer", Completion::words, [] { return Words{"model"}; }},
    {"", "--run", Completion::folders},
    {"ablate", "--out", Completion::folders},
    {"figures", "name", Completion::words, figure_names},
    {"figures", "--out", Completion::folders},
    {"figures", "--recipe", Completion::recipes},
    {"figures", "--choice", Completion::words, kernels},
    {"figures", "--gemm", Completion::none},
    {"plan", "--draw", Completion::files},
    {"report", "--out", Completion::files},
    {"classify", "files", Completion::files},
    {"caption", "files", Completion::files},
    {"evaluate", "--data", Completion::files},
    {"evaluate", "--target", Completion::files},
    {"report", "--prompt", Completion::none},
    {"step", "--out", Completion::files},
    {"", "--weights", Completion::files},
    {"", "folder", Completion::folders},
    {"import", "--recipe", Completion::files},
    {"step", "--batch", Completion::files},
    {"step", "--dump-weights", Completion::files},
    {"step", "--optimizer", Completion::files},
    {"train", "--dump-batches", Completion::files},
    {"tokenize", "files", Completion::files},
    {"", "--tokenizer", Completion::files},
    {"tokenize", "--check", Completion::files},
    {"tokenize", "--out", Completion::folders},
    {"bench calibrate", "--save", Completion::files},
    {"bench calibrate", "--fit", Completion::files},
    // A text of one's own.
    {"", "--layer", Completion::none},
    {"", "--tile", Completion::none},
    {"plan", "--gemm", Completion::none},
    {"plan", "--convolution", Completion::none},
    {"bench gemm", "--seed", Completion::none},
    {"check", "--plant", Completion::none},
    {"train", "--profile", Completion::none},
    {"generate", "--prompt", Completion::none},
    {"generate", "--ids", Completion::none},
    {"generate", "--end", Completion::none},
    {"tokenize", "--name", Completion::none},
    {"tokenize", "--begin", Completion::none},
});

Offered offered(const std::string& path, const std::string& name) {
  const CompletedValue* row = find_completed_value(path, name);
  if (row == nullptr) return {};
  return {.completion = row->completion, .words = row->words == nullptr ? Words() : row->words()};
}

}  // namespace

std::span<const CompletedValue> completed_values() { return kValues; }

const CompletedValue* find_completed_value(std::string_view path, std::string_view name) {
  const CompletedValue* found = nullptr;
  for (const CompletedValue& row : kValues) {
    if (row.name != name) continue;
    if (!row.command.empty() && path == concat("tilewave ", row.command)) return &row;
    if (row.command.empty()) found = &row;
  }
  return found;
}

CommandNode described_command_line(const CLI::App& program) { return command_tree(program, offered); }

Command add_completion(CLI::App& program) {
  CLI::App* command = program.add_subcommand("completion", "print a script that makes a shell complete this command line");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "the shell that reads it")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return {command, [&program, shell] {
            const CommandNode tree = described_command_line(program);
            std::cout << (*shell == "bash" ? bash_completion(tree) : *shell == "zsh" ? zsh_completion(tree) : fish_completion(tree));
            return 0;
          }};
}

Command add_man(CLI::App& program) {
  CLI::App* command = program.add_subcommand("man", "print the man page, which man -l reads from a file");
  return {command, [&program] {
            std::cout << man_page(described_command_line(program), version());
            return 0;
          }};
}

Command add_schema(CLI::App& program) {
  CLI::App* command = program.add_subcommand("schema", "print the JSON Schema of recipes, which editors check and complete them by");
  return {command, [] {
            std::cout << recipe_schema();
            return 0;
          }};
}

}  // namespace tilewave
