// floor: tokenize
// The first line is a pattern, the rest a text, which is split by it.
#include "fuzz/fuzz.h"
#include "tokenize/pre_tokenizer.h"
#include "tokenize/utf8.h"

namespace mindpipe {
namespace {

/// Sums up the pieces, which have to be the text again.
struct Joined final : PieceSink {
  void take(const TextPiece& piece) override { text += piece.text; }
  std::string text;
};

void split_by_first_line(std::string_view all) {
  const std::size_t line = std::min(all.find('\n'), all.size());
  const std::string_view pattern = all.substr(0, line);
  std::string_view text = all.substr(std::min(line + 1, all.size()));
  text = text.substr(0, valid_prefix(text));
  if (valid_prefix(pattern) < pattern.size() || text.empty()) return;
  const auto splits = make_pre_tokenizer(
      {{"type", "Split"}, {"pattern", {{"Regex", std::string(pattern)}}}, {"behavior", "Isolated"}});
  Matcher matcher;
  Joined joined;
  splits->split({text, true}, matcher, joined);
  MP_CHECK(joined.text == text, "the pieces of a text are not the text");
}

}  // namespace
}  // namespace mindpipe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mindpipe::read_or_refuse([&] { mindpipe::split_by_first_line(mindpipe::text_of(data, size)); });
  return 0;
}
