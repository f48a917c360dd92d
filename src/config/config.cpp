#include "config/config.h"

#include <algorithm>
#include <map>
#include <set>

#include "config/document.h"
#include "config/open_settings.h"
#include "config/rules.h"
#include "config/section.h"
#include "config/settings.h"
#include "config/tokens.h"
#include "core/check.h"
#include "core/text.h"

namespace mindpipe {
namespace {

/// Reads into one Config, setting by setting, and remembers where each was written.
class Reader {
 public:
  explicit Reader(Config& config) : config_(config), settings_(settings_of(config)) {
    for (const Setting& setting : settings_) {
      by_key_[setting.key()] = &setting;
      if (setting.may_be_searched()) begun_with_[setting.key()] = setting.written();
      for (std::size_t dot = setting.key().find('.'); dot != std::string::npos;
           dot = setting.key().find('.', dot + 1))
        sections_[setting.key().substr(0, dot)] = setting.key();
    }
  }

  /// Reads the settings alone that say which others there are.
  void read_what_decides(const Node& root, const std::vector<std::string>& overrides) {
    for (const Setting& setting : settings_) {
      if (!setting.decides()) continue;
      if (const Node* node = node_at(root, setting.key()); node != nullptr) setting.read(*node);
      for (const std::string& text : overrides)
        if (text.starts_with(setting.key() + "=")) read_override(text);
    }
  }

  void read_section(const Node& mapping, const std::string& path) {
    for (const auto& [name, value] : mapping.entries) {
      const std::string key = path.empty() ? name.text : path + "." + name.text;
      MP_REQUIRE(name.text.find('.') == std::string::npos, Exit::bad_configuration,
                 "{}: {} is one key with a dot in it (in a file, write the section and below it the name; "
                 "dots are for the command line)",
                 name.where, shown(name));
      if (const auto found = by_key_.find(key); found != by_key_.end()) {
        read(*found->second, value, name.where);
      } else {
        refuse_unknown(key, name.where);
        if (is_all_auto(key, value)) {
          read_all_of(key, value, name.where);
          continue;
        }
        if (value.kind != Node::Kind::mapping) refuse_section(name.where, key, value, sections_[key]);
        read_section(value, key);
      }
    }
  }

  void read_override(const std::string& override_text) {
    const std::size_t equals = override_text.find('=');
    MP_REQUIRE(equals != std::string::npos && equals > 0, Exit::usage,
               "command line: {} is not key=value (like train.steps=20)", quoted_if_needed(override_text));
    const std::string key = override_text.substr(0, equals), value = override_text.substr(equals + 1);
    const std::string where = "command line";
    MP_REQUIRE(is_utf8(key), Exit::bad_configuration, "{}: a key is not UTF-8 text", where);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) {
      refuse_unknown(key, where);
      Node node{.kind = Node::Kind::text,
                .text = value,
                .quoted = false,
                .where = where,
                .items = {},
                .entries = {}};
      if (is_all_auto(key, node)) return read_all_of(key, node, where);
      fail(Exit::bad_configuration, "{}: {} is a section; set one of its settings, like {}", where, key,
           sections_[key]);
    }
    MP_REQUIRE(std::ssize(value) <= largest_document, Exit::bad_configuration, "{}: {} is longer than {}",
               where, key, human_bytes(largest_document));
    const Setting& setting = *found->second;
    Node node;
    if (setting.is_text()) {  // the shell has dealt with quotes: a prompt with ": " or "#" stays as it is
      node.kind = Node::Kind::text;
      node.text = value;
      node.where = where;
    } else {
      node = parse_document(value, where + ": " + key, false);
      set_where(node, where);
    }
    read(setting, node, where);
  }

  void require_all(const std::string& file) const {
    for (const Setting& setting : settings_)
      MP_REQUIRE(!setting.is_required() || where_.count(setting.key()), Exit::bad_configuration,
                 "{}: {} is missing; add it: {}", file, setting.key(), setting.meaning());
  }

  WrittenKeys written() const {
    WrittenKeys keys{.named = {}, .open = open_};
    for (const auto& [key, where] : where_) keys.named.insert(key);
    return keys;
  }

  std::string origin(const std::string& key, const std::string& file) const {
    const auto found = where_.find(key);
    return found == where_.end() ? file : found->second;
  }

 private:
  void read(const Setting& setting, const Node& node, const std::string& where) {
    const std::string& key = setting.key();
    where_[key] = where;
    open_.erase(key);
    const bool is_open = setting.may_be_searched() && node.kind == Node::Kind::text && node.text == "auto";
    if (!is_open) return setting.read(node);
    const std::string& written = begun_with_.at(key);
    setting.read(parse_document(written, where + ": " + key, false));
    open_.insert(key);
  }

  /// Whether a section says auto where all its settings may: `grid: auto`.
  bool is_all_auto(const std::string& section, const Node& value) const {
    return value.kind == Node::Kind::text && value.text == "auto" &&
           std::all_of(settings_.begin(), settings_.end(), [&](const Setting& setting) {
             return !setting.key().starts_with(section + ".") || setting.may_be_auto() ||
                    setting.may_be_searched();
           });
  }
  void read_all_of(const std::string& section, const Node& value, const std::string& where) {
    for (const Setting& setting : settings_)
      if (setting.key().starts_with(section + ".")) read(setting, value, where);
  }

  /// What stands at a key of several parts, or nothing.
  static const Node* node_at(const Node& mapping, const std::string& key) {
    const std::size_t dot = key.find('.');
    const Node* found = nullptr;
    for (const auto& [name, value] : mapping.entries)
      if (name.text == key.substr(0, dot)) found = &value;
    return found == nullptr || dot == std::string::npos ? found : node_at(*found, key.substr(dot + 1));
  }

  static void set_where(Node& node, const std::string& where) {
    node.where = where;
    for (Node& item : node.items) set_where(item, where);
    for (auto& [key, value] : node.entries) {
      set_where(key, where);
      set_where(value, where);
    }
  }

  /// Refuses a key that is neither a setting nor a section.
  void refuse_unknown(const std::string& key, const std::string& where) const {
    if (sections_.count(key)) return;
    refuse_other_kinds(key, where);
    std::vector<std::string> candidates;
    const std::string last = key.substr(key.rfind('.') + 1);
    std::string elsewhere;  // the right name in the wrong section
    for (const Setting& setting : settings_) {
      candidates.push_back(setting.key());
      if (elsewhere.empty() && setting.key().ends_with("." + last)) elsewhere = setting.key();
    }
    for (const auto& [section, example] : sections_) candidates.push_back(section);
    const auto near = nearest_spelling(key, candidates);
    const bool close = near && edit_distance(key, *near) <= 2;
    const std::string meant = close ? *near : !elsewhere.empty() ? elsewhere : near.value_or("");
    std::string shown_key;
    for (unsigned char c : key.substr(0, 80)) shown_key += c < 0x20 || c == 0x7f ? '?' : static_cast<char>(c);
    fail(Exit::bad_configuration, "{}: {} is not a setting{}", where, shown_key,
         meant.empty() ? " (--help-config lists all of them)" : "; did you mean " + meant + "?");
  }

  /// Refuses a setting that models of other kinds have.
  void refuse_other_kinds(const std::string& key, const std::string& where) const {
    std::vector<std::string> kinds;
    for (const ModelKind kind : all_kinds<ModelKind>())
      for (const Setting& setting : settings_of_kind(config_, kind))
        if (setting.key() == key) kinds.emplace_back(name_of(kind));
    MP_REQUIRE(kinds.empty(), Exit::bad_configuration, "{}: {} has no {} (a setting of {}; leave it out)",
               where, kind_, key, join(kinds, ", "));
  }

  Config& config_;
  const ModelKind kind_ = config_.model.kind;  ///< whose settings are read; the file may name another
  std::vector<Setting> settings_;
  std::map<std::string, const Setting*> by_key_;
  std::map<std::string, std::string> sections_;  // with one of its settings as an example
  std::map<std::string, std::string> where_;
  std::map<std::string, std::string> begun_with_;  ///< values of settings that a search may choose
  std::set<std::string> open_;
};

/// Lets what is open be something that the written settings beside it allow: a search begins from there.
void take_allowed(Config& config, const std::set<std::string>& open) {
  if (open.count("train.micro_batch")) config.train.micro_batch = 1;
  if (!open.count("schedule.kind")) return;
  ScheduleConfig& schedule = config.schedule;
  if (!schedule.groups.empty()) schedule.kind = ScheduleKind::elastic;
  else if (schedule.chunks > 1) schedule.kind = ScheduleKind::interleaved;
}

/// The kind of model that the file, or else the command line, names: it says which settings there are. What
/// is no kind is refused when settings are read.
ModelKind kind_of(const Node& root, const std::vector<std::string>& overrides) {
  std::string name;
  for (const auto& [section, settings] : root.entries)
    for (const auto& [key, value] : settings.entries)
      if (section.text == "model" && key.text == "kind") name = value.text;
  const std::string key = "model.kind=";
  for (const std::string& text : overrides)
    if (text.starts_with(key)) name = text.substr(key.size());
  return kind_named<ModelKind>(name).value_or(ModelKind{});
}

/// A setting's part of --help-config.
std::string help_of(const Setting& setting) {
  return fmt::format("  {} = {}\n      {}.\n      Allowed: {}.\n", setting.key(),
                     setting.is_required() ? "(required)" : setting.written(), setting.meaning(),
                     setting.allowed());
}

std::string section_of(const Setting& setting) { return setting.key().substr(0, setting.key().find('.')); }

/// The settings of a section that models of a kind have, kind by kind.
std::string help_of_kinds(const std::string& section) {
  Config defaults;
  std::string text;
  for (const ModelKind kind : all_kinds<ModelKind>()) {
    std::string settings;
    for (const Setting& setting : settings_of_kind(defaults, kind))
      if (section_of(setting) == section) settings += help_of(setting);
    if (!settings.empty()) text += fmt::format("\n{}, where model.kind is {}\n{}", section, kind, settings);
  }
  return text;
}

}  // namespace

Config::Config() = default;
Config::Config(const Config&) = default;
Config::Config(Config&&) noexcept = default;
Config& Config::operator=(const Config&) = default;
Config& Config::operator=(Config&&) noexcept = default;
Config::~Config() = default;
bool Config::operator==(const Config&) const = default;

Config read_config(const std::string& file, const std::vector<std::string>& overrides,
                   std::set<std::string>* named) {
  WrittenKeys written;
  Config config = read_config(file, overrides, written);
  if (named) *named = std::move(written.named);
  return config;
}

Config with_settings(const Config& config, const std::vector<std::string>& settings) {
  Config known = config;
  Reader reader(known);
  for (const std::string& text : settings) reader.read_override(text);
  if (known.reproducible.tensor_follows) known.reproducible.tensor = 0;
  if (known.reproducible.data_follows) known.reproducible.data = 0;
  return resolve(std::move(known));
}

namespace {

Config read_root(const Node& root, const std::string& file, const std::vector<std::string>& overrides,
                 WrittenKeys& written) {
  MP_REQUIRE(root.kind != Node::Kind::empty, Exit::bad_configuration,
             "{}: is empty (a configuration names at least run.dir and data.train)", file);
  MP_REQUIRE(root.kind == Node::Kind::mapping, Exit::bad_configuration,
             "{}: is {} (a configuration is a mapping of sections like model: and train:)", file,
             shown(root));
  Config config;
  config.model.kind = kind_of(root, overrides);
  if (row_of(config.model.kind).trains_subnets) config.schedule.kind = ScheduleKind::causal;
  Reader(config).read_what_decides(root, overrides);
  follow_tokenizer(config);
  Reader reader(config);
  reader.read_section(root, "");
  for (const std::string& text : overrides) reader.read_override(text);
  reader.require_all(file);
  written = reader.written();
  take_allowed(config, written.open);
  fill_in(config);
  check_together(config, [&](const std::string& key) { return reader.origin(key, file); });
  return config;
}

}  // namespace

Config read_config(const std::string& file, const std::vector<std::string>& overrides, WrittenKeys& written) {
  MP_REQUIRE(!file.empty(), Exit::input_missing, "no configuration is named (give --config FILE)");
  return read_root(read_document(file), file, overrides, written);
}

Config config_of_yaml(const std::string& text, const std::string& where) {
  WrittenKeys written;
  return read_root(parse_document(text, where, false), where, {}, written);
}

std::string yaml_of(const std::vector<Setting>& settings) {
  std::vector<std::pair<std::string, std::string>> written;
  for (const Setting& setting : settings) written.emplace_back(setting.key(), setting.written());
  return yaml_of(written);
}

std::string yaml_of(const std::vector<std::pair<std::string, std::string>>& written) {
  std::string text, section;
  for (const auto& [key, value] : written) {
    std::size_t begin = 0, depth = 0;
    for (std::size_t dot = key.find('.'); dot != std::string::npos;
         begin = dot + 1, dot = key.find('.', begin), ++depth) {
      const std::string prefix = key.substr(0, dot + 1);
      if (!section.starts_with(prefix))
        text += std::string(2 * depth, ' ') + key.substr(begin, dot - begin) + ":\n";
    }
    section = key.substr(0, begin);
    text += std::string(2 * depth, ' ') + key.substr(begin) + ": " + value + "\n";
  }
  return text;
}

std::string to_yaml(const Config& config) {
  Config copy = config;
  return yaml_of(settings_of(copy));
}

std::string to_yaml(const Config& config, const std::set<std::string>& open) {
  Config copy = config;
  std::vector<std::pair<std::string, std::string>> written;
  for (const Setting& setting : settings_of(copy))
    written.emplace_back(setting.key(), open.count(setting.key()) ? "auto" : setting.written());
  return yaml_of(written);
}

std::string config_help() {
  Config defaults;
  std::string text, section;
  std::set<std::string> told;
  const auto begin = [&](const std::string& next) {
    if (!section.empty()) text += help_of_kinds(section) + '\n';
    text += next + '\n';
    section = next;
    told.insert(section);
  };
  for (const Setting& setting : common_settings(defaults)) {
    if (section_of(setting) != section) begin(section_of(setting));
    text += help_of(setting);
  }
  text += help_of_kinds(section);
  for (const ModelKind kind : all_kinds<ModelKind>())  // sections of one kind alone
    for (const Setting& setting : settings_of_kind(defaults, kind))
      if (told.insert(section_of(setting)).second) text += help_of_kinds(section_of(setting));
  return text;
}

}  // namespace mindpipe
