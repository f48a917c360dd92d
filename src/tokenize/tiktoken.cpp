#include "tokenize/tiktoken.h"

#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/check.h"
#include "core/mapped_file.h"
#include "tokenize/byte_pairs.h"
#include "tokenize/component_tokenizer.h"
#include "tokenize/of_file.h"

namespace mindpipe {

namespace {

/// A pattern by its name, and the special tokens that follow the ranks; an offset from the number of ranks
/// stands for -1. The patterns are tiktoken's, with (?>...) and \z where Oniguruma would read + and $
/// otherwise: a tokenizer.json may have them.
struct Encoding {
  std::string_view name, pattern;
  std::array<std::pair<std::string_view, TokenId>, 5> special;
};

constexpr std::array<Encoding, 4> encodings{{
    {"gpt2",
     R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++\z|\s+(?!\S)|\s)",
     {{{"<|endoftext|>", 0}}}},
    {"cl100k",
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|(?>\p{N}{1,3})|)"
     R"( ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++\z|\s*[\r\n]|\s+(?!\S)|\s)",
     {{{"<|endoftext|>", 1},
       {"<|fim_prefix|>", 2},
       {"<|fim_middle|>", 3},
       {"<|fim_suffix|>", 4},
       {"<|endofprompt|>", 20}}}},
    {"o200k",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {{{"<|endoftext|>", 1}, {"<|endofprompt|>", 20}}}},
    {"llama3",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
     R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     {{{"<|begin_of_text|>", 0},
       {"<|end_of_text|>", 1},
       {"<|start_header_id|>", 6},
       {"<|end_header_id|>", 7},
       {"<|eot_id|>", 9}}}},
}};

const Encoding& encoding_of(const std::string& path, const std::string& name) {
  const std::string file = std::filesystem::path(path).filename().string();
  for (const Encoding& encoding : encodings)
    if (name.empty() ? file.find(encoding.name) != std::string::npos : name == encoding.name) return encoding;
  fail(Exit::bad_configuration,
       "{}: which pattern splits text is not said{}; write PATH:PATTERN with gpt2, cl100k, o200k or llama3",
       path, name.empty() ? "" : " ('" + name + "' is none)");
}

/// The bytes that base64 writes; nothing where it is not well formed.
std::optional<std::string> from_base64(std::string_view text) {
  static constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  while (text.ends_with('=') && text.size() % 4 != 2) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : text) {
    const std::size_t digit = digits.find(letter);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

/// One line: a token's bytes and its rank; nothing where the line is none.
std::optional<std::pair<std::string, TokenId>> rank_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  auto bytes = from_base64(line.substr(0, space));
  TokenId rank = -1;
  const auto [end, error] = std::from_chars(line.data() + space + 1, line.data() + line.size(), rank);
  if (!bytes || error != std::errc() || end != line.data() + line.size() || rank < 0 ||
      rank >= Vocabulary::most_tokens)
    return std::nullopt;
  return std::pair{std::move(*bytes), rank};
}

/// Calls `take` with each line that is not empty, and its number.
template <class Take>
void for_each_line(const MappedFile& file, Take take) {
  std::string_view text(reinterpret_cast<const char*>(file.data()), static_cast<std::size_t>(file.size()));
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.size(), text.find('\n'));
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) take(line, number);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
}

std::string letters_of(std::string_view bytes) {
  std::string letters;
  for (const char byte : bytes) letters += letter_of_byte(static_cast<unsigned char>(byte));
  return letters;
}

std::unique_ptr<WordModel> model_of(const std::string& path) {
  const MappedFile file(path, largest_tokenizer);
  std::vector<std::string> tokens;
  IdOfText ranks;
  Vocabulary vocabulary;
  for_each_line(file, [&](std::string_view line, std::size_t number) {
    auto rank = rank_of(line);
    MP_REQUIRE(rank.has_value(), Exit::bad_data, "{}: line {} is '{}' (expected base64, a space and a rank)",
               path, number, line.substr(0, 80));
    vocabulary.add(letters_of(rank->first), rank->second);
    MP_REQUIRE(ranks.emplace(rank->first, rank->second).second, Exit::bad_data,
               "{}: line {} has a token that stands in it twice; name each once", path, number);
    tokens.push_back(std::move(rank->first));
  });
  for (int byte = 0; byte < 256; ++byte)
    MP_REQUIRE(ranks.contains(std::string(1, static_cast<char>(byte))), Exit::bad_data,
               "{}: there is no rank of the byte {}; fetch the whole file again", path, byte);
  BytePairOptions options;
  options.of_bytes = true;
  options.ignore_merges = true;
  MergeTable merges = merges_of_ranks(tokens, ranks);
  return std::make_unique<BytePairs>(std::move(vocabulary), std::move(merges), std::move(options));
}

}  // namespace

std::unique_ptr<Tokenizer> load_tiktoken(const std::string& path, const std::string& pattern) {
  const Encoding& encoding = encoding_of(path, pattern);
  return of_file(path, [&] {
    Components parts;
    parts.model = model_of(path);
    parts.pre_tokenizer = make_pre_tokenizer(
        {{"type", "Sequence"},
         {"pretokenizers",
          {{{"type", "Split"}, {"pattern", {{"Regex", encoding.pattern}}}, {"behavior", "Isolated"}},
           {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}});
    parts.decoder = make_decoder({{"type", "ByteLevel"}});
    for (const auto& [text, offset] : encoding.special)
      if (!text.empty())
        parts.added.push_back(
            {parts.model->vocabulary().size() + offset, std::string(text), false, false, false, false, true});
    parts.named = usual_names(parts.model->vocabulary(), parts.added);
    TokenizerSource source = source_of(path, {{path, std::string(encoding.name) + ".tiktoken"}});
    Sha256 digest;  // the pattern splits texts as much as the file's ranks do
    digest.add(source.digest.data(), source.digest.size());
    digest.add(encoding.pattern.data(), encoding.pattern.size());
    source.digest = digest.end();
    return std::make_unique<ComponentTokenizer>(std::move(parts), std::move(source));
  });
}

std::string split_pattern(const std::string& name) {
  for (const Encoding& encoding : encodings)
    if (name == encoding.name) return std::string(encoding.pattern);
  fail(Exit::bad_configuration,
       "there is no pattern '{}' to split texts by (expected gpt2, cl100k, o200k or llama3)", name);
}

bool has_ranks(const std::string& path) {
  const MappedFile file(path, largest_tokenizer);
  const std::string_view text(reinterpret_cast<const char*>(file.data()),
                              static_cast<std::size_t>(file.size()));
  std::string_view line = text.substr(0, std::min<std::size_t>(text.find('\n'), 4096));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return rank_of(line).has_value();
}

}  // namespace mindpipe
