// The three standard streams, whatever whoever started tilewave left of them.
#pragma once

namespace tilewave {

// Takes the numbers 0 to 2 where they are closed, before a file that is opened gets one of them and is taken for a stream: standard input
// then ends at once, what goes to standard output fails as on a closed one, and what goes to standard error goes nowhere.
void occupy_standard_streams();

}  // namespace tilewave
