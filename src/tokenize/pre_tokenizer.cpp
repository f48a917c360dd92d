#include "tokenize/pre_tokenizer.h"

#include <vector>

#include "core/check.h"
#include "tokenize/normalizer.h"
#include "tokenize/unicode.h"

namespace mindpipe {

const std::string gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

SplitBehavior behavior_of(const std::string& name) {
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  fail(Exit::bad_data,
       "the behavior '{}' of a split is not one of Removed, Isolated, MergedWithPrevious, MergedWithNext, "
       "Contiguous",
       name);
}

/// Turns matches and the text between them, told in order, into pieces by a behavior.
class Cutter {
 public:
  Cutter(const TextPiece& piece, SplitBehavior behavior, PieceSink& sink)
      : piece_(piece), behavior_(behavior), sink_(sink) {}

  /// The next piece of the text, which ends at byte `end`.
  void tell(std::size_t end, bool matches) {
    switch (behavior_) {
      case SplitBehavior::removed:
        if (!matches) give(begin_, end);
        break;
      case SplitBehavior::isolated:
        give(begin_, end);
        break;
      case SplitBehavior::merged_with_previous:
        if (!matches || last_matched_) flush(begin_);
        last_matched_ = matches;
        break;
      case SplitBehavior::merged_with_next:
        if (matches || !last_matched_) flush(begin_);
        last_matched_ = matches;
        break;
      case SplitBehavior::contiguous:
        if (matches != last_matched_) flush(begin_);
        last_matched_ = matches;
        break;
    }
    begin_ = end;
  }
  void finish() {
    if (behavior_ != SplitBehavior::removed && behavior_ != SplitBehavior::isolated) flush(begin_);
  }

 private:
  void give(std::size_t from, std::size_t to) {
    if (from < to) sink_.take({piece_.text.substr(from, to - from), piece_.begins_document && from == 0});
  }
  void flush(std::size_t to) {
    give(kept_, to);
    kept_ = to;
  }

  const TextPiece& piece_;
  SplitBehavior behavior_;
  PieceSink& sink_;
  std::size_t begin_ = 0, kept_ = 0;
  bool last_matched_ = false;
};

void split_by(const Pattern& pattern, const TextPiece& piece, SplitBehavior behavior, bool invert,
              Matcher& matcher, PieceSink& sink) {
  Cutter cutter(piece, behavior, sink);
  std::size_t done = 0;
  pattern.for_each_match(piece.text, matcher, [&](const Match& match) {
    if (match.begin > done) cutter.tell(match.begin, invert);
    cutter.tell(match.end, !invert);
    done = match.end;
  });
  if (done < piece.text.size()) cutter.tell(piece.text.size(), invert);
  cutter.finish();
}

/// Splits at characters that `matches` names.
template <class Matches>
void split_characters(const TextPiece& piece, SplitBehavior behavior, PieceSink& sink, Matches matches) {
  Cutter cutter(piece, behavior, sink);
  std::size_t place = 0, done = 0;
  for_each_character(piece.text, [&](char32_t code, std::string_view bytes) {
    const std::size_t end = place + bytes.size();
    if (matches(code)) {
      if (place > done) cutter.tell(place, false);
      cutter.tell(end, true);
      done = end;
    }
    place = end;
  });
  if (done < place) cutter.tell(place, false);
  cutter.finish();
}

class SplitByPattern final : public PreTokenizer {
 public:
  SplitByPattern(std::unique_ptr<Pattern> pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  void split(const TextPiece& piece, Matcher& matcher, PieceSink& sink) const override {
    split_by(*pattern_, piece, behavior_, invert_, matcher, sink);
  }

 private:
  std::unique_ptr<Pattern> pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class ByteLevel final : public PreTokenizer {
 public:
  explicit ByteLevel(const Json& described) : space_(bool_of(described, "add_prefix_space", true)) {
    if (bool_of(described, "use_regex", true)) pattern_ = std::make_unique<Pattern>(gpt2_pattern);
  }
  bool makes_bytes() const override { return true; }
  void split(const TextPiece& piece, Matcher& matcher, PieceSink& sink) const override {
    std::string with_space;
    TextPiece whole = piece;
    if (space_ && piece.text.front() != ' ') {
      with_space = ' ';
      with_space += piece.text;
      whole.text = with_space;
    }
    if (pattern_) split_by(*pattern_, whole, SplitBehavior::isolated, false, matcher, sink);
    else sink.take(whole);
  }

 private:
  bool space_;
  std::unique_ptr<Pattern> pattern_;
};

class Metaspace final : public PreTokenizer {
 public:
  explicit Metaspace(const Json& described)
      : sign_(character_of(described, "replacement", "\u2581")), split_(bool_of(described, "split", true)) {
    std::string scheme = bool_of(described, "add_prefix_space", true) ? "always" : "never";
    scheme = text_of(described, "prepend_scheme", scheme);
    MP_REQUIRE(scheme == "always" || scheme == "first" || scheme == "never", Exit::bad_data,
               "'prepend_scheme' is '{}' (expected always, first or never)", scheme);
    always_ = scheme == "always";
    first_ = scheme == "first";
  }
  void split(const TextPiece& piece, Matcher&, PieceSink& sink) const override {
    std::string text;
    text.reserve(piece.text.size() + piece.text.size() / 4 + sign_.size());
    for (const char letter : piece.text) {
      if (letter == ' ') text += sign_;
      else text += letter;
    }
    if ((always_ || (first_ && piece.begins_document)) && !text.starts_with(sign_)) text.insert(0, sign_);
    if (split_) give_words(text, piece.begins_document, sink);
    else sink.take({text, piece.begins_document});
  }

 private:
  /// Every word begins with the sign.
  void give_words(std::string_view text, bool begins_document, PieceSink& sink) const {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.size(), text.find(sign_, begin + 1));
      sink.take({text.substr(begin, end - begin), begins_document && begin == 0});
      begin = end;
    }
  }

  std::string sign_;
  bool split_, always_ = false, first_ = false;
};

/// BERT's words: white space goes, punctuation stands alone.
class BertWords final : public PreTokenizer {
 public:
  void split(const TextPiece& piece, Matcher&, PieceSink& sink) const override {
    std::size_t place = 0, begin = 0;
    const auto give = [&](std::size_t end) {
      if (begin < end)
        sink.take({piece.text.substr(begin, end - begin), piece.begins_document && begin == 0});
      begin = end;
    };
    for_each_character(piece.text, [&](char32_t code, std::string_view bytes) {
      const std::size_t end = place + bytes.size();
      const bool space = is_white_space(code);
      if (space || is_punctuation(code)) give(place);
      if (space) begin = end;
      else if (begin == place && is_punctuation(code)) give(end);
      place = end;
    });
    give(place);
  }
};

class SplitAtSpaces final : public PreTokenizer {
 public:
  void split(const TextPiece& piece, Matcher&, PieceSink& sink) const override {
    split_characters(piece, SplitBehavior::removed, sink, is_white_space);
  }
};

class Digits final : public PreTokenizer {
 public:
  explicit Digits(const Json& described)
      : behavior_(bool_of(described, "individual_digits", false) ? SplitBehavior::isolated
                                                                 : SplitBehavior::contiguous) {}
  void split(const TextPiece& piece, Matcher&, PieceSink& sink) const override {
    split_characters(piece, behavior_, sink, is_number);
  }

 private:
  SplitBehavior behavior_;
};

class Punctuation final : public PreTokenizer {
 public:
  explicit Punctuation(const Json& described)
      : behavior_(behavior_of(text_of(described, "behavior", "Isolated"))) {}
  void split(const TextPiece& piece, Matcher&, PieceSink& sink) const override {
    split_characters(piece, behavior_, sink, is_punctuation);
  }

 private:
  SplitBehavior behavior_;
};

class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(const Json& described) {
    for (const Json& one : list_of(described, "pretokenizers")) parts_.push_back(make_pre_tokenizer(one));
    for (std::size_t i = 0; i + 1 < parts_.size(); ++i)
      MP_REQUIRE(
          !parts_[i]->makes_bytes(), Exit::bad_data,
          "a pre-tokenizer after ByteLevel is not built: it would split letters that stand for bytes; put "
          "ByteLevel last");
  }
  bool makes_bytes() const override { return !parts_.empty() && parts_.back()->makes_bytes(); }
  void split(const TextPiece& piece, Matcher& matcher, PieceSink& sink) const override {
    Stage{*this, 0, matcher, sink}.take(piece);
  }

 private:
  /// Sends pieces through one part, and what comes of them through the next.
  struct Stage final : PieceSink {
    Stage(const PreTokenizerSequence& owner, std::size_t part, Matcher& matcher, PieceSink& last)
        : owner_(owner), part_(part), matcher_(matcher), last_(last) {}
    void take(const TextPiece& piece) override {
      if (part_ == owner_.parts_.size()) {
        last_.take(piece);
      } else if (part_ + 1 == owner_.parts_.size()) {
        owner_.parts_[part_]->split(piece, matcher_, last_);
      } else {
        Stage next(owner_, part_ + 1, matcher_, last_);
        owner_.parts_[part_]->split(piece, matcher_, next);
      }
    }
    const PreTokenizerSequence& owner_;
    std::size_t part_;
    Matcher& matcher_;
    PieceSink& last_;
  };
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_pre_tokenizer(const Json& described) {
  const std::string type = text_of(described, "type");
  if (type == "ByteLevel") return std::make_unique<ByteLevel>(described);
  if (type == "Split") {
    const Json* pattern = value_of(described, "pattern");
    MP_REQUIRE(pattern != nullptr, Exit::bad_data, "Split has no 'pattern'");
    return std::make_unique<SplitByPattern>(make_pattern(*pattern),
                                            behavior_of(text_of(described, "behavior")),
                                            bool_of(described, "invert", false));
  }
  if (type == "Metaspace") return std::make_unique<Metaspace>(described);
  if (type == "BertPreTokenizer") return std::make_unique<BertWords>();
  if (type == "Whitespace")
    return std::make_unique<SplitByPattern>(
        std::make_unique<Pattern>(R"(\w+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}\s]+)"),
        SplitBehavior::removed, true);
  if (type == "WhitespaceSplit") return std::make_unique<SplitAtSpaces>();
  if (type == "Digits") return std::make_unique<Digits>(described);
  if (type == "Punctuation") return std::make_unique<Punctuation>(described);
  if (type == "Sequence") return std::make_unique<PreTokenizerSequence>(described);
  fail(Exit::bad_data,
       "the pre-tokenizer {} is not built; there are ByteLevel, Split, Metaspace, BertPreTokenizer, "
       "Whitespace, "
       "WhitespaceSplit, Digits, Punctuation and Sequence",
       type);
}

}  // namespace mindpipe
