#include "tokenize/component_tokenizer.h"

#include <algorithm>

#include "core/check.h"
#include "core/mapped_file.h"
#include "tokenize/utf8.h"
#include "tokenize/word_cache.h"

namespace mindpipe {

/// The encoder of a component tokenizer: added tokens, normalizer and splits, then the cache of words or the
/// model.
class ComponentTokenizer::Words final : public Encoder, private PieceSink {
 public:
  explicit Words(const ComponentTokenizer& owner) : owner_(owner), model_(*owner.parts_.model) {}

  void append(std::string_view text, SpecialText special, std::vector<TokenId>& ids) override {
    ids_ = &ids;
    bool begins_document = true;
    while (!text.empty()) {
      const std::size_t valid = valid_prefix(text);
      append_valid(text.substr(0, valid), begins_document, special);
      begins_document = false;
      text.remove_prefix(valid);
      const std::size_t invalid = invalid_prefix(text);
      if (invalid > 0) model_.append_invalid(text.substr(0, invalid), buffers_, ids);
      text.remove_prefix(invalid);
    }
  }

 private:
  void append_valid(std::string_view text, bool begins_document, SpecialText special) {
    if (owner_.in_text_.empty()) {
      append_normalized(text, begins_document, special);
      return;
    }
    for (const TokenFinder::Part& part : owner_.in_text_.parts(text, special)) {
      if (part.id >= 0) ids_->push_back(part.id);
      else
        append_normalized(text.substr(part.begin, part.end - part.begin), begins_document && part.begin == 0,
                          special);
    }
  }

  void append_normalized(std::string_view text, bool begins_document, SpecialText special) {
    FormedText formed;
    if (owner_.parts_.normalizer) {
      formed.text = text;
      owner_.parts_.normalizer->change(formed, matcher_);
      text = formed.text;
      begins_document = begins_document && formed.of_first > 0;
    }
    if (owner_.in_normalized_.empty()) {
      split({text, begins_document});
      return;
    }
    for (const TokenFinder::Part& part : owner_.in_normalized_.parts(text, special)) {
      if (part.id >= 0) ids_->push_back(part.id);
      else split({text.substr(part.begin, part.end - part.begin), begins_document && part.begin == 0});
    }
  }

  void split(const TextPiece& piece) {
    if (piece.text.empty()) return;
    if (owner_.parts_.pre_tokenizer) owner_.parts_.pre_tokenizer->split(piece, matcher_, *this);
    else take(piece);
  }

  void take(const TextPiece& piece) override {
    const bool may_be_kept = piece.text.size() <= WordCache::longest_word;
    if (may_be_kept) {
      const std::span<const TokenId> known = cache_.find(piece.text);
      if (!known.empty()) {
        ids_->insert(ids_->end(), known.begin(), known.end());
        return;
      }
    }
    const std::size_t before = ids_->size();
    model_.append(piece.text, buffers_, *ids_);
    if (may_be_kept) cache_.keep(piece.text, std::span<const TokenId>(*ids_).subspan(before));
  }

  const ComponentTokenizer& owner_;
  const WordModel& model_;
  Matcher matcher_;
  WordBuffers buffers_;
  WordCache cache_;
  std::vector<TokenId>* ids_ = nullptr;
};

ComponentTokenizer::ComponentTokenizer(Components components, TokenizerSource source)
    : parts_(std::move(components)), source_(std::move(source)) {
  // Special tokens are found first where two are written alike.
  for (const bool special : {true, false})
    for (const AddedToken& token : parts_.added)
      if (token.special == special) add(token);
  const TokenId largest = parts_.around.largest_id();
  MP_REQUIRE(largest < vocabulary(), Exit::bad_data,
             "the post-processor has the id {}, and the vocabulary ends at {}; give it the id of a token",
             largest, vocabulary() - 1);
}

void ComponentTokenizer::add(const AddedToken& token) {
  const Vocabulary& model = parts_.model->vocabulary();
  const auto other_id = model.id_of(token.text);
  MP_REQUIRE(!other_id || *other_id == token.id, Exit::bad_data,
             "two tokens have the text '{}', {} and {}; a text can be only one of them", token.text,
             *other_id, token.id);
  const std::string* other_text = model.text_of(token.id);
  MP_REQUIRE(other_text == nullptr || *other_text == token.text, Exit::bad_data,
             "the id {} has two tokens, '{}' and '{}'; give each its own", token.id, *other_text, token.text);
  added_.add(token.text, token.id);
  if (token.special) {
    special_.resize(std::max(special_.size(), static_cast<std::size_t>(token.id) + 1));
    special_[static_cast<std::size_t>(token.id)] = true;
  }
  if (!token.normalized) {
    in_text_.add(token, token.text);
    return;
  }
  Matcher matcher;
  FormedText written{token.text};
  if (parts_.normalizer) parts_.normalizer->change(written, matcher);
  in_normalized_.add(token, written.text);
  written_[token.id] = written.text;
}

std::unique_ptr<Encoder> ComponentTokenizer::encoder() const { return std::make_unique<Words>(*this); }

std::string ComponentTokenizer::decode(std::span<const TokenId> ids, bool with_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    check_id(ids[i], i, *this);
    if (is_special(ids[i]) && !with_special) continue;
    const auto written = written_.find(ids[i]);
    std::string text = written != written_.end() ? written->second : token_text(ids[i]);
    if (!text.empty()) tokens.push_back(std::move(text));
  }
  Matcher matcher;
  if (parts_.decoder) parts_.decoder->undo(tokens, matcher);
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && !parts_.decoder) text += ' ';
    text += tokens[i];
  }
  return text;
}

TokenId ComponentTokenizer::vocabulary() const {
  return std::max(parts_.model->vocabulary().size(), added_.size());
}

bool ComponentTokenizer::is_special(TokenId id) const {
  return id >= 0 && static_cast<std::size_t>(id) < special_.size() && special_[static_cast<std::size_t>(id)];
}

std::optional<TokenId> ComponentTokenizer::id_of(std::string_view token) const {
  const auto id = added_.id_of(token);
  return id ? id : parts_.model->vocabulary().id_of(token);
}

std::string ComponentTokenizer::token_text(TokenId id) const {
  const std::string* text = added_.text_of(id);
  if (text == nullptr) text = parts_.model->vocabulary().text_of(id);
  return text != nullptr ? *text : "";
}

TokenizerSource source_of(const std::string& name, std::vector<TokenizerFile> files) {
  TokenizerSource source{name, std::move(files), {}};
  Sha256 all;
  for (const TokenizerFile& file : source.files) {
    const MappedFile mapped(file.path, largest_tokenizer);
    Sha256 sha;
    sha.add(mapped.data(), static_cast<std::size_t>(mapped.size()));
    source.digest = sha.end();
    all.add(source.digest.data(), source.digest.size());
  }
  if (source.files.size() > 1) source.digest = all.end();
  return source;
}

NamedTokens usual_names(const Vocabulary& vocabulary, const std::vector<AddedToken>& added) {
  const auto first_of = [&](std::initializer_list<std::string_view> names) -> std::optional<TokenId> {
    for (const std::string_view name : names) {
      for (const AddedToken& token : added)
        if (token.text == name) return token.id;
      if (const auto id = vocabulary.id_of(name)) return id;
    }
    return std::nullopt;
  };
  NamedTokens named;
  named.end = first_of(
      {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[EOS]", "<|eot_id|>", "<|im_end|>", "[SEP]"});
  named.start = first_of({"<|begin_of_text|>", "<s>", "<bos>", "[BOS]", "[CLS]"});
  named.padding = first_of({"<pad>", "[PAD]", "<|pad|>", "<|finetune_right_pad_id|>", "<|endofpad|>"});
  named.mask = first_of({"[MASK]", "<mask>"});
  named.unknown = first_of({"<unk>", "[UNK]"});
  return named;
}

}  // namespace mindpipe
