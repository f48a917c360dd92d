#include "tokenize/sentence_piece.h"

#include <sentencepiece_processor.h>

#include "core/check.h"
#include "tokenize/component_tokenizer.h"

namespace mindpipe {

namespace {

using sentencepiece::SentencePieceProcessor;

/// Asks the library, which keeps nothing of a text: threads may share the model.
class SentencePieceEncoder final : public Encoder {
 public:
  explicit SentencePieceEncoder(const SentencePieceProcessor& model) : model_(model) {}
  void append(std::string_view text, SpecialText, std::vector<TokenId>& ids) override {
    std::vector<int> some;
    const auto status = model_.Encode(text, &some);
    MP_REQUIRE(status.ok(), Exit::bad_data, "SentencePiece cannot encode a text of {} bytes ({})",
               text.size(), status.ToString());
    ids.insert(ids.end(), some.begin(), some.end());
  }

 private:
  const SentencePieceProcessor& model_;
};

class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const std::string& path)
      : source_(source_of(path, {{path, "tokenizer.model"}})) {
    const auto status = model_.Load(path);
    MP_REQUIRE(status.ok(), Exit::bad_data, "{}: no model of SentencePiece ({}); fetch it again", path,
               status.ToString());
  }

  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<SentencePieceEncoder>(model_); }
  std::string decode(std::span<const TokenId> ids, bool with_special) const override {
    std::vector<int> kept;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      check_id(ids[i], i, *this);
      if (with_special || !is_special(ids[i])) kept.push_back(ids[i]);
    }
    std::string text;
    const auto status = model_.Decode(kept, &text);
    MP_REQUIRE(status.ok(), Exit::bad_data, "SentencePiece cannot decode {} tokens ({})", kept.size(),
               status.ToString());
    return text;
  }
  TokenId vocabulary() const override { return model_.GetPieceSize(); }
  NamedTokens special() const override {
    const auto known = [](int id) { return id >= 0 ? std::optional<TokenId>(id) : std::nullopt; };
    NamedTokens named;
    named.end = known(model_.eos_id());
    named.start = known(model_.bos_id());
    named.padding = known(model_.pad_id());
    named.unknown = known(model_.unk_id());
    named.mask = id_of("[MASK]");
    if (!named.mask) named.mask = id_of("<mask>");
    return named;
  }
  bool is_special(TokenId id) const override { return id >= 0 && id < vocabulary() && model_.IsControl(id); }
  std::optional<TokenId> id_of(std::string_view token) const override {
    const int id = model_.PieceToId(token);
    if (id < 0 || id >= vocabulary() || model_.IdToPiece(id) != token) return std::nullopt;
    return id;
  }
  std::string token_text(TokenId id) const override {
    return id >= 0 && id < vocabulary() ? model_.IdToPiece(id) : "";
  }
  std::string name() const override { return source_.name; }
  Sha256::Digest digest() const override { return source_.digest; }
  std::vector<TokenizerFile> files() const override { return source_.files; }

 private:
  SentencePieceProcessor model_;
  TokenizerSource source_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_sentence_piece(const std::string& path) {
  return std::make_unique<SentencePieceTokenizer>(path);
}

}  // namespace mindpipe
