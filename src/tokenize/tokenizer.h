#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/sha256.h"

namespace mindpipe {

using TokenId = std::int32_t;

/// How the text of a special token that stands in a document is read.
enum class SpecialText {
  tokens,  ///< it is the token, which is what a template writes
  plain    ///< it is letters, so that a document cannot end itself
};

/// Ids that a tokenizer gives a meaning beside text.
struct NamedTokens {
  std::optional<TokenId> end, start, padding, mask, unknown;
};

/// One or two sequences with what the tokenizer's template puts around them; `types` numbers the sequence of
/// each id.
struct TemplatedIds {
  std::vector<TokenId> ids;
  std::vector<std::int32_t> types;
};

inline constexpr std::int64_t largest_tokenizer = std::int64_t{64} << 20;  ///< bytes of a file

/// A file that the tokenizer was read from, and the name of a copy that load_tokenizer knows again.
struct TokenizerFile {
  std::string path, name;
};

/// Turns text into ids for one thread: its cache of words and its buffers are its own.
class Encoder {
 public:
  virtual ~Encoder() = default;
  /// Appends the ids of a text, which need not be UTF-8; the template's tokens are not among them.
  virtual void append(std::string_view text, SpecialText special, std::vector<TokenId>& ids) = 0;
  std::vector<TokenId> encode(std::string_view text, SpecialText special = SpecialText::tokens);
};

/// Text to ids and back. Nothing in it changes after it was made: threads share one, each with an encoder of
/// its own, and an encoder lives no longer than its tokenizer.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::unique_ptr<Encoder> encoder() const = 0;
  /// Bytes of the ids. Special tokens are written as their text where `with_special` is set; an id beyond the
  /// vocabulary is refused with its place.
  virtual std::string decode(std::span<const TokenId> ids, bool with_special = false) const = 0;

  virtual TokenId vocabulary() const = 0;  ///< one more than the largest id
  virtual NamedTokens special() const = 0;
  virtual bool is_special(TokenId id) const = 0;
  /// The id of a token, which is written as in the vocabulary.
  virtual std::optional<TokenId> id_of(std::string_view token) const = 0;
  /// A token as the vocabulary writes it; "" of an unused id.
  virtual std::string token_text(TokenId id) const = 0;

  /// The ids of one sequence within the template; without a template they are returned as they are.
  virtual TemplatedIds with_template(std::span<const TokenId> ids) const;
  /// A pair of sequences within the template; without a template one follows the other.
  virtual TemplatedIds with_template(std::span<const TokenId> first, std::span<const TokenId> second) const;

  virtual std::string name() const = 0;  ///< for messages: the path, or "bytes"
  /// SHA-256 of the files' bytes (where there are several, of their digests, in order). Copies have the same.
  virtual Sha256::Digest digest() const = 0;
  virtual std::vector<TokenizerFile> files() const = 0;  ///< what a run copies; none where nothing was read
};

/// Decodes ids that come one by one, and gives whole characters at a time.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool with_special = false)
      : tokenizer_(tokenizer), with_special_(with_special) {}
  /// Text that became whole by this id; "" while a character is incomplete.
  std::string add(TokenId id);
  std::string finish();  ///< bytes that were still waiting for the rest of a character

 private:
  const Tokenizer& tokenizer_;
  bool with_special_;
  std::vector<TokenId>
      recent_;  ///< ids since a place where the text was whole, with one such place before it
  std::size_t printed_ids_ = 0;    ///< first ids of recent_ whose text was given out
  std::size_t printed_bytes_ = 0;  ///< first bytes of their text that were given out
};

/// The tokenizer of a file or folder: "bytes", tokenizer.json, vocab.json beside merges.txt, vocab.txt,
/// *.tiktoken (PATH:PATTERN, or a pattern's name in the file's), or a SentencePiece *.model. A folder is
/// searched in that order.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

/// Fails with a sentence when an id is not below the vocabulary.
void check_id(TokenId id, std::size_t place, const Tokenizer& tokenizer);

}  // namespace mindpipe
