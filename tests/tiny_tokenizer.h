#pragma once
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace mindpipe {

/// Writes a tokenizer.json of byte-level pairs: 256 bytes, " a", "he", " the", "in", then the special tokens,
/// of which the first ends a text.
inline void write_tiny_tokenizer(const std::string& path,
                                 const std::vector<std::string>& special = {"<|endoftext|>"}) {
  nlohmann::ordered_json vocabulary = nlohmann::ordered_json::object();
  const auto letter =
      [](int byte) {  // as GPT-2 writes bytes: those that cannot be seen come behind the others
        const auto is_seen = [](int b) { return (b > 32 && b < 127) || (b > 160 && b != 173); };
        int code = byte;
        if (!is_seen(byte)) {
          code = 256;
          for (int b = 0; b < byte; ++b) code += is_seen(b) ? 0 : 1;
        }
        if (code < 128) return std::string(1, static_cast<char>(code));
        return std::string{static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
      };
  for (int byte = 0; byte < 256; ++byte) vocabulary[letter(byte)] = byte;
  const std::string space = letter(' ');
  const std::vector<std::pair<std::string, std::string>> merges{
      {space, "a"}, {"h", "e"}, {space, "t"}, {space + "t", "he"}, {"i", "n"}};
  nlohmann::ordered_json written = nlohmann::ordered_json::array(), added = nlohmann::ordered_json::array();
  int next = 256;
  for (const auto& [first, second] : merges) {
    written.push_back(first + " " + second);
    vocabulary[first + second] = next++;
  }
  for (const std::string& token : special)
    added.push_back({{"id", next++},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  const nlohmann::ordered_json bytes{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  std::ofstream(path) << nlohmann::ordered_json{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", bytes},
      {"post_processor", nullptr},
      {"decoder", bytes},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", false},
        {"vocab", vocabulary},
        {"merges",
         written}}}}.dump();
}

}  // namespace mindpipe
