#include "config/settings.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "config/chosen_blocks.h"
#include "config/kinds.h"
#include "config/models/space.h"
#include "config/sections/data.h"
#include "config/sections/layout.h"
#include "core/check.h"
#include "core/text.h"

namespace mindpipe {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

/// 1, 0.5, 3.0e-4: digits on both sides of a point, then perhaps an exponent; never inf or nan.
bool is_plain_number(std::string_view text) {
  if (const auto e = text.find_first_of("eE"); e != text.npos) {
    std::string_view power = text.substr(e + 1);
    if (power.starts_with('-') || power.starts_with('+')) power.remove_prefix(1);
    if (!all_digits(power)) return false;
    text = text.substr(0, e);
  }
  if (const auto point = text.find('.'); point != text.npos) {
    if (!all_digits(text.substr(point + 1))) return false;
    text = text.substr(0, point);
  }
  return is_plain_integer(text);
}

template <class Number>
std::optional<Number> number_from(std::string_view text) {
  Number value{};
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

/// What was most likely meant by 010, 1_000 or 64.0; nothing when that too would be no whole number.
std::string plain_digits(std::string text) {
  std::erase(text, '_');
  std::erase(text, ',');
  if (const auto point = text.find('.');
      point != text.npos && text.find_first_not_of('0', point + 1) == text.npos)
    text.resize(point);
  const auto first = text.find_first_not_of('0');
  if (all_digits(text)) text = first == text.npos ? "0" : text.substr(first);
  return is_plain_integer(text) ? text : "";
}

std::string truth_meant(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (text == "yes" || text == "on" || text == "y" || text == "1" || text == "true") return "true";
  if (text == "no" || text == "off" || text == "n" || text == "0" || text == "false") return "false";
  return "";
}

std::string bound(double value) {
  return value == static_cast<double>(static_cast<long long>(value))
             ? fmt::format("{}", static_cast<long long>(value))
             : shortest(value);
}

}  // namespace

/// One reading of one setting: the rules, and the sentence when they are broken.
struct Setting::Reading {
  const Setting& setting;
  const Node& node;

  [[noreturn]] void refuse(const std::string& meant = "") const {
    fail(Exit::bad_configuration, "{}: {} is {}; allowed: {}{}", node.where, setting.key_, shown(node),
         setting.allowed(), meant.empty() ? "" : "; did you mean " + meant + "?");
  }

  /// Refuses to leave to a search what the results of a run follow from.
  void require_not_searched() const {
    const bool is_auto =
        node.kind == Node::Kind::text && !node.quoted && node.text == "auto" && !setting.word_;
    const Member& member = setting.member_;
    if (!is_auto || setting.role_ != Role::arithmetic || std::holds_alternative<std::string*>(member) ||
        std::holds_alternative<std::vector<DataSource>*>(member) || std::holds_alternative<Space*>(member))
      return;
    fail(Exit::bad_configuration,
         "{}: {} is auto, but it says what {}, and a search chooses only how that is spread over ranks; "
         "allowed: {}",
         node.where, setting.key_, setting.key_.starts_with("model.") ? "the model is" : "is computed",
         setting.allowed());
  }

  /// Takes the word that a file may say in place of a number; a list that is open is empty. False: it says
  /// another.
  bool takes_word() const {
    if (!setting.word_ || node.kind != Node::Kind::text || node.text != setting.word_) return false;
    const Member& member = setting.member_;
    if (auto* const list = std::get_if<std::vector<int>*>(&member)) (*list)->clear();
    else if (auto* const real = std::get_if<double*>(&member)) **real = setting.word_number_;
    else *std::get<int*>(member) = setting.word_number_;
    return true;
  }

  const std::string& plain() const {
    if (node.kind != Node::Kind::text) refuse();
    if (node.quoted) refuse(node.text.size() < 30 && is_plain_number(node.text) ? node.text : "");
    return node.text;
  }

  void within(double value) const {
    const bool low = setting.open_below_ ? value <= setting.least_ : value < setting.least_;
    const bool high = setting.open_above_ ? value >= setting.most_ : value > setting.most_;
    if (low || high) refuse();
  }

  template <class Whole>
  Whole whole() const {
    const std::string& text = plain();
    if (!is_plain_integer(text)) refuse(plain_digits(text));
    const auto value = number_from<Whole>(text);
    if (!value) refuse();
    within(static_cast<double>(*value));
    return *value;
  }

  double real() const {
    const std::string& text = plain();
    if (!is_plain_number(text)) refuse();
    const auto value = number_from<double>(text);
    if (!value) refuse();
    within(*value);
    return *value;
  }

  bool truth() const {
    const std::string& text = plain();
    if (text != "true" && text != "false") refuse(truth_meant(text));
    return text == "true";
  }

  std::string text() const {
    if (node.kind != Node::Kind::text) refuse();
    const auto control = [](unsigned char c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f; };
    if (!is_utf8(node.text) || std::any_of(node.text.begin(), node.text.end(), control)) refuse();
    if (setting.required_ && node.text.empty()) refuse();
    if (!setting.words_.empty()) one_of(setting.words_);
    return node.text;
  }

  /// The place among `words` of the one that the node says.
  std::size_t one_of(const std::vector<std::string>& words) const {
    const auto found = std::find(words.begin(), words.end(), node.text);
    if (found == words.end()) {
      std::string lower = node.text;
      for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      refuse(nearest_spelling(lower, words).value_or(""));
    }
    return static_cast<std::size_t>(found - words.begin());
  }

  ChosenBlocks chosen_blocks() const {
    if (node.kind != Node::Kind::list) {
      text();
      return all_kinds<WhichBlocks>()[one_of(names_of<WhichBlocks>())];
    }
    std::vector<int> numbers;
    for (const Node& item : node.items) numbers.push_back(Reading{setting, item}.whole<int>());
    if (numbers.empty() || !std::is_sorted(numbers.begin(), numbers.end(), std::less_equal<>())) refuse();
    return ChosenBlocks(std::move(numbers));
  }

  /// Reads a mapping, `what`, that has these parts alone.
  void parts(const char* what, std::vector<Setting> parts) const {
    if (node.kind != Node::Kind::mapping) refuse();
    std::vector<std::string> names;
    for (Setting& part : parts) {
      names.push_back(part.key_);
      part.key_ = setting.key_ + "." + part.key_;
    }
    for (const auto& [key, value] : node.entries) {
      const auto found = std::find(names.begin(), names.end(), key.text);
      if (found == names.end())
        fail(Exit::bad_configuration, "{}: {}.{} is not a setting ({} has {}){}", key.where, setting.key_,
             key.text, what, join(names, " and "), did_you_mean(key.text, names));
      parts[static_cast<std::size_t>(found - names.begin())].read(value);
    }
  }
  void require_part(bool is_there, const char* name, const char* meaning) const {
    MP_REQUIRE(is_there, Exit::bad_configuration, "{}: {}.{} is missing; add it: {}", node.where,
               setting.key_, name, meaning);
  }

  DataSource source() const {
    if (node.kind == Node::Kind::text) return {text(), 1};
    DataSource source;
    parts("a source", {Setting("path", &source.path, "").required(),
                       Setting("weight", &source.weight, "", Range{0, 1e9, true})});
    require_part(!source.path.empty(), "path", "where the tokens are");
    return source;
  }

  /// A list whose items are each read in this way.
  template <class Item>
  std::vector<Item> list(Item (Reading::*one)() const) const {
    if (node.kind != Node::Kind::list) refuse();
    std::vector<Item> items;
    for (const Node& item : node.items) items.push_back((Reading{setting, item}.*one)());
    return items;
  }

  CutAt cut() const {
    CutAt cut;
    const Range count{1, 1 << 30};
    parts("a move", {Setting("step", &cut.step, "", count), Setting("cuts", &cut.cuts, "", count)});
    require_part(cut.step > 0, "step", "the step in which blocks move");
    require_part(!cut.cuts.empty(), "cuts", "the first block of each stage but the first, behind that step");
    return cut;
  }
};

std::string Setting::allowed() const {
  const auto range = [this] {
    std::string text;
    if (least_ > -1e300) text += (open_below_ ? " above " : " from ") + bound(least_);
    if (most_ < 1e300) text += (open_above_ ? " to below " : " to ") + bound(most_);
    return text;
  };
  const std::string kind = std::visit(
      Overloaded{
          [&](std::uint64_t*) { return std::string("a whole number from 0 to 18446744073709551615"); },
          [&](double*) {
            return unit_ == Unit::seconds ? "seconds, or a duration like 23h50m," + range()
                                          : "a number" + range();
          },
          [&](std::int64_t*) {
            return unit_ == Unit::bytes ? std::string("bytes, or a size like 12 GiB")
                                        : "a whole number" + range();
          },
          [&](int*) { return "a whole number" + range(); },
          [&](bool*) { return std::string("true or false"); },
          [&](std::string*) {
            return !words_.empty() ? join(words_, ", ")
                                   : std::string(required_ ? "text that is not empty" : "text");
          },
          [](const KindMember& member) { return join(member.names, ", "); },
          [&](ChosenBlocks*) { return "none, block, or a list of whole numbers" + range() + ", ascending"; },
          [&](std::vector<int>*) { return "a list of whole numbers" + range(); },
          [&](std::vector<double>*) { return "a number" + range() + ", or a list of these"; },
          [&](std::vector<std::string>*) { return "a list of some of " + join(words_, ", "); },
          [&](std::vector<DataSource>*) {
            return std::string(
                "a .txt or .tsv file, a pair of token files without .bin, synthetic:NAME, "
                "reversed:PATH, pairs:SOURCES:TARGETS, or a list of these, each perhaps {path: ..., "
                "weight: ...}");
          },
          [](std::vector<CutAt>*) { return std::string("a list of moves, each {step: ..., cuts: [...]}"); },
          [](Space*) { return allowed_spaces(); }},
      member_);
  const char* const word = word_ || !searched_ ? word_ : "auto";
  return word ? word + (" or " + kind) : kind;
}

void Setting::read(const Node& node) const {
  const Reading reading{*this, node};
  MP_REQUIRE(node.kind != Node::Kind::empty, Exit::bad_configuration, "{}: {} has no value; allowed: {}",
             node.where, key_, allowed());
  if (reading.takes_word()) return;
  reading.require_not_searched();
  std::visit(Overloaded{[&](int* member) { *member = reading.whole<int>(); },
                        [&](std::int64_t* member) {
                          const auto size = unit_ == Unit::bytes && node.kind == Node::Kind::text &&
                                                    !is_plain_integer(node.text)
                                                ? parse_bytes(node.text)
                                                : std::nullopt;
                          *member = size && node.text[0] != '0' ? *size : reading.whole<std::int64_t>();
                        },
                        [&](std::uint64_t* member) { *member = reading.whole<std::uint64_t>(); },
                        [&](double* member) {
                          const auto span = unit_ == Unit::seconds && node.kind == Node::Kind::text &&
                                                    !is_plain_number(node.text)
                                                ? parse_seconds(node.text)
                                                : std::nullopt;
                          if (span && !all_digits(node.text)) reading.within(*member = *span);
                          else *member = reading.real();
                        },
                        [&](bool* member) { *member = reading.truth(); },
                        [&](std::string* member) { *member = reading.text(); },
                        [&](const KindMember& member) {
                          reading.text();
                          member.choose(reading.one_of(member.names));
                        },
                        [&](ChosenBlocks* member) { *member = reading.chosen_blocks(); },
                        [&](std::vector<int>* member) {
                          if (node.kind != Node::Kind::list || (word_ && node.items.empty()))
                            reading.refuse();
                          member->clear();
                          for (const Node& item : node.items)
                            member->push_back(Reading{*this, item}.whole<int>());
                        },
                        [&](std::vector<double>* member) {
                          if (node.kind == Node::Kind::list && node.items.empty()) reading.refuse();
                          member->clear();
                          if (node.kind != Node::Kind::list) member->push_back(reading.real());
                          for (const Node& item : node.items) member->push_back(Reading{*this, item}.real());
                        },
                        [&](std::vector<std::string>* member) { *member = reading.list(&Reading::text); },
                        [&](std::vector<DataSource>* member) {
                          member->clear();
                          if (node.kind != Node::Kind::list) member->push_back(reading.source());
                          for (const Node& item : node.items)
                            member->push_back(Reading{*this, item}.source());
                          if (required_ && member->empty())
                            fail(Exit::bad_configuration, "{}: {} is an empty list; allowed: {}", node.where,
                                 key_, allowed());
                        },
                        [&](std::vector<CutAt>* member) { *member = reading.list(&Reading::cut); },
                        [&](Space* member) { *member = read_space(node, key_); }},
             member_);
}

std::string Setting::written() const {
  return std::visit(
      Overloaded{[&](int* member) {
                   return word_ && *member == word_number_ ? std::string(word_) : fmt::format("{}", *member);
                 },
                 [](std::int64_t* member) { return fmt::format("{}", *member); },
                 [](std::uint64_t* member) { return fmt::format("{}", *member); },
                 [&](double* member) {
                   return word_ && *member == word_number_ ? std::string(word_) : shortest(*member);
                 },
                 [](bool* member) { return std::string(*member ? "true" : "false"); },
                 [](std::string* member) { return quoted_if_needed(*member); },
                 [](const KindMember& member) { return quoted_if_needed(member.names[member.chosen()]); },
                 [](ChosenBlocks* member) { return member->text(); },
                 [&](std::vector<int>* member) {
                   return word_ && member->empty() ? std::string(word_)
                                                   : fmt::format("[{}]", joined(*member));
                 },
                 [](std::vector<double>* member) {
                   std::vector<std::string> numbers;
                   for (const double number : *member) numbers.push_back(shortest(number));
                   return numbers.size() == 1 ? numbers[0] : fmt::format("[{}]", join(numbers, ", "));
                 },
                 [](std::vector<std::string>* member) { return fmt::format("[{}]", join(*member, ", ")); },
                 [](std::vector<DataSource>* member) {
                   std::vector<std::string> sources;
                   for (const DataSource& source : *member)
                     sources.push_back(source.weight == 1 ? quoted_if_needed(source.path)
                                                          : fmt::format("{{path: {}, weight: {}}}",
                                                                        quoted_if_needed(source.path),
                                                                        shortest(source.weight)));
                   return fmt::format("[{}]", join(sources, ", "));
                 },
                 [](std::vector<CutAt>* member) {
                   std::vector<std::string> moves;
                   for (const CutAt& move : *member)
                     moves.push_back(fmt::format("{{step: {}, cuts: [{}]}}", move.step, joined(move.cuts)));
                   return fmt::format("[{}]", join(moves, ", "));
                 },
                 [](Space* member) { return member->written; }},
      member_);
}

}  // namespace mindpipe
