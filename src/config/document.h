#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace mindpipe {

struct Entry;

/// One piece of a configuration as it was written: text, a list or a mapping, and where it stands.
struct Node {
  enum class Kind { empty, text, list, mapping };
  Kind kind = Kind::empty;
  std::string text;
  bool quoted = false;  ///< text in quotes is never a number or a truth value
  std::string where;    ///< "configs/run.yaml:12" or "command line"
  std::vector<Node> items;
  std::vector<Entry> entries;
};

/// A key of a mapping and what stands behind it.
struct Entry {
  Node key, value;
};

/// Reads one YAML document, strictly: no anchors, aliases, tags, merges, second documents, repeated keys or
/// keys that are not plain names. `where` begins every complaint; with_lines adds the line to it.
Node parse_document(const std::string& text, const std::string& where, bool with_lines);

inline constexpr std::int64_t largest_document = 1 << 20;  ///< bytes
/// Reads the document in a file, whose path is taken from the directory of the command.
Node read_document(const std::string& file);

/// A node as a user would write it on one line, shortened.
std::string shown(const Node& node);

/// A node on one line, which reads back to the same node: {blocks: 4, candidates: [glu, mlp-4]}.
std::string on_one_line(const Node& node);

/// Text in YAML, in quotes where YAML would take it for something else.
std::string quoted_if_needed(const std::string& text);

}  // namespace mindpipe
