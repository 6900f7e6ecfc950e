#include "harness/protocol/parse_json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "harness/protocol/trace_reader.h"

namespace trainwreck {
namespace parse_json_test {

std::string Nested(int depth, const std::string& open, const std::string& close) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += "1";
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(ParseJsonTest, ParsesWhatIsWellFormed) {
  EXPECT_EQ(TryParseJson(R"({"a":[1,2]})"), Json({{"a", {1, 2}}}));
  EXPECT_EQ(ParseJson(" 1.5 "), Json(1.5));
  std::istringstream stream("[1]\n");
  EXPECT_EQ(ParseJson(stream), Json::array({1}));
  EXPECT_TRUE(TryParseJson("{\"a\"").is_discarded());
  EXPECT_THROW(ParseJson("{\"a\""), std::runtime_error);
}

TEST(ParseJsonTest, RefusesWhatIsNestedTooDeep) {
  EXPECT_FALSE(TryParseJson(Nested(128, "[", "]")).is_discarded());
  EXPECT_TRUE(TryParseJson(Nested(129, "[", "]")).is_discarded());
  EXPECT_TRUE(TryParseJson(Nested(100'000, "[", "]")).is_discarded());
  EXPECT_TRUE(TryParseJson(Nested(100'000, "{\"a\":", "}")).is_discarded());
  EXPECT_TRUE(TryParseJson(Nested(5'000'000, "[", "")).is_discarded());
  try {
    ParseJson(Nested(100'000, "[{\"a\":", "}]"));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "nested more than 128 deep");
  }
}

TEST(ParseJsonTest, CountsNoBracketsOfTexts) {
  const std::string brackets(1000, '[');
  EXPECT_EQ(ParseJson("\"" + brackets + "\""), Json(brackets));
  EXPECT_EQ(ParseJson(R"({"a\"[": "\\", "b": "[\"["})").size(), 2u);
  // Width is not depth.
  std::string wide = "[[]";
  for (int i = 0; i < 1000; ++i) wide += ",[]";
  EXPECT_EQ(ParseJson(wide + "]").size(), 1001u);
  // A text that ends in the middle of an escape.
  EXPECT_TRUE(TryParseJson("\"\\").is_discarded());
  // What stands behind a quote that never opened is no text.
  EXPECT_TRUE(TryParseJson("{\"a\":\"\\\\\"," + brackets).is_discarded());
}

TEST(ParseJsonTest, ATraceThatIsNestedDeepIsAProblemOfItsLine) {
  const std::string folder = testing::TempDir();
  std::ofstream(folder + "/rank0.jsonl")
      << "{\"t\":\"step\",\"step\":0,\"loss\":1}\n"
      << "{\"t\":\"event\",\"event\":\"e\",\"field\":" << Nested(100'000, "[", "]") << "}\n";
  TraceReader reader(folder, 1, 10);
  reader.Poll(/*last=*/true);
  ASSERT_EQ(reader.problems().size(), 1u);
  EXPECT_EQ(reader.problems()[0], "rank0.jsonl:2: not a JSON object");
}

}  // namespace parse_json_test
}  // namespace trainwreck
