#pragma once

/// Where the library tokenizers has tables of an older Unicode than utf8proc: equal ids need equal tables.
namespace mindpipe::older_unicode {

/// Characters that no normal form changes, and over which none reaches.
bool is_barrier(char32_t code);
/// Characters that are a mark by one table and none by the other.
bool changes_mark(char32_t code);
bool changes_nonspacing_mark(char32_t code);
bool changes_control(char32_t code);
bool changes_punctuation(char32_t code);

}  // namespace mindpipe::older_unicode
