# Writes OUTPUT, a source that holds the commit of the repository SOURCE, where that has changed since it was written:
#   cmake -D SOURCE=. -D OUTPUT=commit.cpp -P cmake/tilewaveCommit.cmake
# "1f3807b12345", with " and changes" behind it where files differ from it; "unknown" outside a repository of tilewave's own.
cmake_minimum_required(VERSION 3.25)
foreach(variable IN ITEMS GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX)  # of a hook that builds
  unset(ENV{${variable}})
endforeach()
set(commit unknown)
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --show-prefix RESULT_VARIABLE failed OUTPUT_VARIABLE within
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed AND within STREQUAL "")  # else a folder of somebody else's repository
    execute_process(COMMAND ${git} -C ${SOURCE} describe --always --abbrev=12 --exclude=* "--dirty= and changes"
                    RESULT_VARIABLE failed OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT failed)
      set(commit "${found}")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// Written by cmake/tilewaveCommit.cmake at each build, and compiled again where the commit is another.
#include "app/options/version.h"

namespace tilewave {

const char* const kCommit = "@commit@";

}  // namespace tilewave
]])
