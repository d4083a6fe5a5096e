// What the JSON library throws, in our words.
#include "framework/io/json_fault.h"

#include <functional>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/core/error.h"

namespace tilewave {
namespace {

std::string fault_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const std::exception& error) {
    return json_fault(error);
  }
  return "no fault";
}

TEST(JsonFault, IsInOurWords) {
  using Json = nlohmann::json;
  EXPECT_EQ(fault_of([] { return Json::parse("{\"a\": tru}"); }), "it is no JSON from its byte 10 on");
  EXPECT_EQ(fault_of([] { return Json::parse(""); }), "it is no JSON from its byte 1 on");
  EXPECT_EQ(fault_of([] { return Json::parse("{}").at("data's position"); }), "its field \"data's position\" is missing");
  EXPECT_EQ(fault_of([] { return Json::parse("{}").at("a\nb"); }), "its field \"a\\x0ab\" is missing");
  for (const char* text : {"{\"step\": \"one\"}", "{\"step\": null}", "{\"step\": [1]}"}) {
    EXPECT_EQ(fault_of([&] { return Json::parse(text).at("step").get<int>(); }), "a field of it is of another kind than it must be");
  }
  EXPECT_EQ(fault_of([] { return Json::parse("3").at("step"); }), "a field of it is of another kind than it must be");
  EXPECT_EQ(fault_of([] { return Json::parse("[]").at(7); }), "a field of it is of another kind than it must be");
  EXPECT_EQ(fault_of([] { throw InputError("M, N and K must be at least 1"); }), "M, N and K must be at least 1");
}

}  // namespace
}  // namespace tilewave
