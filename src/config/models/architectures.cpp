#include "config/models/architectures.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "config/config.h"
#include "config/rules.h"
#include "config/settings.h"
#include "core/strict_json.h"
#include "core/text.h"

namespace mindpipe {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> parts_of(const std::string& text, char between) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(between, begin)) != text.npos; begin = end + 1)
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

/// A value on one line, cut short.
std::string shown(const Json& value) {
  std::string text = value.dump();
  if (text.size() > 80) text = text.substr(0, text.find_last_of(" ,[{", 76)) + " ...";
  return text;
}

/// A value on one line, as words of the table have it; a list of equal values is one of them.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array() && !value.empty() && value.front().is_primitive() &&
      std::all_of(value.begin(), value.end(), [&](const Json& other) { return other == value.front(); }))
    return text_of(value.front());
  return shown(value);
}

/// What stands at a path of a file; none: nothing does. A number stands for a list of two equal ones.
std::optional<std::string> text_at(const std::string& file, const Json& root, const std::string& path) {
  const bool counts = path.ends_with('#');
  const Json* at = &root;
  std::string walked;
  const auto expect = [&](bool holds, const char* expected) {
    MP_REQUIRE(holds, Exit::bad_configuration, "{}: {} is {} (expected {})", file, walked, shown(*at),
               expected);
  };
  for (const std::string& step : parts_of(path.substr(0, path.size() - (counts ? 1 : 0)), '.')) {
    if (all_digits(step)) {
      if (at->is_number()) continue;
      expect(at->is_array() && at->size() == 2 && (*at)[0].is_number() && (*at)[1].is_number(),
             "a number, or a list of two");
      at = &(*at)[std::stoul(step)];
    } else {
      if (at->is_null()) return std::nullopt;
      expect(at->is_object(), "a mapping");
      if (!at->contains(step)) return std::nullopt;
      at = &(*at)[step];
    }
    walked += (walked.empty() ? "" : ".") + step;
  }
  if (!counts) return text_of(*at);
  if (at->is_null()) return std::nullopt;
  expect(at->is_object(), "a mapping");
  return std::to_string(at->size());
}

std::string first_key(const std::string& path) { return path.substr(0, path.find_first_of(".#|")); }

/// Reads the rows of an architecture out of a config.json into a configuration.
class TheirReader {
 public:
  TheirReader(const std::string& path, const Json& json, Config& config)
      : path_(path), json_(json), config_(config), settings_(settings_of(config)) {}

  void read(const TheirKey& key) {
    const std::vector<std::string> paths = parts_of(key.theirs, ' '), absent = parts_of(key.absent, ' ');
    std::vector<std::string> values;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      values.push_back(
          value_of(paths[i], absent_value(key, paths[i], absent[std::min(i, absent.size() - 1)])));
      if (values[i] == "null") values[i] = key.null;
      if (values[i] == "=" || (values[i] == "null" && absent[i] == "=")) values[i] = values.front();
    }
    std::string value = values.front();
    if (!key.words.empty()) value = word_for(key, join(values, " "));
    else compare(key, paths, values);
    if (!key.ours.empty()) set(key.ours, value, fmt::format("{}: {}", path_, paths.front()));
  }

  void set(const std::string& ours, const std::string& value, const std::string& where) {
    said_.insert(ours);
    Node node;
    node.kind = Node::Kind::text;
    node.text = value == "null" && setting(ours).may_be_auto() ? "auto" : value;
    node.where = where;
    setting(ours).read(node);
  }
  /// What a setting that is not in the file has to be; it is told where it is not what we would take anyway.
  void set_silently(const std::string& ours, const std::string& value) {
    const std::string usual = setting(ours).written();
    const bool was_said = said_.count(ours) > 0;
    set(ours, value, path_);
    if (!was_said && setting(ours).written() == usual) said_.erase(ours);
  }

  TheirModel result() {
    TheirModel all;
    for (const Setting& one : settings_)
      if (said_.count(one.key()) > 0) all.settings.emplace_back(one.key(), one.written());
    all.left_out = left_out_;
    for (const auto& [key, value] : json_.items()) {
      if (read_.count(key) == 0) all.left_out.push_back(key);
      else if (value.is_object() && read_.count(key + "#") == 0) add_unread_members(key, value, all.left_out);
    }
    return all;
  }

 private:
  /// Members of what was read in part. A mapping among them says what nothing here is.
  void add_unread_members(const std::string& key, const Json& value,
                          std::vector<std::string>& left_out) const {
    for (const auto& [name, member] : value.items()) {
      const std::string path = key + "." + name;
      if (read_.count(path) > 0) continue;
      MP_REQUIRE(!member.is_structured(), Exit::bad_configuration, "{}: {} is {}, which is not built", path_,
                 path, shown(member));
      left_out.push_back(path);
    }
  }

  const Setting& setting(const std::string& key) const {
    const auto found = std::find_if(settings_.begin(), settings_.end(),
                                    [&](const Setting& one) { return one.key() == key; });
    MP_CHECK(found != settings_.end(), "a {} has no {}", config_.model.kind, key);
    return *found;
  }

  /// What a file without a key means.
  std::string absent_value(const TheirKey& key, const std::string& paths, const std::string& absent) const {
    if (key.needed_by.empty()) return absent;
    const std::vector<std::string> need = parts_of(key.needed_by, '=');
    if (setting(need[0]).written() != need[1]) return absent;
    if (!key.then_as.empty()) return setting(key.then_as).written();
    for (const std::string& path : parts_of(paths, '|'))
      if (text_at(path_, json_, path)) return absent;
    fail(Exit::bad_configuration, "{}: {} is missing, and {} needs it", path_,
         paths.substr(0, paths.find('|')), need[1]);
  }

  /// Whether two texts of a file say one value: 10000 and 10000.0 do.
  static bool are_equal(const std::string& a, const std::string& b) {
    const auto number = [](const std::string& text) {
      double value = 0;
      const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
      return end.ec == std::errc{} && end.ptr == text.data() + text.size() ? std::optional(value)
                                                                           : std::nullopt;
    };
    return a == b || (number(a) && number(a) == number(b));
  }

  std::string value_of(const std::string& paths, const std::string& absent) {
    std::optional<std::string> found;
    std::string at;
    for (const std::string& path : parts_of(paths, '|')) {
      read_.insert({first_key(path), path});
      const std::optional<std::string> text = text_at(path_, json_, path);
      if (!text) continue;
      MP_REQUIRE(!found || are_equal(*found, *text), Exit::bad_configuration,
                 "{}: {} is {} and {} {}; keep the one that is meant", path_, at, *found, path, *text);
      found = text;
      at = path;
    }
    return found.value_or(absent);
  }

  std::string word_for(const TheirKey& key, const std::string& value) const {
    std::vector<std::string> built;
    for (const auto& [theirs, ours] : key.words) {
      if (theirs == value) return ours;
      built.push_back(theirs);
    }
    fail(Exit::bad_configuration, "{}: {} is {}, which is not built (built: {})", path_,
         join(parts_of(key.theirs.substr(0, key.theirs.find('|')), ' '), ", "), value, join(built, "; "));
  }

  /// Refuses several values for one setting, or says which is not taken.
  void compare(const TheirKey& key, const std::vector<std::string>& paths,
               const std::vector<std::string>& values) {
    for (std::size_t i = 1; i < values.size(); ++i) {
      if (values[i] == values.front()) continue;
      MP_REQUIRE(key.may_differ, Exit::bad_configuration, "{}: {} is {} and {} {}; built is {}, one for both",
                 path_, paths.front(), values.front(), paths[i], values[i], key.ours);
      left_out_.push_back(fmt::format("{} {} ({} is {}, as {})", paths[i], values[i], key.ours,
                                      values.front(), paths.front()));
    }
  }

  std::string path_;
  const Json& json_;
  Config& config_;
  std::vector<Setting> settings_;
  std::set<std::string> said_;
  std::set<std::string> read_;  ///< keys and paths
  std::vector<std::string> left_out_;
};

/// The architecture that a config.json names.
Architecture architecture_in(const std::string& path, const Json& json, const Config& config) {
  std::vector<std::string> named, built;
  if (json.contains("architectures") && json["architectures"].is_array())
    for (const Json& name : json["architectures"])
      if (name.is_string()) named.push_back(name.get<std::string>());
  const std::string type = text_at(path, json, "model_type").value_or("");
  for (const Architecture& one : architectures_of(config)) {
    const auto is_named = [&](const std::string& name) {
      return std::find(named.begin(), named.end(), name) != named.end();
    };
    if (is_named(one.name) || std::any_of(one.also.begin(), one.also.end(), is_named) ||
        (named.empty() && type == one.model_type))
      return one;
    built.push_back(one.name);
  }
  fail(Exit::bad_configuration, "{}: names {}, which is not built (built: {})", path,
       !named.empty() ? "the architecture " + join(named, ", ")
       : type.empty() ? "neither architectures nor a model_type"
                      : "the model_type " + type,
       join(built, ", "));
}

/// Puts a value, as the table has it, at a path.
void put(Json& root, const std::string& path, const std::string& text) {
  if (path.ends_with('#')) {
    Json& members = root[path.substr(0, path.size() - 1)] = Json::object();
    for (int i = 0; i < std::stoi(text); ++i) members[std::to_string(i)] = fmt::format("LABEL_{}", i);
    return;
  }
  Json* at = &root;
  for (const std::string& step : parts_of(path, '.')) {
    if (all_digits(step)) at = &(*at)[std::stoul(step)];
    else at = &(*at)[step];
  }
  const Json value = Json::parse(text, nullptr, false);
  *at = value.is_primitive() && !value.is_discarded() ? value : Json(text);
}

/// Writes a row; or says why the architecture has no such setting.
std::string write(const TheirKey& key, const std::vector<Setting>& settings, Json& json) {
  std::string value = key.words.empty() ? key.absent : key.words.front().first;
  if (!key.ours.empty()) {
    const auto setting =
        std::find_if(settings.begin(), settings.end(), [&](const Setting& s) { return s.key() == key.ours; });
    MP_CHECK(setting != settings.end(), "there is no {}", key.ours);
    const std::string ours = setting->written();
    const auto word = std::find_if(key.words.begin(), key.words.end(),
                                   [&](const auto& words) { return words.second == ours; });
    if (key.theirs.empty() ? ours != key.absent : !key.words.empty() && word == key.words.end())
      return fmt::format("{} is {}", key.ours, ours);
    value = key.words.empty() ? ours : word->first;
  }
  if (key.theirs.empty() || (key.is_rare && value == key.absent)) return "";
  const std::vector<std::string> paths = parts_of(key.theirs, ' '), values = parts_of(value, ' ');
  for (std::size_t i = 0; i < paths.size(); ++i)
    put(json, paths[i].substr(0, paths[i].find('|')), values[std::min(i, values.size() - 1)]);
  return "";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> their_activations() {
  return {{"gelu_new", "gelu"},   {"gelu_pytorch_tanh", "gelu"},
          {"gelu", "gelu_exact"}, {"relu", "relu"},
          {"silu", "silu"},       {"swish", "silu"}};
}

std::vector<Architecture> architectures_of(const Config& config) {
  std::vector<Architecture> all;
  const auto add = [&](ModelKind kind, std::vector<Architecture> own) {
    for (Architecture& one : own) {
      one.kind = kind;
      all.push_back(std::move(one));
    }
  };
#define MINDPIPE_ADD_ARCHITECTURES(model) add(ModelKind::model, model::architectures(config));
  MINDPIPE_MODELS_OF_TRANSFORMERS(MINDPIPE_ADD_ARCHITECTURES)
#undef MINDPIPE_ADD_ARCHITECTURES
  return all;
}

TheirModel their_model(const std::string& path) {
  const Json json(read_json_file({.path = path,
                                  .expected = "the config.json of a model of transformers",
                                  .code = Exit::bad_configuration,
                                  .deepest = 8}));
  MP_REQUIRE(json.is_object(), Exit::bad_configuration,
             "{}: is no object (expected the config.json of a model of transformers)", path);
  Config config;
  const Architecture found = architecture_in(path, json, config);
  config.model.kind = found.kind;
  TheirReader reader(path, json, config);
  for (const TheirKey& key : found.keys)
    if (!key.theirs.empty()) reader.read(key);
  // What stays depends on what the file has said.
  const Architecture settled = architecture_in(path, json, config);
  for (const TheirKey& key : settled.keys)
    if (key.theirs.empty()) reader.set_silently(key.ours, key.absent);
  for (const auto& [ours, value] : settled.usual) reader.set_silently(ours, value);
  Config whole = config;
  fill_in(whole);
  check_together(whole, [&](const std::string&) { return path; });
  TheirModel model = reader.result();
  model.architecture = found.name;
  model.kind = found.kind;
  std::erase_if(model.left_out, [](const std::string& key) {
    return key == "architectures" || key == "model_type" || key == "transformers_version" ||
           key == "_name_or_path";
  });
  return model;
}

WrittenModel config_json(const Config& resolved) {
  Config config = resolved;
  const std::vector<Setting> settings = settings_of(config);
  WrittenModel written;
  for (const Architecture& one : architectures_of(resolved)) {
    if (one.kind != resolved.model.kind) continue;
    Json json;
    json["architectures"] = {one.name};
    json["model_type"] = one.model_type;
    std::string misfit;
    for (const TheirKey& key : one.keys)
      if (misfit.empty()) misfit = write(key, settings, json);
    if (misfit.empty()) return {json.dump(2) + "\n", ""};
    written.why_none +=
        fmt::format("{}{} has it not that {}", written.why_none.empty() ? "" : "; ", one.name, misfit);
  }
  if (written.why_none.empty())
    written.why_none = fmt::format("it has no architecture for a {}", resolved.model.kind);
  return written;
}

}  // namespace mindpipe
