#include "corpus/raw_tokens.h"

#include <algorithm>
#include <array>

#include "core/check.h"
#include "core/mapped_file.h"
#include "corpus/documents.h"

namespace mindpipe {
namespace {

constexpr std::int64_t llm_c_head = 1024;
constexpr std::int32_t llm_c_of_16_bits = 20240520, llm_c_of_32_bits = 20240801;
constexpr std::string_view numpy_magic = "\x93NUMPY";

/// What stands behind a key of the head of a .npy file, which is a Python dictionary: 'descr': '<u2'.
std::string_view value_of(std::string_view head, std::string_view key) {
  const std::size_t at = head.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = head.substr(at + key.size());
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of("': ")));
  return rest;
}

}  // namespace

RawTokens::RawTokens(const std::string& path, std::int64_t vocabulary)
    : path_(path), vocabulary_(vocabulary) {
  const MappedFile file(path);
  MP_REQUIRE(file.size() > 0, Exit::bad_data, "{}: the file is empty; name one that has tokens", path);
  file.require_written();
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()),
                               static_cast<std::size_t>(file.size()));
  MP_REQUIRE(!path.ends_with(".gz") && !path.ends_with(".zst"), Exit::bad_data,
             "{}: tokens are read from plain files; unpack it, and name the plain file", path);
  if (bytes.starts_with(numpy_magic)) read_head_of_numpy();
  else if (file.size() >= llm_c_head) read_head_of_llm_c();
  const std::int64_t size = bytes_of(type_), rest = file.size() - begin_;
  MP_REQUIRE(
      rest % size == 0, Exit::bad_data,
      "{}: {} bytes of tokens behind a head of {} (expected a multiple of {}, the size of one token); is it "
      "whole?",
      path, rest, begin_, size);
  MP_REQUIRE(count_ < 0 || count_ == rest / size, Exit::bad_data,
             "{}: the head says {} tokens, and the file has {}; is it whole?", path, count_, rest / size);
}

void RawTokens::read_head_of_llm_c() {
  const MappedFile file(path_);
  const auto magic = file.at<std::int32_t>(0);
  if (magic != llm_c_of_16_bits && magic != llm_c_of_32_bits) return;
  const auto version = file.at<std::int32_t>(4);
  MP_REQUIRE(version == (magic == llm_c_of_16_bits ? 1 : 7), Exit::bad_data,
             "{}: offset 4: version {} of llm.c's head (expected 1 for 16-bit tokens, 7 for 32-bit ones)",
             path_, version);
  begin_ = llm_c_head;
  count_ = file.at<std::int32_t>(8);
  type_ = magic == llm_c_of_16_bits ? TokenType::u16 : TokenType::i32;
  is_unsigned_32_ = magic == llm_c_of_32_bits;
}

void RawTokens::read_head_of_numpy() {
  const MappedFile file(path_);
  MP_REQUIRE(file.size() >= 12, Exit::bad_data, "{}: the head of the array is cut short", path_);
  const bool is_first = file.at<std::uint8_t>(6) == 1;
  const std::int64_t text = is_first ? 10 : 12,
                     length = is_first ? file.at<std::uint16_t>(8) : file.at<std::uint32_t>(8);
  begin_ = text + length;
  MP_REQUIRE(begin_ <= file.size(), Exit::bad_data, "{}: the head of the array is cut short", path_);
  const std::string_view head(reinterpret_cast<const char*>(file.data()) + text,
                              static_cast<std::size_t>(length));
  const std::string_view kind = value_of(head, "'descr'");
  constexpr std::pair<std::string_view, TokenType> kinds[] = {
      {"|u1", TokenType::u8},  {"|i1", TokenType::i8},  {"<u2", TokenType::u16}, {"<i2", TokenType::i16},
      {"<i4", TokenType::i32}, {"<u4", TokenType::i32}, {"<i8", TokenType::i64}, {"<u8", TokenType::i64}};
  const auto found = std::find_if(std::begin(kinds), std::end(kinds),
                                  [&](const auto& row) { return kind.starts_with(row.first); });
  MP_REQUIRE(
      found != std::end(kinds), Exit::bad_data,
      "{}: the array's type is '{}' (expected whole numbers: <u2, <i4, <i8 or the like); make one of them "
      "with .astype('<i4')",
      path_, kind.substr(0, kind.find('\'')));
  type_ = found->second;
  is_unsigned_32_ = kind.starts_with("<u4");
  MP_REQUIRE(!value_of(head, "'fortran_order'").starts_with("True"), Exit::bad_data,
             "{}: the array is in Fortran's order; save numpy.ascontiguousarray of it", path_);
}

TokenType RawTokens::type() const {
  if (vocabulary_ > 0) return token_type_for(vocabulary_);
  return bytes_of(type_) <= 2 && type_ != TokenType::i16 ? TokenType::u16 : TokenType::i32;
}

void RawTokens::copy_to(TokenWriter& writer, std::optional<std::int32_t> end) const {
  const MappedFile file(path_);
  const std::int64_t size = bytes_of(type_), tokens = (file.size() - begin_) / size;
  constexpr std::int64_t piece = 1 << 16;
  std::vector<std::int32_t> some;
  std::int64_t document = 0, place = 0;
  const auto flush = [&] {
    writer.add(some);
    some.clear();
  };
  for (std::int64_t i = 0; i < tokens; ++i) {
    const std::int64_t token = read_token(file.data() + begin_ + i * size, type_, is_unsigned_32_);
    check_token(path_, document, place++, token, vocabulary_);
    some.push_back(static_cast<std::int32_t>(token));
    const bool ends = end && token == *end;
    if (ends || std::ssize(some) == piece) flush();
    if (ends) {
      writer.end_document();
      ++document;
      place = 0;
    }
    if (i % piece == 0)  // the whole file need not be in memory
      file.forget(0, static_cast<std::size_t>(begin_ + i * size));
  }
  flush();
  if (place > 0) writer.end_document();
}

}  // namespace mindpipe
