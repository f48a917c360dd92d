#include "core/strict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/clock.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

std::string complaint(const std::string& json, JsonText text = {}) {
  text.path = "a.json";
  text.expected = "a test's text";
  try {
    parse_json(json, text);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_data);
    return error.what();
  }
}

/// A list of `count` times the same text.
std::string list_of(const std::string& one, int count) {
  std::string json = "[";
  for (int i = 0; i < count; ++i) json += (i > 0 ? "," : "") + one;
  return json + "]";
}

TEST(StrictJson, HoldsWhatTheTextSays) {
  for (const char* text :
       {R"({"a":[1,-2,3.5,true,null,"x"],"b":{"c":{}},"":[[],[1]]})", "[]", "3", "\"x\"", "null",
        R"([18446744073709551615,-9223372036854775808,1e300,"\u00e4\n"])", " {\"a\" : [ ] } "})
    EXPECT_EQ(parse_json(text, {.path = "a.json"}), Json::parse(text)) << text;
}

TEST(StrictJson, RefusesWhatMeansTwoThings) {
  EXPECT_THAT(complaint(R"({"a":1,"b":{"a":1},"a":2})"), HasSubstr("the file has the key 'a' twice"));
  EXPECT_EQ(complaint(R"([{"a":1},{"a":1},{"b":{"a":1}}])"), "");
  EXPECT_THAT(complaint("[1e999]"), HasSubstr("a number that no type holds"));
  EXPECT_THAT(complaint("[1,]"), HasSubstr("is not JSON at byte 4"));
  EXPECT_THAT(complaint("[1"), HasSubstr("is not JSON"));
  EXPECT_THAT(complaint("{} {}"), HasSubstr("is not JSON"));
  EXPECT_THAT(complaint("[\"\xff\"]"), HasSubstr("is not JSON"));
}

TEST(StrictJson, IsNestedNoDeeperThanItsKind) {
  EXPECT_EQ(complaint("[[[[]]]]"), "");
  EXPECT_THAT(complaint("[[[[[]]]]]"), HasSubstr("nested deeper"));
  EXPECT_THAT(complaint("[" + std::string(100'000, '{')), testing::Not(""));
}

TEST(StrictJson, IsRefusedWhereItsValuesTakeMoreMemoryThanItsKind) {
  for (const char* one : {"{}", "[]", "1", "\"\"", "\"a text that needs memory of its own\""}) {
    const JsonText small{.most_memory = 1 << 16};
    EXPECT_EQ(complaint(list_of(one, 100), small), "") << one;
    EXPECT_THAT(complaint(list_of(one, 10'000), small), HasSubstr("more values than 64 KiB of memory hold"))
        << one;
  }
}

TEST(StrictJson, IsReadInATimeThatFollowsItsBytes) {
  const auto seconds = [](const std::string& json) {
    const std::int64_t start = now_ns();
    EXPECT_EQ(complaint(json), "");
    return seconds_since(start);
  };
  EXPECT_LT(seconds(list_of("{}", 500'000)), 5);
  std::string members = "{";
  for (int i = 0; i < 200'000; ++i) members += fmt::format("{}\"{}\":{{}}", i > 0 ? "," : "", i);
  EXPECT_LT(seconds(members + "}"), 5);
}

}  // namespace
}  // namespace mindpipe
