// Libraries that are opened at run time and never shipped: a program that has no use for one starts without it, and where one is missing a
// sentence names the package. An environment variable that names a file is taken at its word: nothing else is looked at behind it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/core/error.h"

namespace tilewave {

// Where a library was found, or a sentence that says what to install.
struct FoundLibrary {
  std::string path;                 // empty: not found
  std::string version;              // "Open MPI 4.1.4", "NCCL 2.27.7"
  std::string refused;              // why it cannot be used, and what to try
  std::vector<std::string> looked;  // in this order, and what came of each: "libmpi.so.40 of the loader's path (not there)"
};

// Whose names later libraries find: plugins that a library opens by itself need its own.
enum class LibraryNames { hidden, shared };

// Opens the file, and notes in `found` how that went; null where it cannot be opened. It stays open as long as the process runs.
void* open_library(FoundLibrary& found, const std::string& file, LibraryNames names);
// The same by what an environment variable says, whose being unset is noted too.
void* open_library_of_variable(FoundLibrary& found, const char* variable, LibraryNames names);
bool is_set(const char* variable);  // and not empty

void* address_in(void* library, const char* name);  // null where it has no such name
std::string path_of_library(const void* address);   // of the library that has this address

// Folders that Python packages are installed in, found without a Python: of $PYTHONPATH, $VIRTUAL_ENV, $CONDA_PREFIX, the user's own, and
// the system's under `root`; of several Pythons the newest first.
std::vector<std::filesystem::path> python_packages(const std::filesystem::path& root = "/");

// Puts the address of a function of that name into a pointer to one.
template <class Function>
void take_function(void* library, const char* name, Function*& function) {
  void* const address = address_in(library, name);
  TW_CHECK(address != nullptr, "the library that was opened has no ", name, "; install a version that `tilewave devices` accepts.");
  function = reinterpret_cast<Function*>(address);
}

}  // namespace tilewave
