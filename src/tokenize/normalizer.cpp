#include "tokenize/normalizer.h"

#include <vector>

#include "core/check.h"
#include "tokenize/unicode.h"

namespace mindpipe {

namespace {

class ToNormalForm final : public Normalizer {
 public:
  explicit ToNormalForm(NormalForm form) : form_(form) {}
  std::string changed(std::string text, Matcher&) const override { return normalized(text, form_); }

 private:
  NormalForm form_;
};

std::string lowered(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  for_each_character(text, [&](char32_t code, std::string_view) { append_lower(code, lower); });
  return lower;
}

class Lowercase final : public Normalizer {
 public:
  std::string changed(std::string text, Matcher&) const override { return lowered(text); }
};

/// The text without the characters that `leave_out` names.
template <class LeaveOut>
std::string without(std::string_view text, LeaveOut leave_out) {
  std::string rest;
  rest.reserve(text.size());
  for_each_character(text, [&](char32_t code, std::string_view bytes) {
    if (!leave_out(code)) rest += bytes;
  });
  return rest;
}

class StripAccents final : public Normalizer {
 public:
  std::string changed(std::string text, Matcher&) const override { return without(text, is_mark); }
};

bool is_chinese(char32_t code) {
  return (code >= 0x4e00 && code <= 0x9fff) || (code >= 0x3400 && code <= 0x4dbf) ||
         (code >= 0x20000 && code <= 0x2a6df) || (code >= 0x2a700 && code <= 0x2b73f) ||
         (code >= 0x2b740 && code <= 0x2b81f) || (code >= 0x2b920 && code <= 0x2ceaf) ||
         (code >= 0xf900 && code <= 0xfaff) || (code >= 0x2f800 && code <= 0x2fa1f);
}

/// What BERT does: clean text, spaces around Chinese characters, no accents, small letters; each a setting.
class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const Json& described)
      : clean_(bool_of(described, "clean_text", true)),
        spaces_(bool_of(described, "handle_chinese_chars", true)),
        lower_(bool_of(described, "lowercase", true)),
        accents_off_(bool_of(described, "strip_accents", lower_)) {}

  std::string changed(std::string text, Matcher&) const override {
    if (clean_ || spaces_) text = cleaned(text);
    if (accents_off_) text = without(normalized(text, NormalForm::nfd), is_nonspacing_mark);
    return lower_ ? lowered(text) : text;
  }

 private:
  std::string cleaned(std::string_view text) const {
    std::string clean;
    clean.reserve(text.size());
    for_each_character(text, [&](char32_t code, std::string_view bytes) {
      const bool is_line = code == '\t' || code == '\n' || code == '\r';
      if (clean_ && !is_line && (code == 0xfffd || is_control(code))) return;
      if (clean_ && is_white_space(code)) {
        clean += ' ';
      } else if (spaces_ && is_chinese(code)) {
        clean += ' ';
        clean += bytes;
        clean += ' ';
      } else {
        clean += bytes;
      }
    });
    return clean;
  }

  bool clean_, spaces_, lower_, accents_off_;
};

class Replace final : public Normalizer {
 public:
  explicit Replace(const Json& described)
      : pattern_(make_pattern(list_or_object(described))), content_(text_of(described, "content")) {}
  std::string changed(std::string text, Matcher& matcher) const override {
    return replaced(text, *pattern_, content_, matcher);
  }

 private:
  static const Json& list_or_object(const Json& described) {
    const Json* pattern = value_of(described, "pattern");
    MP_REQUIRE(pattern != nullptr, Exit::bad_data, "Replace has no 'pattern'");
    return *pattern;
  }
  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(const Json& described) : text_(text_of(described, "prepend")) {}
  std::string changed(std::string text, Matcher&) const override {
    return text.empty() ? text : text_ + text;
  }

 private:
  std::string text_;
};

class Strip final : public Normalizer {
 public:
  explicit Strip(const Json& described)
      : left_(bool_of(described, "strip_left", true)), right_(bool_of(described, "strip_right", true)) {}
  std::string changed(std::string text, Matcher&) const override {
    std::size_t begin = std::string::npos, end = 0, place = 0;
    for_each_character(text, [&](char32_t code, std::string_view bytes) {
      if (!is_white_space(code)) {
        begin = std::min(begin, place);
        end = place + bytes.size();
      }
      place += bytes.size();
    });
    if (!left_) begin = 0;
    if (!right_) end = text.size();
    return begin < end ? text.substr(begin, end - begin) : "";
  }

 private:
  bool left_, right_;
};

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(const Json& described) {
    for (const Json& one : list_of(described, "normalizers")) parts_.push_back(make_normalizer(one));
  }
  std::string changed(std::string text, Matcher& matcher) const override {
    for (const auto& part : parts_) text = part->changed(std::move(text), matcher);
    return text;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

}  // namespace

std::unique_ptr<Normalizer> make_normalizer(const Json& described) {
  const std::string type = text_of(described, "type");
  if (type == "NFC") return std::make_unique<ToNormalForm>(NormalForm::nfc);
  if (type == "NFD") return std::make_unique<ToNormalForm>(NormalForm::nfd);
  if (type == "NFKC") return std::make_unique<ToNormalForm>(NormalForm::nfkc);
  if (type == "NFKD") return std::make_unique<ToNormalForm>(NormalForm::nfkd);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  if (type == "BertNormalizer") return std::make_unique<BertNormalizer>(described);
  if (type == "Replace") return std::make_unique<Replace>(described);
  if (type == "Prepend") return std::make_unique<Prepend>(described);
  if (type == "Strip") return std::make_unique<Strip>(described);
  if (type == "Sequence") return std::make_unique<NormalizerSequence>(described);
  fail(Exit::bad_data,
       "the normalizer {} is not built; there are NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, "
       "BertNormalizer, "
       "Replace, Prepend, Strip and Sequence",
       type);
}

std::unique_ptr<Pattern> make_pattern(const Json& described) {
  if (value_of(described, "Regex") != nullptr)
    return std::make_unique<Pattern>(text_of(described, "Regex"), PatternSyntax::oniguruma);
  std::string escaped;
  for (const char letter :
       described.is_string() ? described.get<std::string>() : text_of(described, "String")) {
    if (std::string_view(R"(\^$.[]|()?*+{}-#)").find(letter) != std::string_view::npos) escaped += '\\';
    escaped += letter;
  }
  return std::make_unique<Pattern>(escaped);
}

std::string replaced(const std::string& text, const Pattern& pattern, const std::string& content,
                     Matcher& matcher) {
  std::string changed;
  std::size_t done = 0;
  pattern.for_each_match(text, matcher, [&](const Match& match) {
    changed.append(text, done, match.begin - done);
    changed += content;
    done = match.end;
  });
  changed.append(text, done, std::string::npos);
  return changed;
}

}  // namespace mindpipe
