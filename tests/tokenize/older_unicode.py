"""Prints src/tokenize/older_unicode.cpp: characters of Unicode 14 that the library tokenizers takes otherwise, since its crates
(unicode-normalization-alignments, unicode_categories) have tables of Unicode 8 to 9.

older_unicode.py: with tokenizers, by a Python that has Unicode 14 (3.11). tests/tokenize/compare_with_peers.py holds the file against it.
"""
import unicodedata

from tokenizers import normalizers, pre_tokenizers

ASSIGNED = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]
FORMS = {form: getattr(normalizers, form)() for form in ("NFC", "NFD", "NFKC", "NFKD")}


def has_no_class_there(character):
    """Whether a mark is not put in order among others."""
    kind = unicodedata.combining(character)
    text = "a" + character + "\u0334" if kind > 1 else "a\u0323" + character
    return kind > 0 and unicodedata.normalize("NFD", character) == character and FORMS["NFD"].normalize_str(text) == text


def is_changed_otherwise(character):
    return any(form.normalize_str(character) != unicodedata.normalize(name, character) for name, form in FORMS.items())


def barriers():
    """Characters that have neither a class nor parts there, so that normal forms stop at them."""
    found = {character for character in ASSIGNED if has_no_class_there(character) or is_changed_otherwise(character)}
    for character in list(found):  # parts that a newer character would be put together of
        found.update(unicodedata.normalize("NFD", character))
    return found


def bert(**chosen):
    without = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**without, **chosen})


def differing(is_there, is_here):
    return {character for character in ASSIGNED if is_there(character) != is_here(unicodedata.category(character), character)}


def tables():
    accents, no_accents, clean = normalizers.StripAccents(), bert(strip_accents=True), bert(clean_text=True)
    punctuation = pre_tokenizers.Punctuation()
    plain = [character for character in ASSIGNED if character < "\x80"]
    return {
        "barrier": barriers(),
        "mark": differing(lambda c: accents.normalize_str("a" + c) == "a", lambda category, c: category[0] == "M"),
        "nonspacing_mark": {c for c in differing(lambda c: no_accents.normalize_str("a" + c) == "a", lambda category, c: category == "Mn")
                            if unicodedata.normalize("NFD", c) == c},
        "control": {c for c in differing(lambda c: clean.normalize_str(c) == "", lambda category, c: category[0] == "C") - set(plain)
                    if c != "\ufffd"},
        "punctuation": differing(lambda c: len(punctuation.pre_tokenize_str("a" + c)) == 2,
                                 lambda category, c: category[0] == "P") - set(plain),
    }


def ranges(characters):
    found = []
    for code in sorted(map(ord, characters)):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def file_text():
    lines = ['#include "tokenize/older_unicode.h"', "", "#include <algorithm>", "#include <array>", "",
             "// Printed by tests/tokenize/older_unicode.py, which asks the library tokenizers about each character.",
             "namespace mindpipe::older_unicode {", "", "namespace {", "",
             "struct Range {", "  char32_t first, last;", "};", ""]
    for name, characters in tables().items():
        found = ranges(characters)
        lines.append(f"constexpr std::array<Range, {len(found)}> {name}_ranges{{{{")
        row = "   "
        for first, last in found:
            item = f" {{0x{first:x}, 0x{last:x}}},"
            if len(row) + len(item) > 108:
                lines.append(row)
                row = "   "
            row += item
        lines += [row, "}};"]
    lines += ["", "template <std::size_t count>", "bool has(const std::array<Range, count>& ranges, char32_t code) {",
              "  if (code < ranges.front().first || code > ranges.back().last) return false;",
              "  const auto range = std::lower_bound(ranges.begin(), ranges.end(), code,",
              "                                      [](const Range& one, char32_t wanted) { return one.last < wanted; });",
              "  return range != ranges.end() && range->first <= code;", "}", "", "}  // namespace", ""]
    functions = {"barrier": "is_barrier", "mark": "changes_mark", "nonspacing_mark": "changes_nonspacing_mark",
                 "control": "changes_control", "punctuation": "changes_punctuation"}
    lines += [f"bool {functions[name]}(char32_t code) {{ return has({name}_ranges, code); }}" for name in functions]
    return "\n".join(lines + ["", "}  // namespace mindpipe::older_unicode", ""])


if __name__ == "__main__":
    print(file_text(), end="")
