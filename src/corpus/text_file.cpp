#include "corpus/text_file.h"

#include <algorithm>

namespace mindpipe {

const char* name_of(Subset subset) { return subset == Subset::train ? "train" : "validation"; }

TextFile::TextFile(const std::string& path, Subset subset, std::int64_t vocabulary)
    : file_(path), subset_(subset), vocabulary_(vocabulary) {
  MP_REQUIRE(file_.size() > 0, Exit::bad_data, "{}: the file is empty; name a text", path);
  file_.require_written();
  std::int64_t split = file_.size() / 10 * 9 + file_.size() % 10 * 9 / 10;
  if (const void* line_end =
          std::memchr(file_.data() + split, '\n', static_cast<std::size_t>(file_.size() - split))) {
    const std::int64_t next = static_cast<const std::byte*>(line_end) - file_.data() + 1;
    if (next < file_.size()) split = next;
  }
  begin_ = subset == Subset::train ? 0 : split;
  end_ = subset == Subset::train ? split : file_.size();
}

std::string TextFile::name() const {
  return fmt::format("{} ({} % of the text)", file_.path(),
                     subset_ == Subset::train ? "the first 90" : "the last 10");
}

void TextFile::read(std::int64_t document, std::int64_t first, std::int64_t tokens, std::int32_t* out) const {
  MP_CHECK(first >= 0 && tokens >= 0 && first + tokens <= length(document), "{}: bytes {} + {} of {}", name(),
           first, tokens, length(document));
  for (std::int64_t i = 0; i < tokens; ++i) {
    out[i] = static_cast<std::int32_t>(file_.data()[begin_ + first + i]);
    if (vocabulary_ > 0 && out[i] >= vocabulary_)
      check_token(file_.path(), document, begin_ + first + i, out[i], vocabulary_);
  }
}

TokenizedText::TokenizedText(const std::string& path, Subset subset, const Tokenizer& tokenizer) {
  constexpr std::size_t most = std::size_t{256} << 20;
  const TextFile text(path, subset, 0);
  name_ = text.name();
  MP_REQUIRE(
      text.text().size() <= most, Exit::bad_data,
      "{}: a text of more than 256 MiB is not turned into tokens at every start; make token files of it: "
      "mindpipe-train data import {} --tokenizer {} --output PREFIX",
      path, path, tokenizer.name());
  tokenizer.encoder()->append(text.text(), SpecialText::plain, ids_);
}

void TokenizedText::read(std::int64_t, std::int64_t first, std::int64_t tokens, std::int32_t* out) const {
  MP_CHECK(first >= 0 && tokens >= 0 && first + tokens <= std::ssize(ids_), "{}: tokens {} + {} of {}", name_,
           first, tokens, ids_.size());
  std::copy_n(ids_.begin() + first, tokens, out);
}

}  // namespace mindpipe
