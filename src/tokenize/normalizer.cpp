#include "tokenize/normalizer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/check.h"
#include "tokenize/unicode.h"

namespace mindpipe {

namespace {

std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char letter) {
    return (static_cast<unsigned char>(letter) & 0xc0) != 0x80;
  }));
}

/// The first characters of a text.
std::string_view first_of(std::string_view text, std::size_t characters) {
  std::size_t bytes = 0;
  for (; characters > 0 && bytes < text.size(); --characters)
    bytes += first_character(text.substr(bytes)).bytes;
  return text.substr(0, bytes);
}

/// Changes a text character by character: `append(code, bytes, changed)` appends what becomes of one.
template <class Append>
void change_characters(FormedText& formed, Append append) {
  std::string changed;
  changed.reserve(formed.text.size());
  std::size_t bytes_of_first = 0, read = 0;
  for_each_character(formed.text, [&](char32_t code, std::string_view bytes) {
    append(code, bytes, changed);
    if (read++ < formed.of_first) bytes_of_first = changed.size();
  });
  formed.of_first = characters_of(std::string_view(changed).substr(0, bytes_of_first));
  formed.text = std::move(changed);
}

class ToNormalForm final : public Normalizer {
 public:
  explicit ToNormalForm(NormalForm form) : form_(form) {}
  void change(FormedText& formed, Matcher&) const override { put_into(form_, formed); }

  static void put_into(NormalForm form, FormedText& formed) {
    formed.of_first = characters_of(normalized(first_of(formed.text, formed.of_first), form));
    formed.text = normalized(formed.text, form);
  }

 private:
  NormalForm form_;
};

void lower(FormedText& formed) {
  change_characters(
      formed, [](char32_t code, std::string_view, std::string& changed) { append_lower(code, changed); });
}

class Lowercase final : public Normalizer {
 public:
  void change(FormedText& formed, Matcher&) const override { lower(formed); }
};

/// Takes out the characters that `leave_out` names.
template <class LeaveOut>
void take_out(FormedText& formed, LeaveOut leave_out) {
  change_characters(formed, [&](char32_t code, std::string_view bytes, std::string& changed) {
    if (!leave_out(code)) changed += bytes;
  });
}

class StripAccents final : public Normalizer {
 public:
  void change(FormedText& formed, Matcher&) const override { take_out(formed, is_mark); }
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

  void change(FormedText& formed, Matcher&) const override {
    if (clean_ || spaces_) clean(formed);
    if (accents_off_) {
      ToNormalForm::put_into(NormalForm::nfd, formed);
      take_out(formed, is_nonspacing_mark);
    }
    if (lower_) lower(formed);
  }

 private:
  void clean(FormedText& formed) const {
    change_characters(formed, [&](char32_t code, std::string_view bytes, std::string& clean) {
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
  }

  bool clean_, spaces_, lower_, accents_off_;
};

class Replace final : public Normalizer {
 public:
  explicit Replace(const Json& described)
      : pattern_(make_pattern(list_or_object(described))), content_(text_of(described, "content")) {}
  void change(FormedText& formed, Matcher& matcher) const override {
    replace(formed, *pattern_, content_, matcher);
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
  void change(FormedText& formed, Matcher&) const override {
    if (formed.text.empty()) return;
    formed.text.insert(0, text_);
    if (formed.of_first > 0) formed.of_first += characters_of(text_);
  }

 private:
  std::string text_;
};

class Strip final : public Normalizer {
 public:
  explicit Strip(const Json& described)
      : left_(bool_of(described, "strip_left", true)), right_(bool_of(described, "strip_right", true)) {}
  void change(FormedText& formed, Matcher&) const override {
    std::size_t begin = std::string::npos, end = 0, place = 0;
    for_each_character(formed.text, [&](char32_t code, std::string_view bytes) {
      if (!is_white_space(code)) {
        begin = std::min(begin, place);
        end = place + bytes.size();
      }
      place += bytes.size();
    });
    if (!left_) begin = 0;
    if (!right_) end = formed.text.size();
    begin = std::min(begin, end);
    formed.of_first -=
        std::min(formed.of_first, characters_of(std::string_view(formed.text).substr(0, begin)));
    formed.text = formed.text.substr(begin, end - begin);
  }

 private:
  bool left_, right_;
};

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(const Json& described) {
    for (const Json& one : list_of(described, "normalizers")) parts_.push_back(make_normalizer(one));
  }
  void change(FormedText& formed, Matcher& matcher) const override {
    for (const auto& part : parts_) part->change(formed, matcher);
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

void replace(FormedText& formed, const Pattern& pattern, const std::string& content, Matcher& matcher) {
  const std::string_view text = formed.text;
  const std::size_t length = characters_of(content);
  std::string changed;
  std::size_t done = 0, read = 0, of_first = 0;
  const auto keep = [&](std::size_t end) {
    if (read < formed.of_first) {
      const std::size_t kept = characters_of(text.substr(done, end - done));
      of_first += std::min(kept, formed.of_first - read);
      read += kept;
    }
    changed += text.substr(done, end - done);
    done = end;
  };
  pattern.for_each_match(text, matcher, [&](const Match& match) {
    keep(match.begin);
    if (read <= formed.of_first) read += characters_of(text.substr(match.begin, match.end - match.begin));
    // What is put in comes of the last character that it stands for.
    if (read <= formed.of_first || match.end == 0) of_first += length;
    changed += content;
    done = match.end;
  });
  keep(text.size());
  formed = {std::move(changed), of_first};
}

}  // namespace mindpipe
