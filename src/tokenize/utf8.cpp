#include "tokenize/utf8.h"

#include <algorithm>
#include <cstring>

namespace mindpipe {

namespace {

/// Bytes of a character by its first; 0 for a byte that begins none.
std::size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/// Whether `next` may follow `lead` in well-formed UTF-8 (Unicode, table 3-7).
bool may_follow(unsigned char lead, unsigned char next) {
  const unsigned char low = lead == 0xe0   ? 0xa0
                            : lead == 0xf0 ? 0x90
                                           : 0x80,
                      high = lead == 0xed   ? 0x9f
                             : lead == 0xf4 ? 0x8f
                                            : 0xbf;
  return next >= low && next <= high;
}

/// How many bytes at the begin belong together: a whole character, or as much of one as is there.
std::size_t well_formed_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = length_of(lead);
  if (length < 2) return length;
  std::size_t have = 1;
  while (have < length && have < text.size()) {
    const auto next = static_cast<unsigned char>(text[have]);
    if (have == 1 ? !may_follow(lead, next) : (next & 0xc0) != 0x80) break;
    ++have;
  }
  return have;
}

}  // namespace

Character first_character(std::string_view text) {
  if (text.empty()) return {};
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = length_of(lead);
  if (length == 0 || well_formed_bytes(text) != length) return {};
  char32_t code = lead & (0x7f >> length);
  for (std::size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  return {code, length};
}

std::size_t invalid_prefix(std::string_view text) {
  std::size_t bytes = 0;
  while (bytes < text.size() && first_character(text.substr(bytes)).bytes == 0) ++bytes;
  return bytes;
}

bool ends_within_character(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const std::string_view last = text.substr(text.size() - back);
    const auto lead = static_cast<unsigned char>(last[0]);
    if ((lead & 0xc0) == 0x80) continue;
    return length_of(lead) > back && well_formed_bytes(last) == back;
  }
  return false;
}

std::size_t valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t eight = 0;
    if (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080ULL) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const std::size_t bytes = first_character(text.substr(at)).bytes;
    if (bytes == 0) break;
    at += bytes;
  }
  return at;
}

void append_utf8(char32_t code, std::string& text) {
  const auto continuation = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    continuation(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    continuation(6);
    continuation(0);
  } else {
    text += static_cast<char>(0xf0 | code >> 18);
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

}  // namespace mindpipe
