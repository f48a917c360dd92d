#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tokenize/added_tokens.h"
#include "tokenize/decoder.h"
#include "tokenize/normalizer.h"
#include "tokenize/pre_tokenizer.h"
#include "tokenize/template.h"
#include "tokenize/tokenizer.h"
#include "tokenize/word_model.h"

namespace mindpipe {

/// What a tokenizer is put together from. Normalizer, pre-tokenizer and decoder may be missing.
struct Components {
  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::unique_ptr<WordModel> model;
  std::vector<AddedToken> added;
  SequenceTemplate around;
  std::unique_ptr<Decoder> decoder;
  NamedTokens named;
};

/// The files that a tokenizer was read from: their paths, the names of copies, and what identifies their
/// bytes.
struct TokenizerSource {
  std::string name;
  std::vector<TokenizerFile> files;
  Sha256::Digest digest{};
};
/// Reads the files once more for their digest: of one file SHA-256 as sha256sum prints it, of several that of
/// their digests.
TokenizerSource source_of(const std::string& name, std::vector<TokenizerFile> files);

/// A tokenizer as Hugging Face puts them together: added tokens are found, the rest is normalized and split,
/// words become ids.
class ComponentTokenizer final : public Tokenizer {
 public:
  ComponentTokenizer(Components components, TokenizerSource source);

  std::unique_ptr<Encoder> encoder() const override;
  std::string decode(std::span<const TokenId> ids, bool with_special) const override;
  TokenId vocabulary() const override;
  NamedTokens special() const override { return parts_.named; }
  bool is_special(TokenId id) const override;
  std::optional<TokenId> id_of(std::string_view token) const override;
  std::string token_text(TokenId id) const override;
  TemplatedIds with_template(std::span<const TokenId> ids) const override { return parts_.around.of(ids); }
  TemplatedIds with_template(std::span<const TokenId> first, std::span<const TokenId> second) const override {
    return parts_.around.of(first, second);
  }
  std::string name() const override { return source_.name; }
  Sha256::Digest digest() const override { return source_.digest; }
  std::vector<TokenizerFile> files() const override { return source_.files; }

 private:
  class Words;
  void add(const AddedToken& token);

  Components parts_;
  TokenizerSource source_;
  Vocabulary added_;
  std::map<TokenId, std::string>
      written_;                ///< added tokens that are looked for in normalized text, so written
  std::vector<bool> special_;  ///< by id
  TokenFinder in_text_, in_normalized_;
};

/// Tokens by the names that they usually have, of each the first that the vocabulary has.
NamedTokens usual_names(const Vocabulary& vocabulary, const std::vector<AddedToken>& added);

}  // namespace mindpipe
