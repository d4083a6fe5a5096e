// dlopen, and what it says where it fails.
#include "kernels/core/runtime_library.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <dlfcn.h>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace tilewave {
namespace {

// The loader's own words, shorter where a file is just not there.
std::string why_not() {
  const char* const message = dlerror();
  const std::string text = message == nullptr ? "unknown" : message;
  return text.find("No such file") != std::string::npos ? "not there" : text;
}

void* open_as(FoundLibrary& found, const std::string& label, const std::string& file, LibraryNames names) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | (names == LibraryNames::shared ? RTLD_GLOBAL : RTLD_LOCAL));
  found.looked.push_back(concat(label, " (", library == nullptr ? why_not() : "opened", ")"));
  return library;
}

namespace fs = std::filesystem;

std::string value_of(const char* variable) { return is_set(variable) ? std::getenv(variable) : ""; }

// "python3.11" of a lib folder is 11, "python3", which Debian shares between its Pythons, 0; -1 for all else.
int minor_version(const std::string& folder) {
  constexpr std::string_view kPython = "python3";
  if (!folder.starts_with(kPython)) return -1;
  const std::string rest = folder.substr(kPython.size());
  if (rest.empty()) return 0;
  const bool number = rest.size() > 1 && rest.size() < 5 && rest.front() == '.' &&
                      std::all_of(rest.begin() + 1, rest.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return number ? std::atoi(rest.c_str() + 1) : -1;
}

void add_packages_below(const fs::path& prefix, std::vector<fs::path>& folders) {
  std::vector<std::pair<int, fs::path>> pythons;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(prefix / "lib", none)) {
    const int minor = minor_version(entry.path().filename().string());
    if (minor >= 0) pythons.emplace_back(minor, entry.path());
  }
  std::sort(pythons.rbegin(), pythons.rend());
  for (const auto& [minor, python] : pythons) {
    for (const char* const name : {"site-packages", "dist-packages"}) {
      if (fs::is_directory(python / name, none)) folders.push_back(python / name);
    }
  }
}

}  // namespace

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

void* open_library(FoundLibrary& found, const std::string& file, LibraryNames names) {
  return open_as(found, file.find('/') == std::string::npos ? file + " of the loader's path" : file, file, names);
}

void* open_library_of_variable(FoundLibrary& found, const char* variable, LibraryNames names) {
  if (is_set(variable)) return open_as(found, concat(variable, "=", std::getenv(variable)), std::getenv(variable), names);
  found.looked.push_back(concat(variable, " (not set)"));
  return nullptr;
}

std::vector<fs::path> python_packages(const fs::path& root) {
  std::vector<fs::path> folders;
  std::istringstream named(value_of("PYTHONPATH"));
  for (std::string folder; std::getline(named, folder, ':');) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  for (const char* const variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (is_set(variable)) add_packages_below(value_of(variable), folders);
  }
  if (is_set("HOME")) add_packages_below(fs::path(value_of("HOME")) / ".local", folders);
  for (const char* const prefix : {"usr/local", "usr"}) add_packages_below(root / prefix, folders);
  return folders;
}

void* address_in(void* library, const char* name) { return dlsym(library, name); }

std::string path_of_library(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

}  // namespace tilewave
