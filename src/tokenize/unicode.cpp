#include "tokenize/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

#include "core/check.h"
#include "core/handle.h"

namespace mindpipe {

namespace {

struct MappedTraits {
  using Raw = utf8proc_uint8_t*;
  static Raw none() { return nullptr; }
  static void release(Raw text) noexcept { std::free(text); }
};

utf8proc_category_t category_of(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool is_within(utf8proc_category_t category, utf8proc_category_t first, utf8proc_category_t last) {
  return category >= first && category <= last;
}

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE;
  if (form == NormalForm::nfc || form == NormalForm::nfkc) options |= UTF8PROC_COMPOSE;
  else options |= UTF8PROC_DECOMPOSE;
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

}  // namespace

bool is_white_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 0x9 && code <= 0xd);
  return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
         code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool is_punctuation(char32_t code) {
  if (code < 0x80)
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
           (code >= '{' && code <= '~');
  return is_within(category_of(code), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

bool is_mark(char32_t code) {
  return code >= 0x300 && is_within(category_of(code), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME);
}

bool is_nonspacing_mark(char32_t code) { return code >= 0x300 && category_of(code) == UTF8PROC_CATEGORY_MN; }

bool is_number(char32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  return is_within(category_of(code), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

bool is_control(char32_t code) {
  if (code < 0x80) return code < 0x20 || code == 0x7f;
  return is_within(category_of(code), UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO);
}

void append_lower(char32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code >= 'A' && code <= 'Z' ? code + 32 : code);
    return;
  }
  // utf8proc maps one character to one; the dotted capital I is the only letter whose small form has two.
  if (code == 0x130) text += "i\u0307";
  else append_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))), text);
}

std::string normalized(std::string_view text, NormalForm form) {
  const auto is_ascii = [](char letter) { return static_cast<unsigned char>(letter) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);
  Handle<MappedTraits> mapped;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), mapped.receive(), options_of(form));
  MP_REQUIRE(bytes >= 0, Exit::bad_data, "a text of {} bytes has no normal form ({})", text.size(),
             utf8proc_errmsg(bytes));
  return {reinterpret_cast<const char*>(mapped.get()), static_cast<std::size_t>(bytes)};
}

}  // namespace mindpipe
