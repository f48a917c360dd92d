#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "config/document.h"
#include "core/kinds.h"

namespace mindpipe {

struct ChosenBlocks;
struct Config;
struct CutAt;
struct DataSource;
struct Space;
enum class ModelKind : std::uint8_t;

template <ListedKind Kind>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& row : rows_of(Kind{})) names.emplace_back(row.name);
  return names;
}

/// A member of a Config that holds one of the kinds of config/kinds.h.
struct KindMember {
  std::vector<std::string> names;
  std::function<void(std::size_t)> choose;
  std::function<std::size_t()> chosen;  ///< counted as in names
};

/// The numbers that a setting may be.
struct Range {
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  bool open_below = false, open_above = false;  ///< the bound itself is not allowed
  const char* word = nullptr;                   ///< the file may say it: auto
  int word_number = 0;                          ///< what the member is then; a list is empty
};

/// One setting: its key, what it may be, what it means, and the member of a Config that holds it. Reading,
/// checking, printing and documenting all go through the same list of these.
class Setting {
 public:
  using Member =
      std::variant<int*, std::int64_t*, std::uint64_t*, double*, bool*, std::string*, std::vector<int>*,
                   std::vector<double>*, std::vector<std::string>*, std::vector<DataSource>*, ChosenBlocks*,
                   std::vector<CutAt>*, Space*, KindMember>;
  enum class Unit { none, bytes, seconds };
  /// What becomes of a setting when a run goes on from a checkpoint. Layout: who computes what, and where; no
  /// bit depends on it, so it is free. Course: how the run goes on from there; the new value is taken.
  /// Arithmetic: what every number depends on; it stays as it is.
  enum class Role { layout, course, arithmetic };

  Setting(std::string key, Member member, std::string meaning, const Range& range = {})
      : key_(std::move(key)),
        meaning_(std::move(meaning)),
        member_(std::move(member)),
        least_(range.least),
        most_(range.most),
        open_below_(range.open_below),
        open_above_(range.open_above),
        word_(range.word),
        word_number_(range.word_number) {}
  template <ListedKind Kind>
  Setting(std::string key, Kind* member, std::string meaning, const Range& range = {})
      : Setting(std::move(key), kind_member(member), std::move(meaning), range) {}

  Setting playing(Role role) && {
    role_ = role;
    return std::move(*this);
  }
  Setting one_of(std::vector<std::string> words) && {
    words_ = std::move(words);
    return std::move(*this);
  }
  Setting required() && {
    required_ = true;
    return std::move(*this);
  }
  /// Says which other settings there are: it is read before them.
  Setting deciding() && {
    decides_ = true;
    return std::move(*this);
  }
  /// May be left to a search: the file says auto, and the member keeps its default.
  Setting or_searched(bool is_searched = true) && {
    searched_ = is_searched;
    return std::move(*this);
  }
  Setting in(Unit unit) && {
    unit_ = unit;
    return std::move(*this);
  }

  const std::string& key() const { return key_; }
  const std::string& meaning() const { return meaning_; }
  Role role() const { return role_; }
  bool is_required() const { return required_; }
  bool decides() const { return decides_; }
  bool may_be_auto() const { return word_ != nullptr && std::string_view(word_) == "auto"; }
  bool may_be_searched() const { return searched_; }
  /// Whether the value is a text as it stands: nothing in it is read as a number, a list or a mapping.
  bool is_text() const {
    return std::holds_alternative<std::string*>(member_) || std::holds_alternative<KindMember>(member_);
  }

  /// "a whole number from 1 to 65536", "one of gelu, swiglu", "true or false", ...
  std::string allowed() const;
  /// Stores what the node says, or says why it cannot.
  void read(const Node& node) const;
  /// The member's value as it stands in a file.
  std::string written() const;

 private:
  struct Reading;

  template <ListedKind Kind>
  static KindMember kind_member(Kind* member) {
    KindMember made;
    made.names = names_of<Kind>();
    made.choose = [member](std::size_t i) { *member = static_cast<Kind>(i); };
    made.chosen = [member] { return static_cast<std::size_t>(*member); };
    return made;
  }

  std::string key_, meaning_;
  Member member_;
  double least_, most_;
  bool open_below_, open_above_, required_ = false, decides_ = false, searched_ = false;
  const char* word_;
  int word_number_;
  std::vector<std::string> words_;
  Unit unit_ = Unit::none;
  Role role_ = Role::arithmetic;
};

/// Settings as a file has them, in the order of the list: neighbours of one section stand below its name.
std::string yaml_of(const std::vector<Setting>& settings);
/// Keys and values as a file has them.
std::string yaml_of(const std::vector<std::pair<std::string, std::string>>& written);
/// Every setting that a run with a model of `config`'s kind has, in the order of the file.
std::vector<Setting> settings_of(Config& config);
/// What all runs have, and what a model of one kind has besides: settings of sections model and data.
std::vector<Setting> common_settings(Config& config);
std::vector<Setting> settings_of_kind(Config& config, ModelKind kind);
/// Every setting with what it may be, its default and what it means: the text of --help-config.
std::string config_help();

}  // namespace mindpipe
