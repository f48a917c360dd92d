#include "corpus/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <vector>

#include "core/check.h"
#include "corpus/text_file.h"
#include "corpus/token_file.h"
#include "tokenize/byte_tokenizer.h"

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

std::string beginning(const Documents& documents, std::int64_t show) {
  const auto tokens = first_tokens(documents, std::max<std::int64_t>(show, 1 << 20));
  if (tokens.empty()) return "";
  const auto [smallest, largest] = std::minmax_element(tokens.begin(), tokens.end());
  const auto first = std::span(tokens).first(
      static_cast<std::size_t>(std::min<std::int64_t>(show, static_cast<std::int64_t>(tokens.size()))));
  return fmt::format("tokens {} to {} among the first {}\nfirst tokens: {}\nas text: {}\n", *smallest,
                     *largest, tokens.size(), fmt::join(first, " "), printable(first));
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

std::string inspect_file(const std::string& path, std::int64_t show) {
  MP_REQUIRE(show >= 0, Exit::usage, "{} tokens to show (must be 0 or more)", show);
  if (path.ends_with(".txt")) {
    const TextFile train(path, Subset::train, 0), validation(path, Subset::validation, 0);
    return fmt::format("{}: text, {} bytes: {} for training, {} held out for validation\n", path,
                       train.length(0) + validation.length(0), train.length(0), validation.length(0)) +
           beginning(train, show);
  }
  const TokenFile file(TokenFile::prefix_of(path));
  return fmt::format("{}: {}, {} tokens, {} sequences, {} documents\n", file.name(), name_of(file.type()),
                     file.tokens(), file.sequences(), file.count()) +
         histogram(file) + beginning(file, show);
}

}  // namespace mindpipe
