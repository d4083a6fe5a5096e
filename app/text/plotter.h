// plot.py, which draws what a folder or a file holds.
#pragma once

#include <filesystem>
#include <string>
#include <sys/types.h>

namespace tilewave {

// Whether it ended well; a picture that cannot be drawn costs a sentence on stderr that names `missing`.
bool draw(const std::filesystem::path& what, const std::string& missing);

// The same beside a run that goes on: silent, and one at a time. What is asked while one is drawn is left out, since a later one has it
// too.
class Redrawing {
 public:
  Redrawing() = default;
  Redrawing(const Redrawing&) = delete;
  Redrawing& operator=(const Redrawing&) = delete;
  ~Redrawing() { finish(); }

  void draw(const std::filesystem::path& what);
  void finish();  // waits for the one under way

 private:
  pid_t child_ = 0;  // 0: none
};

}  // namespace tilewave
