#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mindpipe {

bool all_digits(std::string_view text);
/// Whether `text` is an integer in plain digits (0, 7, -12): no 010, 0x10, 1_000 or 1.0.
bool is_plain_integer(std::string_view text);

/// Number of letters put in, taken out, changed or swapped that turn one word into the other.
int edit_distance(std::string_view from, std::string_view to);

/// The candidate that `word` was most likely meant to be; nothing when none is near.
std::optional<std::string> nearest_spelling(std::string_view word,
                                            const std::vector<std::string>& candidates);
/// End of a sentence about a wrong word: "; did you mean steps?", or nothing when no candidate is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

std::string human_bytes(double bytes);      ///< "1.5 GiB"
std::string human_seconds(double seconds);  ///< "1 h 02 min", "3 min 05 s", "12.3 s", "4.5 ms"
/// "+2.3 %", "-0.4 %"; "0.0 %" of what rounds to nothing.
std::string signed_percent(double share, int digits = 1);
std::string longer_or_shorter(double share);  ///< "2.3 % longer", "0.4 % shorter", "as long"

/// The number of bytes that "4096", "12 GiB" or "500MB" says; nothing when it is no number of bytes.
std::optional<std::int64_t> parse_bytes(std::string_view text);
/// The seconds that "90", "1.5h", "23h50m", "30 s" or "700 us" says; nothing when it is no duration.
std::optional<double> parse_seconds(std::string_view text);

/// The number in the shortest digits that read back to the same bits.
std::string shortest(double number);
bool is_utf8(std::string_view text);
/// The first `most` bytes of any text, for a sentence: bytes of no letter, digit or sign as \x00, and ...
/// where it goes on.
std::string printable(std::string_view text, std::size_t most);
std::string joined(const std::vector<int>& numbers);  ///< "1, 2, 3"
std::string join(const std::vector<std::string>& words, std::string_view between);
/// The text with lines of so many letters at most, as far as its words allow: what goes on stands two letters
/// further in.
std::string in_short_lines(std::string_view text, std::size_t most = 120);

}  // namespace mindpipe
