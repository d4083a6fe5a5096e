// tilewave import FOLDER and tilewave export RUN FOLDER: models of Hugging Face in and out.
#include <iostream>
#include <unistd.h>

#include "app/options/command.h"
#include "framework/io/file.h"
#include "models/exchange/import_config.h"
#include "models/exchange/model_export.h"

namespace tilewave {
namespace {

struct ImportArguments {
  std::filesystem::path folder, recipe;
};

std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + printable(name);
  return text;
}

int import_model(const ImportArguments& options) {
  if (!options.recipe.empty()) {
    check_output_file("--recipe", options.recipe);
    TW_CHECK_INPUT(!is_there(options.recipe), "--recipe ", options.recipe.string(), ": is there already; name another file.");
  }
  const ImportedConfig imported = import_config(options.folder);
  const std::string text = concat("# From ", printable(options.folder.string()), ", a ", imported.family, ": ", imported.tokenizer, ".\n",
                                  to_toml(imported.recipe));
  const Page page = page_of(STDERR_FILENO, Columns::fitting);
  std::cerr << wrapped(imported.tokenizer, page) << '\n';
  std::cerr << wrapped(concat("used: ", list_text(imported.used)), page) << '\n';
  if (!imported.harmless.empty()) std::cerr << wrapped(concat("changes nothing here: ", list_text(imported.harmless)), page) << '\n';
  if (options.recipe.empty()) {
    std::cout << text;
    return 0;
  }
  write_file_atomically(options.recipe, text);
  std::cout << "recipe written to " << options.recipe.string() << "\nnext: tilewave train " << options.recipe.string() << " --weights "
            << options.folder.string()
            << " --set data.source=" << (imported.recipe.data.kind == DataKind::text ? "FILE.txt" : "'FILES.bin'") << '\n';
  return 0;
}

struct ExportArguments {
  std::filesystem::path run, folder;
};

int write_model(const ExportArguments& options) {
  const ExportedModel exported = export_model(options.run, options.folder);
  print_notes(exported.notes);
  std::cout << exported.tensors << " tensors after step " << exported.step << " written to " << options.folder.string() << " ("
            << list_text(exported.files) << ")\n";
  return 0;
}

}  // namespace

Command add_import(CLI::App& program) {
  CLI::App* command = program.add_subcommand("import", "make a recipe of a Hugging Face GPT-2's, Llama's or Qwen's config.json");
  const auto options = std::make_shared<ImportArguments>();
  command->add_option("folder", options->folder, "the model's folder, or its config.json")->required();
  command->add_option("--recipe", options->recipe, "write the recipe to this file; without it, print it")->type_name("FILE");
  return {command, [options] { return import_model(*options); }};
}

Command add_export(CLI::App& program) {
  CLI::App* command = program.add_subcommand("export", "write a run as a model that Hugging Face's transformers loads");
  const auto options = std::make_shared<ExportArguments>();
  command->add_option("run", options->run, "the run's folder")->required();
  command->add_option("folder", options->folder, "where config.json, model.safetensors and the tokenizer go; made where it is not there")
      ->required();
  return {command, [options] { return write_model(*options); }};
}

}  // namespace tilewave
