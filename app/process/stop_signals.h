// The signals by which a person or a system stops what is under way: SIGINT, SIGTERM and SIGHUP. The first one is answered at once, in a
// line on stderr; a second one ends the process. One that whoever started tilewave ignores (nohup, a background job of a shell script)
// stays ignored.
#pragma once

#include <cstdint>
#include <string>

namespace tilewave {

enum class FirstSignal : std::uint8_t {
  ends_the_process,  // with 128 + signal: nothing would be lost; but for a file that is being written, whose writer then asks
  is_asked_for,      // whoever is at work calls caught_signal() and stops where it can
};

// What the first signal does from now on, and the line it is answered with.
void answer_first_signal(FirstSignal first, const std::string& line);
void catch_stop_signals();

int caught_signal();  // 0: none

}  // namespace tilewave
