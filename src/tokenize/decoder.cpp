#include "tokenize/decoder.h"

#include <array>
#include <charconv>
#include <utility>

#include "core/check.h"
#include "tokenize/normalizer.h"
#include "tokenize/utf8.h"
#include "tokenize/vocabulary.h"

namespace mindpipe {

namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

class BytesOfLetters final : public Decoder {
 public:
  void undo(std::vector<std::string>& tokens, Matcher&) const override {
    for (std::string& token : tokens) token = bytes_of_letters(token);
  }
};

class JoinWordPieces final : public Decoder {
 public:
  explicit JoinWordPieces(const Json& described)
      : prefix_(text_of(described, "prefix", "##")), cleanup_(bool_of(described, "cleanup", true)) {}
  void undo(std::vector<std::string>& tokens, Matcher&) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0 && tokens[i].starts_with(prefix_)) tokens[i].erase(0, prefix_.size());
      else if (i > 0) tokens[i].insert(0, " ");
      if (cleanup_) clean(tokens[i]);
    }
  }

 private:
  static void clean(std::string& token) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> tight{
        {{" .", "."},
         {" ?", "?"},
         {" !", "!"},
         {" ,", ","},
         {" ' ", "'"},
         {" n't", "n't"},
         {" 'm", "'m"},
         {" do not", " don't"},
         {" 's", "'s"},
         {" 've", "'ve"},
         {" 're", "'re"}}};
    for (const auto& [from, to] : tight) replace_all(token, from, to);
  }
  std::string prefix_;
  bool cleanup_;
};

class SuffixToSpace final : public Decoder {
 public:
  explicit SuffixToSpace(const Json& described) : suffix_(text_of(described, "suffix", "</w>")) {}
  void undo(std::vector<std::string>& tokens, Matcher&) const override {
    if (suffix_.empty()) return;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
  }

 private:
  std::string suffix_;
};

class SignToSpace final : public Decoder {
 public:
  explicit SignToSpace(const Json& described)
      : sign_(character_of(described, "replacement", "\u2581")),
        first_goes_(text_of(described, "prepend_scheme",
                            bool_of(described, "add_prefix_space", true) ? "always" : "never") != "never") {}
  void undo(std::vector<std::string>& tokens, Matcher&) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], sign_, i == 0 && first_goes_ ? "" : " ");
  }

 private:
  std::string sign_;
  bool first_goes_;
};

class FallbackToBytes final : public Decoder {
 public:
  void undo(std::vector<std::string>& tokens, Matcher&) const override {
    for (std::string& token : tokens) {
      unsigned value = 0;
      if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') continue;
      const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
      if (error == std::errc() && end == token.data() + 5) token = std::string(1, static_cast<char>(value));
    }
  }
};

class Fuse final : public Decoder {
 public:
  void undo(std::vector<std::string>& tokens, Matcher&) const override {
    std::string whole;
    for (const std::string& token : tokens) whole += token;
    tokens.assign(1, whole);
  }
};

class StripEnds final : public Decoder {
 public:
  explicit StripEnds(const Json& described)
      : content_(character_of(described, "content", " ")),
        start_(number_of(described, "start", 0)),
        stop_(number_of(described, "stop", 0)) {}
  void undo(std::vector<std::string>& tokens, Matcher&) const override {
    for (std::string& token : tokens) {
      for (std::int64_t i = 0; i < start_ && token.starts_with(content_); ++i)
        token.erase(0, content_.size());
      for (std::int64_t i = 0; i < stop_ && token.ends_with(content_); ++i)
        token.resize(token.size() - content_.size());
    }
  }

 private:
  std::string content_;
  std::int64_t start_, stop_;
};

class ReplaceBack final : public Decoder {
 public:
  explicit ReplaceBack(const Json& described) : content_(text_of(described, "content")) {
    const Json* pattern = value_of(described, "pattern");
    MP_REQUIRE(pattern != nullptr, Exit::bad_data, "Replace has no 'pattern'");
    pattern_ = make_pattern(*pattern);
  }
  void undo(std::vector<std::string>& tokens, Matcher& matcher) const override {
    for (std::string& token : tokens) token = replaced_where_valid(token, matcher);
  }

 private:
  /// A pattern is followed through UTF-8 alone; other bytes stay where they are.
  std::string replaced_where_valid(std::string_view token, Matcher& matcher) const {
    std::string changed;
    while (!token.empty()) {
      const std::size_t valid = valid_prefix(token);
      FormedText formed{std::string(token.substr(0, valid))};
      replace(formed, *pattern_, content_, matcher);
      changed += formed.text;
      token.remove_prefix(valid);
      const std::size_t invalid = invalid_prefix(token);
      changed += token.substr(0, invalid);
      token.remove_prefix(invalid);
    }
    return changed;
  }

  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

class DecoderSequence final : public Decoder {
 public:
  explicit DecoderSequence(const Json& described) {
    for (const Json& one : list_of(described, "decoders")) parts_.push_back(make_decoder(one));
  }
  void undo(std::vector<std::string>& tokens, Matcher& matcher) const override {
    for (const auto& part : parts_) part->undo(tokens, matcher);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(const Json& described) {
  const std::string type = text_of(described, "type");
  if (type == "ByteLevel") return std::make_unique<BytesOfLetters>();
  if (type == "WordPiece") return std::make_unique<JoinWordPieces>(described);
  if (type == "BPEDecoder") return std::make_unique<SuffixToSpace>(described);
  if (type == "Metaspace") return std::make_unique<SignToSpace>(described);
  if (type == "ByteFallback") return std::make_unique<FallbackToBytes>();
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Strip") return std::make_unique<StripEnds>(described);
  if (type == "Replace") return std::make_unique<ReplaceBack>(described);
  if (type == "Sequence") return std::make_unique<DecoderSequence>(described);
  fail(Exit::bad_data,
       "the decoder {} is not built; there are ByteLevel, WordPiece, BPEDecoder, Metaspace, ByteFallback, "
       "Fuse, Strip, "
       "Replace and Sequence",
       type);
}

}  // namespace mindpipe
