#include "config/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <unordered_map>

#include "core/check.h"
#include "core/input_file.h"
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr std::size_t deepest = 16;

/// Builds the tree from the parser's events and refuses what a configuration has no use for.
class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& where, bool with_lines) : where_(where), with_lines_(with_lines) {}

  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    MP_REQUIRE(++documents_ == 1, Exit::bad_configuration,
               "{}: a second document begins here (a configuration is one document; remove '---')", at(mark));
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(leaf(mark, Node::Kind::empty, "", anchor));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(Exit::bad_configuration, "{}: an alias (*name) stands here (write the value itself)", at(mark));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = leaf(mark, Node::Kind::text, tag, anchor);
    node.quoted = tag == "!";
    node.text = value;
    if (!node.quoted &&
        (value == "~" || value == "null" || value == "Null" || value == "NULL" || value.empty()))
      node.kind = Node::Kind::empty;
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(leaf(mark, Node::Kind::list, tag, anchor));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(leaf(mark, Node::Kind::mapping, tag, anchor));
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node, key;
    bool has_key = false;
    std::unordered_map<std::string, std::string> keys;  ///< where each key of a mapping stands
  };

  std::string at(const YAML::Mark& mark) const {
    return with_lines_ ? fmt::format("{}:{}", where_, mark.line + 1) : where_;
  }

  Node leaf(const YAML::Mark& mark, Node::Kind kind, const std::string& tag, YAML::anchor_t anchor) const {
    MP_REQUIRE(anchor == 0, Exit::bad_configuration,
               "{}: an anchor (&name) stands here (write the value where it is used)", at(mark));
    MP_REQUIRE(tag.empty() || tag == "?" || tag == "!", Exit::bad_configuration,
               "{}: a tag ({}) stands here (types are known; remove the tag)", at(mark), tag);
    Node node;
    node.kind = kind;
    node.where = at(mark);
    return node;
  }

  void open(Node node) {
    MP_REQUIRE(open_.size() < deepest, Exit::bad_configuration,
               "{}: nested more than {} deep (no setting is)", node.where, deepest);
    open_.push_back({std::move(node), {}, false, {}});
  }

  void close() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == Node::Kind::list) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      accept_key(parent, node);
      parent.key = std::move(node);
      parent.has_key = true;
    } else {
      parent.node.entries.push_back({std::move(parent.key), std::move(node)});
      parent.has_key = false;
    }
  }

  static void accept_key(Open& mapping, const Node& key) {
    MP_REQUIRE(key.kind == Node::Kind::text, Exit::bad_configuration,
               "{}: {} is used as a key (keys are plain names)", key.where, shown(key));
    MP_REQUIRE(key.text != "<<", Exit::bad_configuration,
               "{}: a merge key (<<) stands here (write the settings themselves)", key.where);
    const auto [other, is_new] = mapping.keys.emplace(key.text, key.where);
    MP_REQUIRE(is_new, Exit::bad_configuration,
               "{}: {} is set a second time (the first is at {}; keep one of them)", key.where, shown(key),
               other->second);
  }

  std::string where_;
  bool with_lines_;
  int documents_ = 0;
  Node root_;
  std::vector<Open> open_;
};

std::string text_of(const std::string& file) {
  const int reason = open_ordinary(file).error;
  MP_REQUIRE(reason != EACCES && reason != EPERM, Exit::permission,
             "{}: may not be read ({}; ask its owner for access)", file, std::strerror(reason));
  MP_REQUIRE(reason == 0, Exit::input_missing,
             "{}: cannot be opened ({}; check the path, it is taken from the directory of the command)", file,
             std::strerror(reason));
  return read_text(file, largest_document, Exit::bad_configuration);
}

}  // namespace

Node read_document(const std::string& file) { return parse_document(text_of(file), file, true); }

Node parse_document(const std::string& text, const std::string& where, bool with_lines) {
  Builder builder(where, with_lines);
  const auto nul = std::find_if(text.begin(), text.end(), [](unsigned char c) {
    return c < 0x20 && c != '\n' && c != '\t' && c != '\r';
  });
  MP_REQUIRE(nul == text.end(), Exit::bad_configuration,
             "{}: holds the byte 0x{:02x} (a configuration is text)",
             with_lines ? fmt::format("{}:{}", where, 1 + std::count(text.begin(), nul, '\n')) : where,
             static_cast<unsigned char>(*nul));
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& problem) {
    const std::string at =
        with_lines && !problem.mark.is_null() ? fmt::format("{}:{}", where, problem.mark.line + 1) : where;
    fail(Exit::bad_configuration, "{}: is not YAML ({})", at, problem.msg);
  }
  return builder.take();
}

std::string shown(const Node& node) {
  switch (node.kind) {
    case Node::Kind::empty:
      return "empty";
    case Node::Kind::list:
      return node.items.empty() ? "an empty list" : "a list";
    case Node::Kind::mapping:
      return "a mapping";
    case Node::Kind::text:
      break;
  }
  const std::string text = printable(node.text, 60);
  return node.quoted ? "\"" + text + "\"" : "'" + text + "'";
}

std::string on_one_line(const Node& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case Node::Kind::empty:
      return "~";
    case Node::Kind::list:
      for (const Node& item : node.items) parts.push_back(on_one_line(item));
      return fmt::format("[{}]", join(parts, ", "));
    case Node::Kind::mapping:
      for (const auto& [key, value] : node.entries)
        parts.push_back(fmt::format("{}: {}", on_one_line(key), on_one_line(value)));
      return fmt::format("{{{}}}", join(parts, ", "));
    case Node::Kind::text:
      break;
  }
  return !node.quoted && is_plain_integer(node.text) ? node.text : quoted_if_needed(node.text);
}

std::string quoted_if_needed(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == '+' || c == '@';
  };
  if (!text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) || text[0] == '/') &&
      std::all_of(text.begin(), text.end(), plain) && text != "null" && text != "Null" && text != "NULL")
    return text;
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') (out += '\\') += static_cast<char>(c);
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c < 0x20 || c == 0x7f) out += fmt::format("\\x{:02x}", c);
    else out += static_cast<char>(c);
  }
  return out + "\"";
}

}  // namespace mindpipe
