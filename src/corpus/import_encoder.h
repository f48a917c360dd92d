#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "corpus/chat_template.h"
#include "corpus/import_files.h"
#include "corpus/text_cuts.h"
#include "tokenize/tokenizer.h"

namespace mindpipe {

/// How texts become tokens.
struct ImportRules {
  std::string key = "text";                                  ///< jsonl: the member that holds the text
  std::string prompt_key = "prompt", answer_key = "answer";  ///< answers without messages
  bool end_of_text = false;                                  ///< every document ends in the tokenizer's end
  bool template_tokens = false;  ///< every document stands within the tokenizer's template
  bool special_tokens = false;   ///< the text of a special token that stands in a document is the token
  bool answers = false;          ///< JSON lines are conversations, of which answers alone count
  std::string chat_template;     ///< how conversations are written; empty: prompts and answers as they are
};

/// A document as a file has it, or a piece of a long one.
struct RawDocument {
  std::size_t file = 0;
  std::int64_t line = 0;  ///< number of its first line
  std::string text;
  bool begins = true, ends = true;

  /// "FILE", or "FILE: line NUMBER" where a document is no whole file.
  std::string place(const std::vector<ImportFile>& files) const;
};

/// The two sides of a line of pairs.
struct SidesOfPair {
  std::string_view source, target;
};
/// The sides of a document of pairs, none where it is empty. A line without a tab is refused. `path`: its
/// file.
std::optional<SidesOfPair> sides_of_pair(const std::string& path, const RawDocument& document);

/// A document, or a piece of one, in tokens.
struct EncodedDocument {
  std::vector<TokenId> ids, targets;  ///< targets: of a pair
  std::vector<std::uint8_t> counts;   ///< answers: 1 for each token that counts
  bool is_empty = false;              ///< there is no text
  bool ends = true;
};

/// Turns documents into tokens, for one thread.
class ImportEncoder {
 public:
  /// Hears of a document, or of the pieces of a long one.
  using Take = std::function<void(EncodedDocument&&)>;

  ImportEncoder(const ImportRules& rules, const Tokenizer& tokenizer, const std::vector<ImportFile>& files,
                const TextCuts& cuts);
  void encode(RawDocument document, const Take& take);

 private:
  void add(std::string_view text, bool is_markup, std::vector<TokenId>& ids);
  void encode_text(std::string_view text, const RawDocument& document, const Take& take);
  EncodedDocument encode_pair(const RawDocument& document);
  EncodedDocument encode_answers(const RawDocument& document);

  const ImportRules& rules_;
  const Tokenizer& tokenizer_;
  const std::vector<ImportFile>& files_;
  const TextCuts& cuts_;
  std::unique_ptr<Encoder> encoder_;
  std::optional<ChatTemplate> template_;
  std::optional<TokenId> end_;
  std::vector<TokenId> before_, behind_;  ///< a document's tokens, of the tokenizer's template
};

}  // namespace mindpipe
