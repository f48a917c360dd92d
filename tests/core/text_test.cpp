#include "core/text.h"

#include <gtest/gtest.h>

#include <bit>

namespace mindpipe {
namespace {

TEST(Spelling, CountsInsertionsDeletionsChangesAndSwaps) {
  EXPECT_EQ(edit_distance("layers", "layers"), 0);
  EXPECT_EQ(edit_distance("layer", "layers"), 1);
  EXPECT_EQ(edit_distance("alyers", "layers"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(Spelling, SuggestsOnlyWhatIsNear) {
  EXPECT_EQ(nearest_spelling("bacth", {"steps", "batch", "clip"}), "batch");
  EXPECT_EQ(nearest_spelling("temperature", {"steps", "batch", "clip"}), std::nullopt);
  EXPECT_EQ(did_you_mean("stpes", {"steps"}), "; did you mean steps?");
  EXPECT_EQ(did_you_mean("x", {"steps"}), "");
}

TEST(Sizes, AreReadAndShown) {
  EXPECT_EQ(parse_bytes("12 GiB"), 12ll << 30);
  EXPECT_EQ(parse_bytes("1.5KiB"), 1536);
  EXPECT_EQ(parse_bytes("2MB"), 2000000);
  EXPECT_EQ(parse_bytes("9007199254740993"), 9007199254740993);
  for (const char* wrong : {"", "GiB", "-1", "1 XB", "1 GiB 2", "99999999999 TiB", "inf"})
    EXPECT_EQ(parse_bytes(wrong), std::nullopt) << wrong;
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(12.0 * (1ll << 30)), "12 GiB");
  EXPECT_EQ(human_bytes(0), "0 bytes");
}

TEST(Shares, HaveNoSignWhereTheyRoundToNothing) {
  EXPECT_EQ(signed_percent(-0.0004), "0.0 %");
  EXPECT_EQ(signed_percent(0.00004, 2), "0.00 %");
  EXPECT_EQ(signed_percent(-0.0004, 2), "-0.04 %");
  EXPECT_EQ(signed_percent(0.1), "+10.0 %");
  EXPECT_EQ(longer_or_shorter(-0.0004), "as long");
  EXPECT_EQ(longer_or_shorter(-0.004), "0.4 % shorter");
  EXPECT_EQ(longer_or_shorter(1), "100.0 % longer");
}

TEST(Lines, AreCutBetweenWords) {
  EXPECT_EQ(in_short_lines("one two\nthree\n", 8), "one two\nthree\n");
  EXPECT_EQ(in_short_lines("- one two three four\n  five six seven", 10),
            "- one two\n  three\n  four\n  five six\n    seven");
  EXPECT_EQ(in_short_lines("a-long-word one\n\n", 6), "a-long-word\n  one\n\n");
  EXPECT_EQ(in_short_lines("  a-long-word", 6), "  a-long-word");
  EXPECT_EQ(in_short_lines("exactly ten", 11), "exactly ten");
  EXPECT_EQ(in_short_lines("exactly ten", 10), "exactly\n  ten");
}

TEST(Durations, AreReadAndShown) {
  EXPECT_EQ(parse_seconds("23h50m"), 85800);
  EXPECT_EQ(parse_seconds("90"), 90);
  EXPECT_EQ(parse_seconds("1.5 h"), 5400);
  EXPECT_DOUBLE_EQ(parse_seconds("700 us").value(), 7e-4);
  EXPECT_DOUBLE_EQ(parse_seconds("3ms 20 ns").value(), 3.00002e-3);
  for (const char* wrong : {"", "h", "5x", "1h 5", "-3s"})
    EXPECT_EQ(parse_seconds(wrong), std::nullopt) << wrong;
  EXPECT_EQ(human_seconds(3725), "1 h 02 min");
  EXPECT_EQ(human_seconds(185), "3 min 05 s");
  EXPECT_EQ(human_seconds(0.0045), "4.5 ms");
  EXPECT_EQ(human_seconds(1.256), "1.26 s");
  EXPECT_EQ(human_seconds(12.34), "12.3 s");
}

TEST(Numbers, ReadBackToTheSameBits) {
  for (double number : {0.1, 3e-4, 1e-5, 1.0 / 3, 1.7976931348623157e308, -0.0, 1e22})
    EXPECT_EQ(std::bit_cast<std::uint64_t>(std::stod(shortest(number))), std::bit_cast<std::uint64_t>(number))
        << number;
}

TEST(Utf8, AcceptsTextAndRefusesBrokenBytes) {
  EXPECT_TRUE(is_utf8("Grüße, 世界 🌍"));
  for (const char* wrong : {"\xff", "\xc0\x80", "\xc3\xc3", "\xe4\xb8", "\xed\xa0\x80", "\xf5\x80\x80\x80"})
    EXPECT_FALSE(is_utf8(wrong));
}

}  // namespace
}  // namespace mindpipe
