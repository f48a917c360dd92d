#pragma once
#include <cstdint>
#include <string>

#include "core/mapped_file.h"
#include "corpus/documents.h"

namespace mindpipe {

/// Type of a token on disk; the numbers are those of the index file.
enum class TokenType : std::uint8_t { u8 = 1, i8 = 2, i16 = 3, i32 = 4, i64 = 5, f64 = 6, f32 = 7, u16 = 8 };
const char* name_of(TokenType type);
std::int64_t bytes_of(TokenType type);
/// The token at an address; `is_unsigned`: of 32 bits, a number from 0 on.
std::int64_t read_token(const std::byte* at, TokenType type, bool is_unsigned = false);
/// Type in which files for this vocabulary are written in.
TokenType token_type_for(std::int64_t vocabulary);

/// Pair of files `prefix.bin` + `prefix.idx`: raw tokens, and where each sequence and document begins. Both
/// are mapped; all that the index says is checked once, against the files' lengths, in the constructor.
class TokenFile : public Documents {
 public:
  static constexpr std::int64_t header_bytes = 34;
  static constexpr char magic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};

  /// Name that the two files of a pair share; `path` may be this name or either file.
  static std::string prefix_of(const std::string& path);

  /// Opens and checks a pair. With a `vocabulary` of 0 tokens are not compared with one.
  explicit TokenFile(const std::string& prefix, std::int64_t vocabulary = 0);

  std::int64_t count() const override { return boundaries_ - 1; }
  std::int64_t length(std::int64_t document) const override;
  void read(std::int64_t document, std::int64_t first, std::int64_t tokens, std::int32_t* out) const override;
  std::string name() const override { return bin_.path(); }

  TokenType type() const { return type_; }
  std::int64_t sequences() const { return sequences_; }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t sequence_length(std::int64_t sequence) const {
    return idx_.at<std::int32_t>(header_bytes + 4 * sequence);
  }
  /// Number of a document's first token among all that the .bin has room for.
  std::int64_t first_token(std::int64_t document) const;
  /// Number of the first sequence of a document; document = count() gives the number of sequences.
  std::int64_t first_sequence(std::int64_t document) const {
    return idx_.at<std::int64_t>(header_bytes + 12 * sequences_ + 8 * document);
  }

 private:
  std::int64_t sequence_offset(std::int64_t sequence) const {
    return idx_.at<std::int64_t>(header_bytes + 4 * sequences_ + 8 * sequence);
  }
  void check_header();
  void check_sequences();
  void check_documents() const;

  MappedFile idx_, bin_;
  std::int64_t vocabulary_;
  TokenType type_ = TokenType::u16;
  std::int64_t sequences_ = 0, boundaries_ = 0, tokens_ = 0;
};

}  // namespace mindpipe
