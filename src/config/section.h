#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "config/document.h"
#include "core/check.h"
#include "core/text.h"

namespace mindpipe {

/// Says that a value is none of those that its key may have.
[[noreturn]] inline void refuse(const Node& node, const std::string& key, const std::string& allowed,
                                const std::string& meant = "") {
  fail(Exit::bad_configuration, "{}: {} is {}; allowed: {}{}", node.where, key, shown(node), allowed, meant);
}

/// Says that a value is no mapping, where `key` is a section. `like`: one of its settings.
[[noreturn]] inline void refuse_section(const std::string& where, const std::string& key, const Node& value,
                                        const std::string& like) {
  fail(Exit::bad_configuration, "{}: {} is {}; it is a section, with settings like {} below it", where, key,
       value.kind == Node::Kind::empty ? "empty" : shown(value), like);
}

/// A mapping of a document that is no configuration, whose keys are some of `names`. `path`: of its keys in
/// complaints; `what`: whose they are.
class Section {
 public:
  Section(const Node& node, std::string path, const std::vector<std::string>& names, const std::string& what)
      : node_(node), path_(std::move(path)) {
    if (node.kind != Node::Kind::mapping && node.kind != Node::Kind::empty)
      refuse_section(node.where, path_.empty() ? what : path_, node, names.front());
    for (const auto& [key, value] : node.entries)
      MP_REQUIRE(std::count(names.begin(), names.end(), key.text) > 0, Exit::bad_configuration,
                 "{}: {} is not a setting ({} has {}){}", key.where, key_of(key.text), what,
                 join(names, ", "), did_you_mean(key.text, names));
  }
  std::string key_of(const std::string& name) const { return path_.empty() ? name : path_ + "." + name; }
  const Node* find(const std::string& name) const {
    for (const auto& [key, value] : node_.entries)
      if (key.text == name) return &value;
    return nullptr;
  }
  const Node& at(const std::string& name, const char* meaning) const {
    const Node* found = find(name);
    MP_REQUIRE(found != nullptr, Exit::bad_configuration, "{}: {} is missing; add it: {}", node_.where,
               key_of(name), meaning);
    return *found;
  }

 private:
  const Node& node_;
  std::string path_;
};

}  // namespace mindpipe
