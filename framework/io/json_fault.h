// What is wrong with a JSON text that a person brought, in words for a sentence: "it is no JSON from its byte 12 on", "its field
// \"step\" is missing", "a field of it is of another kind than it must be".
#pragma once

#include <exception>
#include <string>

namespace tilewave {

// Of what the JSON library threw; of any other exception its own words, which are then a sentence of ours.
std::string json_fault(const std::exception& error);

}  // namespace tilewave
