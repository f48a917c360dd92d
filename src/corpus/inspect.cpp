#include "corpus/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <vector>

#include "core/check.h"
#include "corpus/answers.h"
#include "corpus/text_file.h"
#include "corpus/token_file.h"
#include "corpus/token_origin.h"
#include "tokenize/byte_tokenizer.h"
#include "tokenize/utf8.h"

namespace mindpipe {

namespace {
/// Histogram of lengths: bin b counts documents of 2^(b-1) to 2^b - 1 tokens; bin 0 the empty ones.
std::string histogram(const Documents& documents) {
  std::array<std::int64_t, 64> bins{};
  for (std::int64_t d = 0; d < documents.count(); ++d)
    ++bins[std::bit_width(static_cast<std::uint64_t>(documents.length(d)))];
  std::string lines = "tokens in a document: documents\n";
  for (std::size_t b = 0; b < bins.size(); ++b)
    if (bins[b] > 0)
      lines += fmt::format("{:>12} - {:<12} {}\n", b == 0 ? 0 : std::int64_t{1} << (b - 1),
                           (std::uint64_t{1} << b) - 1, bins[b]);
  return lines;
}

/// The first tokens of all documents, at most `most`.
std::vector<std::int32_t> first_tokens(const Documents& documents, std::int64_t most) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t d = 0; d < documents.count() && static_cast<std::int64_t>(tokens.size()) < most; ++d) {
    const auto have = static_cast<std::int64_t>(tokens.size()),
               take = std::min(documents.length(d), most - have);
    tokens.resize(static_cast<std::size_t>(have + take));
    documents.read(d, 0, take, tokens.data() + have);
  }
  return tokens;
}

/// Text on one line: control characters and what is no UTF-8 as \\n or \\xNN.
std::string on_one_line(std::string_view text) {
  std::string line;
  for (std::size_t i = 0; i < text.size();) {
    const Character character = first_character(text.substr(i));
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '\n') line += "\\n";
    else if (character.bytes == 0 || byte < 32 || byte == 127) line += fmt::format("\\x{:02x}", byte);
    else line += text.substr(i, character.bytes);
    i += std::max<std::size_t>(1, character.bytes);
  }
  return line;
}

/// Tokens as text; `counts`, where it is not empty, says which of them count.
std::string as_text(std::span<const std::int32_t> tokens, const Tokenizer* tokenizer,
                    std::span<const std::uint8_t> counts) {
  const auto written = [&](std::span<const std::int32_t> some) {
    return tokenizer == nullptr ? printable(some) : on_one_line(tokenizer->decode(some, true));
  };
  if (counts.empty()) return written(tokens);
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < tokens.size(); begin = end) {
    while (end < tokens.size() && counts[end] == counts[begin]) ++end;
    const std::string part = written(tokens.subspan(begin, end - begin));
    text += counts[begin] != 0 ? "⟦" + part + "⟧" : part;
  }
  return text;
}

std::string beginning(const Documents& documents, std::int64_t show, const Tokenizer* tokenizer,
                      std::span<const std::uint8_t> counts = {}) {
  const auto tokens = first_tokens(documents, std::max<std::int64_t>(show, 1 << 20));
  if (tokens.empty()) return "";
  const auto [smallest, largest] = std::minmax_element(tokens.begin(), tokens.end());
  const auto first = std::span(tokens).first(
      static_cast<std::size_t>(std::min<std::int64_t>(show, static_cast<std::int64_t>(tokens.size()))));
  return fmt::format("tokens {} to {} among the first {}\nfirst tokens: {}\nas text: {}\n", *smallest,
                     *largest, tokens.size(), fmt::join(first, " "),
                     as_text(first, tokenizer, counts.empty() ? counts : counts.first(first.size())));
}

/// The tokenizer that writes the tokens of a pair as text; none: tokens are bytes, as far as they can be.
std::unique_ptr<Tokenizer> tokenizer_for(const std::string& prefix, const std::string& named) {
  const std::optional<TokenOrigin> origin = read_origin(prefix);
  if (!named.empty()) {
    std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(named);
    require_tokens_of(prefix, named, hash_of(*tokenizer));
    return tokenizer;
  }
  if (!origin || origin->tokenizer == ByteTokenizer::word) return nullptr;
  try {
    std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(origin->tokenizer);
    if (hash_of(*tokenizer) == origin->hash) return tokenizer;
  } catch (const Error&) {  // the file has gone elsewhere, and the numbers are shown
  }
  return nullptr;
}
}  // namespace

std::string printable(std::span<const std::int32_t> tokens) {
  std::string text;
  for (const std::int32_t token : tokens) {
    if (token >= 32 && token < 127) text += static_cast<char>(token);
    else if (token == '\n') text += "\\n";
    else if (token >= 0 && token < 256) text += fmt::format("\\x{:02x}", token);
    else text += token == ByteTokenizer::end_of_text ? "<end>" : fmt::format("<{}>", token);
  }
  return text;
}

std::string inspect_file(const std::string& path, std::int64_t show, const std::string& tokenizer) {
  MP_REQUIRE(show >= 0, Exit::usage, "{} tokens to show (must be 0 or more)", show);
  if (path.ends_with(".txt")) {
    const TextFile train(path, Subset::train, 0), validation(path, Subset::validation, 0);
    return fmt::format("{}: text, {} bytes: {} for training, {} held out for validation\n", path,
                       train.length(0) + validation.length(0), train.length(0), validation.length(0)) +
           beginning(train, show, nullptr);
  }
  const std::string prefix = TokenFile::prefix_of(path);
  const TokenFile file(prefix);
  const std::optional<TokenOrigin> origin = read_origin(prefix);
  const std::unique_ptr<Tokenizer> writes = tokenizer_for(prefix, tokenizer);
  std::string made;
  if (origin)
    made = fmt::format("tokenizer {} (SHA-256 {}), vocabulary {}{}\n", origin->tokenizer,
                       origin->hash.substr(0, 16), origin->vocabulary,
                       origin->counted < 0 ? "" : fmt::format("; {} tokens count", origin->counted));
  const std::optional<AnswerMask> mask = AnswerMask::of(file, prefix);
  return fmt::format("{}: {}, {} tokens, {} sequences, {} documents\n", file.name(), name_of(file.type()),
                     file.tokens(), file.sequences(), file.count()) +
         made + histogram(file) +
         beginning(file, show, writes.get(), mask ? mask->counts() : std::span<const std::uint8_t>());
}

}  // namespace mindpipe
