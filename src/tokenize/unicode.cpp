#include "tokenize/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

#include "core/check.h"
#include "core/handle.h"
#include "tokenize/older_unicode.h"

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
  return is_within(category_of(code), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO) !=
         older_unicode::changes_punctuation(code);
}

bool is_mark(char32_t code) {
  return code >= 0x300 && is_within(category_of(code), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME) !=
                              older_unicode::changes_mark(code);
}

bool is_nonspacing_mark(char32_t code) {
  return code >= 0x300 &&
         (category_of(code) == UTF8PROC_CATEGORY_MN) != older_unicode::changes_nonspacing_mark(code);
}

bool is_number(char32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  return is_within(category_of(code), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

bool is_control(char32_t code) {
  if (code < 0x80) return code < 0x20 || code == 0x7f;
  return is_within(category_of(code), UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO) !=
         older_unicode::changes_control(code);
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

namespace {

/// Appends a text without barriers in a normal form.
void append_normalized(std::string_view text, NormalForm form, std::string& all) {
  // Composed forms change no character below U+0300, whose first byte is below 0xcc.
  const unsigned first_changed = form == NormalForm::nfc ? 0xcc : 0x80;
  const auto stays = [&](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return byte < first_changed;
  };
  if (std::all_of(text.begin(), text.end(), stays)) {
    all += text;
    return;
  }
  Handle<MappedTraits> mapped;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), mapped.receive(), options_of(form));
  MP_REQUIRE(bytes >= 0, Exit::bad_data, "a text of {} bytes has no normal form ({})", text.size(),
             utf8proc_errmsg(bytes));
  all.append(reinterpret_cast<const char*>(mapped.get()), static_cast<std::size_t>(bytes));
}

}  // namespace

std::string normalized(std::string_view text, NormalForm form) {
  std::string all;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0xdf) {  // no barrier is below U+07C0
      ++at;
      continue;
    }
    const Character character = first_character(text.substr(at));
    const std::size_t end = at + std::max<std::size_t>(character.bytes, 1);
    if (older_unicode::is_barrier(character.code)) {
      append_normalized(text.substr(done, at - done), form, all);
      all += text.substr(at, end - at);
      done = end;
    }
    at = end;
  }
  append_normalized(text.substr(done), form, all);
  return all;
}

}  // namespace mindpipe
