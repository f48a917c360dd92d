#include "config/models/space.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "config/document.h"
#include "config/models/cells.h"
#include "config/models/picture_space.h"
#include "config/models/read_space.h"
#include "config/section.h"
#include "core/check.h"
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr int most_number = 1 << 24;

/// A space that has a word: each of its candidates comes `repeat` times.
struct NamedSpace {
  const char* word;
  int repeat;
  bool of_pictures;
};
constexpr NamedSpace named_spaces[] = {{"cv.c1", 4, true},   {"cv.c2", 2, true},   {"cv.c3", 1, true},
                                       {"nlp.c0", 4, false}, {"nlp.c1", 3, false}, {"nlp.c2", 2, false},
                                       {"nlp.c3", 1, false}};
constexpr const char* in_all_blocks =
    "conv-1, conv-3, separable-3, separable-5, separable-7, separable-9, separable-11, light-3-1, "
    "light-3-4, light-3-16, light-5-1, light-5-4, light-5-16, light-7-1, light-7-4, light-7-16, light-15-1, "
    "light-15-4, light-15-16, attention-4, attention-8, attention-16, glu";

std::vector<std::string> sorted_words() {
  std::vector<std::string> words;
  for (const NamedSpace& named : named_spaces) words.emplace_back(named.word);
  return words;
}

/// A whole number of plain digits within bounds; none where the text is none.
std::optional<int> number_of(std::string_view text, int least, int most) {
  int number = 0;
  if (!is_plain_integer(text)) return std::nullopt;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || number < least || number > most) return std::nullopt;
  return number;
}

}  // namespace

std::string candidate_words(WordUse use) {
  std::vector<std::string> all;
  for (const CandidateRow& row : rows_of(CandidateKind{}))
    if (is_for(row, use)) all.push_back(std::string(row.name).append(row.numbers));
  return join(all, ", ");
}

std::optional<Candidate> candidate_named(const std::string& word) {
  std::vector<std::string> parts(1);
  for (const char c : word)
    if (c == '-') parts.emplace_back();
    else parts.back() += c;
  const auto kind = kind_named<CandidateKind>(parts[0]);
  if (!kind || parts.size() != 1 + row_of(*kind).numbers.size() / 2) return std::nullopt;
  Candidate candidate{*kind, {}};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::optional<int> number = number_of(parts[i], 1, most_number);
    if (!number) return std::nullopt;
    candidate.numbers[i - 1] = *number;
  }
  return candidate;
}

std::string word_meant(const std::string& word) {
  const std::size_t end = std::min(word.find_first_of("-0123456789"), word.size());
  std::vector<std::string> names;
  for (const CandidateRow& row : rows_of(CandidateKind{}))
    if (is_for(row, WordUse::texts) || is_for(row, WordUse::pictures)) names.emplace_back(row.name);
  const auto name = nearest_spelling(word.substr(0, end), names);
  return name && candidate_named(*name + word.substr(end))
             ? "; did you mean " + *name + word.substr(end) + "?"
             : "";
}

int read_number(const Node& node, const std::string& key, int least, int most, const std::string& or_else) {
  const bool plain = node.kind == Node::Kind::text && !node.quoted;
  const std::optional<int> number = plain ? number_of(node.text, least, most) : std::nullopt;
  if (!number) refuse(node, key, fmt::format("a whole number from {} to {}{}", least, most, or_else));
  return *number;
}

Candidate read_candidate(const Node& node, const std::string& key, WordUse use) {
  const auto candidate = node.kind == Node::Kind::text ? candidate_named(node.text) : std::nullopt;
  const std::string words = candidate_words(use);
  if (!candidate) refuse(node, key, words, node.kind == Node::Kind::text ? word_meant(node.text) : "");
  const CandidateRow& row = row_of(candidate->kind);
  MP_REQUIRE(use != WordUse::pictures || is_for(row, use), Exit::bad_configuration,
             "{}: {} is {}, a layer for texts (for pictures there are {})", node.where, key, shown(node),
             words);
  MP_REQUIRE(row.uses != "p" || is_for(row, use), Exit::bad_configuration,
             "{}: {} is {}, a layer for pictures (for texts there are {})", node.where, key, shown(node),
             words);
  if (!is_for(row, use)) refuse(node, key, words);
  const bool convolves = row_of(candidate->kind).numbers.starts_with("-K");
  const int taps = candidate->taps(), most = Candidate::most_taps;
  const auto with = [&](int other) {
    Candidate near = *candidate;
    near.numbers[0] = other;
    return near.word();
  };
  MP_REQUIRE(!convolves || taps <= most, Exit::bad_configuration,
             "{}: {} is {}, which reaches over {} rows (at most {} are seen; take {})", node.where, key,
             shown(node), taps, most, with(most));
  MP_REQUIRE(!convolves || taps % 2 == 1, Exit::bad_configuration,
             "{}: {} is {}, which has no row in its middle (take {} or {})", node.where, key, shown(node),
             with(taps - 1), with(taps + 1));
  return *candidate;
}

std::vector<Candidate> read_candidates(const Node& node, const std::string& key, int repeat, WordUse use) {
  if (node.kind != Node::Kind::list) refuse(node, key, "a list of " + candidate_words(use));
  MP_REQUIRE(!node.items.empty(), Exit::bad_configuration,
             "{}: {} is an empty list (a block is one of its candidates; name one at least)", node.where,
             key);
  const std::size_t count = node.items.size() * static_cast<std::size_t>(repeat);
  MP_REQUIRE(count <= most_candidates, Exit::bad_configuration,
             "{}: {} has {} candidates{} (a block has {} at most)", node.where, key, count,
             repeat > 1 ? fmt::format(", {} of them {} times", node.items.size(), repeat) : "",
             most_candidates);
  std::vector<Candidate> once, all;
  for (const Node& item : node.items) once.push_back(read_candidate(item, key, use));
  for (int i = 0; i < repeat; ++i) all.insert(all.end(), once.begin(), once.end());
  return all;
}

namespace {

/// Blocks of an encoder or a decoder: a number of blocks with equal candidates, or each with its own.
std::vector<std::vector<Candidate>> read_blocks(const Section& side, int repeat) {
  const Node& blocks = side.at("blocks", "how many there are, or a list of lists of candidates");
  const std::string key = side.key_of("blocks");
  const Node* candidates = side.find("candidates");
  if (blocks.kind != Node::Kind::list) {
    const int count =
        read_number(blocks, key, 1, most_blocks, ", or a list with a list of candidates for each block");
    const Node& listed = side.at("candidates", "the layers that a block may be");
    return {static_cast<std::size_t>(count),
            read_candidates(listed, side.key_of("candidates"), repeat, WordUse::texts)};
  }
  MP_REQUIRE(candidates == nullptr, Exit::bad_configuration,
             "{}: {} conflicts with {}, which already lists candidates for each block; remove {}",
             candidates->where, side.key_of("candidates"), key, side.key_of("candidates"));
  MP_REQUIRE(!blocks.items.empty() && blocks.items.size() <= most_blocks, Exit::bad_configuration,
             "{}: {} lists {} blocks (from 1 to {})", blocks.where, key, blocks.items.size(), most_blocks);
  std::vector<std::vector<Candidate>> all;
  for (std::size_t i = 0; i < blocks.items.size(); ++i)
    all.push_back(read_candidates(blocks.items[i], fmt::format("{}[{}]", key, i), repeat, WordUse::texts));
  return all;
}

/// Gives every n-th block of a decoder the candidates that `every` names, in turn, as many as the others
/// have.
void read_every(const Section& decoder, std::vector<std::vector<Candidate>>& blocks) {
  const Node* every = decoder.find("every");
  if (every == nullptr) return;
  const std::string key = decoder.key_of("every");
  if (every->kind != Node::Kind::mapping || every->entries.size() != 1)
    refuse(*every, key, "a number and candidates, like {6: [cross-4, cross-8]}");
  MP_REQUIRE(decoder.find("candidates") != nullptr, Exit::bad_configuration,
             "{}: {} conflicts with {}, which already lists the candidates of each block; name these there",
             every->where, key, decoder.key_of("blocks"));
  const auto& [number, listed] = every->entries.front();
  const int step = read_number(number, key, 1, static_cast<int>(blocks.size()));
  const std::string path = fmt::format("{}.{}", key, step);
  const std::vector<Candidate> in_turn = read_candidates(listed, path, 1, WordUse::texts);
  for (std::size_t i = 0; i < in_turn.size(); ++i)
    if (in_turn[i].kind != CandidateKind::cross)
      refuse(listed.items[i], path, "cross-H (these blocks attend to the encoder, whatever is chosen)");
  std::vector<Candidate> all = blocks.front();
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = in_turn[i % in_turn.size()];
  for (std::size_t i = step - 1; i < blocks.size(); i += step) blocks[i] = all;
}

/// Refuses candidates that attend to an encoder where there is none to attend to.
void refuse_cross(const std::vector<std::vector<Candidate>>& blocks, const Section& side,
                  const std::string& why) {
  for (std::size_t block = 0; block < blocks.size(); ++block)
    for (const Candidate& candidate : blocks[block]) {
      if (candidate.kind != CandidateKind::cross) continue;
      const Node* listed = side.find("candidates");
      const Node& node = listed != nullptr ? *listed : side.at("blocks", "").items[block];
      fail(Exit::bad_configuration, "{}: {} has {} in block {} ({})", node.where,
           side.key_of(listed != nullptr ? "candidates" : "blocks"), candidate.word(), block, why);
    }
}

std::string read_name(const Node& node, const std::string& key) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; };
  if (node.kind != Node::Kind::text || node.text.size() > 80 ||
      !std::all_of(node.text.begin(), node.text.end(), fits))
    refuse(node, key, "up to 80 letters, digits, dots, hyphens and underscores");
  return node.text;
}

Section side_of(const Section& whole, const std::string& name, const Node& node) {
  std::vector<std::string> keys = name == "decoder"
                                      ? std::vector<std::string>{"blocks", "candidates", "every"}
                                      : std::vector<std::string>{"blocks", "candidates"};
  if (node.kind != Node::Kind::mapping)
    refuse(node, whole.key_of(name), "a section with " + join(keys, ", "));
  if (has_cells(node)) keys = keys_of_cells();
  return {node, whole.key_of(name), keys,
          "the " + name + " of a space" + (has_cells(node) ? " of cells" : "")};
}

/// Reads a space whose sides are cells.
void read_sides_of_cells(const Section& whole, Space& space) {
  const Node *encoder = whole.find("encoder"), *repeat = whole.find("repeat");
  const Node& decoder = whole.at("decoder", "its cells and their blocks");
  MP_REQUIRE(repeat == nullptr, Exit::bad_configuration,
             "{}: {} does not go with cells, which name each branch once; remove {}", repeat->where,
             whole.key_of("repeat"), whole.key_of("repeat"));
  for (const char* name : {"encoder", "decoder"})
    if (const Node* side = whole.find(name); side != nullptr)
      MP_REQUIRE(has_cells(*side), Exit::bad_configuration,
                 "{}: {} has no cells, and the other side has (both have, or neither)", side->where,
                 whole.key_of(name));
  if (encoder != nullptr)
    space.encoder = read_cells(side_of(whole, "encoder", *encoder),
                               "an encoder attends to itself alone; take attention-H", space.encoder_cell);
  const std::string why =
      encoder == nullptr ? "it attends to an encoder, and the space has none; add " + whole.key_of("encoder")
                         : "";
  space.decoder = read_cells(side_of(whole, "decoder", decoder), why, space.decoder_cell);
}

/// Reads the description of a space, whose keys stand below `path`.
Space read_description(const Node& node, const std::string& path) {
  const Section whole(node, path, {"name", "repeat", "encoder", "decoder", "pictures"}, "a space");
  Space space;
  space.name = read_name(whole.at("name", "what it is called"), whole.key_of("name"));
  space.written = on_one_line(node);
  for (const char* side : {"encoder", "decoder"})
    if (const Node* found = whole.find(side); found != nullptr && has_cells(*found)) {
      read_sides_of_cells(whole, space);
      return space;
    }
  const Node* repeated = whole.find("repeat");
  const int repeat =
      repeated == nullptr ? 1 : read_number(*repeated, whole.key_of("repeat"), 1, most_candidates);
  if (read_pictures(whole, repeat, space)) return space;
  if (const Node* written = whole.find("encoder"); written != nullptr) {
    const Section encoder = side_of(whole, "encoder", *written);
    space.encoder = read_blocks(encoder, repeat);
    refuse_cross(space.encoder, encoder, "an encoder attends to itself alone; take attention-H");
  }
  const Node& written = whole.at("decoder", "its blocks and their candidates");
  const Section decoder = side_of(whole, "decoder", written);
  space.decoder = read_blocks(decoder, repeat);
  const Node* every = decoder.find("every");
  MP_REQUIRE(
      every == nullptr || space.has_encoder(), Exit::bad_configuration,
      "{}: {} names blocks that attend to an encoder, but the space has no encoder; add {}, or remove {}",
      every->where, decoder.key_of("every"), whole.key_of("encoder"), decoder.key_of("every"));
  if (!space.has_encoder())
    refuse_cross(space.decoder, decoder,
                 "it attends to an encoder, and the space has none; add " + whole.key_of("encoder"));
  read_every(decoder, space.decoder);
  return space;
}

/// The space that a word names: nlp.c3 has each candidate once, nlp.c2 twice ...
Space space_named(const NamedSpace& named) {
  const auto [word, repeat, of_pictures] = named;
  const std::string text =
      of_pictures ? text_of_pictures(word, repeat)
                  : fmt::format(
                        "{{name: {}, repeat: {}, encoder: {{blocks: 24, candidates: [{}, identity]}}, "
                        "decoder: {{blocks: 24, candidates: [{}, cross-8], every: {{6: [cross-4, cross-8, "
                        "cross-16]}}}}}}",
                        word, repeat, in_all_blocks, in_all_blocks);
  Space space = read_description(parse_document(text, word, false), "");
  space.written = word;
  return space;
}

Space read_file(const std::string& file) {
  const Node root = read_document(file);
  MP_REQUIRE(root.kind == Node::Kind::mapping, Exit::bad_configuration,
             "{}: is {} (a space is a mapping of name, encoder and decoder, or name and pictures)", file,
             shown(root));
  return read_description(root, "");
}

}  // namespace

std::string Candidate::word() const {
  std::string text(row_of(kind).name);
  for (std::size_t i = 0; i < row_of(kind).numbers.size() / 2; ++i) text += fmt::format("-{}", numbers[i]);
  return text;
}

std::string Space::name_of(int block) const {
  if (!has_cells()) return fmt::format("block {}", block);
  const bool encodes = this->encodes(block);
  const int place = encodes ? block : block - static_cast<int>(encoder.size());
  const int blocks_of_cell = encodes ? encoder_cell.blocks : decoder_cell.blocks;
  const char* const parts[] = {"left of ", "right of ", "combine of "};
  const int of_side = place / places_of_cell_block;
  return fmt::format("{}block {} in cell {} of the {}", parts[place % places_of_cell_block],
                     of_side % blocks_of_cell, of_side / blocks_of_cell, encodes ? "encoder" : "decoder");
}

std::string allowed_spaces() {
  return join(sorted_words(), ", ") + ", a file that describes a space, or what stands in such a file";
}

Space read_space(const Node& node, const std::string& key) {
  if (node.kind == Node::Kind::mapping) return read_description(node, key);
  if (node.kind != Node::Kind::text) refuse(node, key, allowed_spaces());
  for (const NamedSpace& named : named_spaces)
    if (node.text == named.word) return space_named(named);
  std::error_code none;
  if (!std::filesystem::exists(node.text, none) || std::filesystem::is_directory(node.text, none))
    refuse(node, key,
           allowed_spaces() + " (no such file is there; its path is taken from the directory of the command)",
           did_you_mean(node.text, sorted_words()));
  return read_file(node.text);
}

}  // namespace mindpipe
