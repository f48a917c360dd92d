#include "corpus/token_file.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/input_file.h"

namespace mindpipe {

namespace {

/// Calls `use` with a zero of the type.
template <class Use>
auto with_zero_of(TokenType type, Use use) {
  switch (type) {
    case TokenType::u8:
      return use(std::uint8_t{});
    case TokenType::i8:
      return use(std::int8_t{});
    case TokenType::i16:
      return use(std::int16_t{});
    case TokenType::i32:
      return use(std::int32_t{});
    case TokenType::i64:
      return use(std::int64_t{});
    case TokenType::f64:
      return use(double{});
    case TokenType::f32:
      return use(float{});
    case TokenType::u16:
      return use(std::uint16_t{});
  }
  fail(Exit::internal, "tokens of type {}", static_cast<int>(type));
}

/// Copies tokens of one type as 32-bit numbers; gives the position of the first outside [0, end), or -1.
template <class T>
std::int64_t widen(const std::byte* from, std::int64_t tokens, std::int64_t end, std::int32_t* out) {
  std::int64_t bad = -1;
  for (std::int64_t i = tokens - 1; i >= 0; --i) {
    T token;
    std::memcpy(&token, from + i * static_cast<std::int64_t>(sizeof token), sizeof token);
    const auto value = static_cast<std::int64_t>(token);
    if (value < 0 || value >= end) bad = i;
    out[i] = static_cast<std::int32_t>(value);
  }
  return bad;
}

/// The path of a pair's index; where it is not there, says what names of sources mean.
std::string index_of(const std::string& prefix) {
  std::string index = prefix + ".idx";
  if (file_is_there(index)) return index;
  std::error_code unknown;
  MP_REQUIRE(
      !std::filesystem::is_regular_file(prefix, unknown), Exit::bad_data,
      "{} is neither a text (*.txt) nor a pair of token files ({} is missing); rename it to *.txt, or make a "
      "pair of it: mindpipe-train data import {} --output PREFIX",
      prefix, index, prefix);
  fail(Exit::input_missing,
       "{}: there is no such file; check the path (a text is named with its ending .txt, a pair of token "
       "files without .bin and .idx)",
       index);
}

}  // namespace

const char* name_of(TokenType type) {
  static constexpr std::array names{"uint8", "int8",    "int16",   "int32",
                                    "int64", "float64", "float32", "uint16"};
  return names.at(static_cast<std::size_t>(type) - 1);
}

std::int64_t bytes_of(TokenType type) {
  return with_zero_of(type, [](auto token) -> std::int64_t { return sizeof token; });
}

std::int64_t read_token(const std::byte* at, TokenType type, bool is_unsigned) {
  return with_zero_of(type, [&](auto token) {
    std::memcpy(&token, at, sizeof token);
    const auto value = static_cast<std::int64_t>(token);
    return is_unsigned && type == TokenType::i32
               ? static_cast<std::int64_t>(static_cast<std::uint32_t>(value))
               : value;
  });
}

TokenType token_type_for(std::int64_t vocabulary) {
  return vocabulary < 65500 ? TokenType::u16 : TokenType::i32;
}

std::string TokenFile::prefix_of(const std::string& path) {
  return path.ends_with(".bin") || path.ends_with(".idx") ? path.substr(0, path.size() - 4) : path;
}

TokenFile::TokenFile(const std::string& prefix, std::int64_t vocabulary)
    : idx_(index_of(prefix)), bin_(prefix + ".bin"), vocabulary_(vocabulary) {
  check_header();
  check_sequences();
  check_documents();
}

void TokenFile::check_header() {
  const std::string& path = idx_.path();
  idx_.require_written();
  MP_REQUIRE(idx_.size() >= header_bytes, Exit::bad_data,
             "{}: the file has {} bytes (an index begins with {}); it is truncated or not an index", path,
             idx_.size(), header_bytes);
  MP_REQUIRE(std::memcmp(idx_.data(), magic, sizeof magic) == 0, Exit::bad_data,
             "{}: offset 0: the first nine bytes are not MMIDIDX and two zeros (expected of an index); name "
             "a .bin/.idx pair",
             path);
  const auto version = idx_.at<std::uint64_t>(9);
  MP_REQUIRE(version == 1, Exit::bad_data, "{}: offset 9: version {} (expected 1)", path, version);
  const auto type = idx_.at<std::uint8_t>(17);
  MP_REQUIRE(type >= 1 && type <= 8, Exit::bad_data, "{}: offset 17: dtype {} (expected 1 to 5 or 8)", path,
             type);
  type_ = static_cast<TokenType>(type);
  MP_REQUIRE(type_ != TokenType::f64 && type_ != TokenType::f32, Exit::bad_data,
             "{}: offset 17: dtype {}, {} (expected 1 to 5 or 8: tokens are whole numbers)", path, type,
             name_of(type_));

  const auto sequences = idx_.at<std::uint64_t>(18), boundaries = idx_.at<std::uint64_t>(26);
  const auto rest = static_cast<std::uint64_t>(idx_.size() - header_bytes);
  MP_REQUIRE(sequences <= rest / 12, Exit::bad_data,
             "{}: offset 18: {} sequences (the file of {} bytes has room for {}); it is truncated or damaged",
             path, sequences, idx_.size(), rest / 12);
  MP_REQUIRE(boundaries >= 1, Exit::bad_data, "{}: offset 26: 0 document boundaries (expected documents + 1)",
             path);
  const std::uint64_t room = (rest - 12 * sequences) / 8;
  MP_REQUIRE(boundaries <= room, Exit::bad_data,
             "{}: offset 26: {} document boundaries (the file of {} bytes has room for {}); it is truncated "
             "or damaged",
             path, boundaries, idx_.size(), room);
  const std::uint64_t plain = header_bytes + 12 * sequences + 8 * boundaries;
  const auto size = static_cast<std::uint64_t>(idx_.size());
  MP_REQUIRE(size == plain || size == plain + sequences, Exit::bad_data,
             "{}: the file has {} bytes (expected {}, or {} with modes, for {} sequences and {} document "
             "boundaries)",
             path, size, plain, plain + sequences, sequences, boundaries);
  sequences_ = static_cast<std::int64_t>(sequences);
  boundaries_ = static_cast<std::int64_t>(boundaries);
}

void TokenFile::check_sequences() {
  const std::int64_t size = bytes_of(type_), most = bin_.size() / size;
  for (std::int64_t s = 0; s < sequences_; ++s) {
    const std::int64_t length = sequence_length(s), offset = sequence_offset(s);
    MP_REQUIRE(length >= 0, Exit::bad_data, "{}: offset {}: sequence {} has length {} (expected 0 or more)",
               idx_.path(), header_bytes + 4 * s, s, length);
    MP_REQUIRE(offset >= 0 && offset <= bin_.size() && length * size <= bin_.size() - offset, Exit::bad_data,
               "{}: offset {}: sequence {} lies at byte {} with {} tokens of {} bytes (expected to end "
               "within the {} bytes of {})",
               idx_.path(), header_bytes + 4 * sequences_ + 8 * s, s, offset, length, size, bin_.size(),
               bin_.path());
    tokens_ += length;
    MP_REQUIRE(tokens_ <= most, Exit::bad_data,
               "{}: offset {}: {} tokens up to sequence {} (expected at most {}, what {} has room for: "
               "sequences do not overlap)",
               idx_.path(), header_bytes + 4 * s, tokens_, s, most, bin_.path());
  }
}

void TokenFile::check_documents() const {
  const auto at = [&](std::int64_t d) { return header_bytes + 12 * sequences_ + 8 * d; };
  MP_REQUIRE(first_sequence(0) == 0, Exit::bad_data,
             "{}: offset {}: the first document boundary is {} (expected 0)", idx_.path(), at(0),
             first_sequence(0));
  for (std::int64_t d = 1; d < boundaries_; ++d)
    MP_REQUIRE(first_sequence(d) >= first_sequence(d - 1), Exit::bad_data,
               "{}: offset {}: document boundary {} is {} (expected {} or more: boundaries ascend)",
               idx_.path(), at(d), d, first_sequence(d), first_sequence(d - 1));
  MP_REQUIRE(first_sequence(boundaries_ - 1) == sequences_, Exit::bad_data,
             "{}: offset {}: the last document boundary is {} (expected {}, the number of sequences)",
             idx_.path(), at(boundaries_ - 1), first_sequence(boundaries_ - 1), sequences_);
}

std::int64_t TokenFile::length(std::int64_t document) const {
  std::int64_t total = 0;
  for (std::int64_t s = first_sequence(document); s < first_sequence(document + 1); ++s)
    total += sequence_length(s);
  return total;
}

std::int64_t TokenFile::first_token(std::int64_t document) const {
  const std::int64_t sequence = first_sequence(document);
  return sequence == sequences_ ? tokens_ : sequence_offset(sequence) / bytes_of(type_);
}

void TokenFile::read(std::int64_t document, std::int64_t first, std::int64_t tokens,
                     std::int32_t* out) const {
  MP_CHECK(document >= 0 && document < count() && first >= 0 && tokens >= 0,
           "{}: document {} of {}, tokens {} + {}", name(), document, count(), first, tokens);
  const std::int64_t end = vocabulary_ > 0 ? vocabulary_ : std::int64_t{1} << 31;
  std::int64_t skipped = 0, done = 0;
  for (std::int64_t s = first_sequence(document); s < first_sequence(document + 1) && done < tokens; ++s) {
    const std::int64_t length = sequence_length(s), begin = std::max<std::int64_t>(first - skipped, 0);
    if (begin < length) {
      const std::int64_t take = std::min(length - begin, tokens - done);
      const std::byte* from = bin_.data() + sequence_offset(s) + begin * bytes_of(type_);
      with_zero_of(type_, [&](auto token) {
        const std::int64_t bad = widen<decltype(token)>(from, take, end, out + done);
        if (bad < 0) return;
        std::memcpy(&token, from + bad * static_cast<std::int64_t>(sizeof token), sizeof token);
        check_token(name(), document, skipped + begin + bad, static_cast<std::int64_t>(token), vocabulary_);
      });
      done += take;
    }
    skipped += length;
  }
  MP_CHECK(done == tokens, "{}: document {} ends before token {}", name(), document, first + tokens);
}

}  // namespace mindpipe
