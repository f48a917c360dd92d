#include "tokenize/word_piece.h"

#include <algorithm>

#include "core/check.h"

namespace mindpipe {

namespace {

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

}  // namespace

WordPiece::WordPiece(Vocabulary vocabulary, std::string unknown, std::string prefix, std::size_t longest_word)
    : vocabulary_(std::move(vocabulary)),
      unknown_(std::move(unknown)),
      prefix_(std::move(prefix)),
      longest_word_(longest_word),
      longest_token_(0) {
  const auto id = vocabulary_.id_of(unknown_);
  MP_REQUIRE(id.has_value(), Exit::bad_data,
             "the unknown token '{}' is no token of the vocabulary; add it there, or name another", unknown_);
  unknown_id_ = *id;
  for (TokenId token = 0; token < vocabulary_.size(); ++token)
    if (const std::string* text = vocabulary_.text_of(token))
      longest_token_ = std::max(longest_token_, text->size());
}

void WordPiece::append(std::string_view word, WordBuffers& buffers, std::vector<TokenId>& ids) const {
  const std::size_t before = ids.size();
  const auto characters = static_cast<std::size_t>(std::count_if(word.begin(), word.end(), begins_character));
  bool known = characters <= longest_word_;
  for (std::size_t begin = 0; known && begin < word.size();) {
    std::size_t end = std::min(word.size(), begin + longest_token_);
    std::optional<TokenId> id;
    for (; end > begin; --end) {
      if (end < word.size() && !begins_character(word[end])) continue;
      buffers.text = begin > 0 ? prefix_ : "";
      buffers.text += word.substr(begin, end - begin);
      id = vocabulary_.id_of(buffers.text);
      if (id) break;
    }
    known = id.has_value();
    if (known) ids.push_back(*id);
    begin = end;
  }
  if (known) return;
  ids.resize(before);
  ids.push_back(unknown_id_);
}

}  // namespace mindpipe
