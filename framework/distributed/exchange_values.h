// What hosts tell each other outside steps, as values.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/core/communicator.h"
#include "kernels/core/error.h"

namespace tilewave {

// Every rank's value, by rank. All ranks call it, in the same order.
template <class T>
requires std::is_trivially_copyable_v<T> std::vector<T> exchange_values(Queue& queue, const Communicator& ranks, const T& own) {
  std::string said(sizeof(T), '\0');
  std::memcpy(said.data(), &own, sizeof(T));
  std::vector<T> values;
  for (const std::string& heard : exchange(queue, ranks, said)) {
    TW_CHECK(heard.size() == sizeof(T), "a rank said ", heard.size(), " bytes where ", sizeof(T),
             " were expected; do all of them run the same tilewave?");
    std::memcpy(&values.emplace_back(), heard.data(), sizeof(T));
  }
  return values;
}

}  // namespace tilewave
