#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tokenize/tokenizer.h"

namespace mindpipe {

/// What one side of a conversation says.
struct Message {
  std::string role, text;
};

/// Part of a conversation as a model reads it.
struct ChatPart {
  std::string text;
  bool is_markup = false;  ///< the template says it, and special tokens in it are tokens
  bool counts = false;     ///< an answer, which is learned
};

/// How conversations become text: what stands before and behind what each role says. Answers, what the
/// assistant says and the end of its turn, count.
class ChatTemplate {
 public:
  /// "chatml", "llama3", or a JSON file with one pattern a role, {"user": "<u>{content}</u>", ...}; "begin"
  /// is the text before the first message, and "trim": true takes spaces off both ends of what is said.
  explicit ChatTemplate(const std::string& name);

  /// The parts of a conversation; a role without a pattern is refused. With `asks` the begin of an answer
  /// follows, from where a model goes on.
  std::vector<ChatPart> parts(const std::vector<Message>& messages, bool asks = false) const;
  /// The token that ends an answer; none: the tokenizer has none of that text, so nothing tells a model that
  /// an answer has ended.
  std::optional<TokenId> end_of_answer(const Tokenizer& tokenizer) const;
  /// Warns of a tokenizer that has no token for the end of an answer.
  void warn_without_end(const Tokenizer& tokenizer) const;

 private:
  struct Role {
    std::string before, end, after;  ///< end: the part of what follows that an answer is learned with
  };
  void add_role(const std::string& role, const std::string& pattern);

  std::string name_, begin_;
  bool trims_ = false;
  std::map<std::string, Role> roles_;
};

}  // namespace mindpipe
