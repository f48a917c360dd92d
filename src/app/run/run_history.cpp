#include "app/run/run_history.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "app/run/run_inputs.h"
#include "core/sha256.h"
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();

/// Whether a setting says what is trained: the others say what is evaluated, name files that count by their
/// contents, or guard: what a guard has done is told by the samples that were left out.
bool changes_training(const std::string& key) {
  constexpr const char* others[] = {"data.validation", "train.evaluate_every", "train.evaluate_batches",
                                    "supernet.evaluate_subnets", "supernet.calibrate_batches"};
  return !counts_by_contents(key) && !key.starts_with("guard.") &&
         std::find(std::begin(others), std::end(others), key) == std::end(others);
}

/// What two eras say of other bits; empty where nothing is known that makes them.
std::string difference(const RunHistory::Era& one, const RunHistory::Era& other, const std::string& of_one,
                       const std::string& of_other) {
  const RunArithmetic &a = one.arithmetic, &b = other.arithmetic;
  if (!a.has_name() || !b.has_name())
    return "one of them was made before arithmetic had a name, so nobody can say whether they should be "
           "equal";
  if (a.name() != b.name())
    return fmt::format("their arithmetic has two names ({} and {}), so other bits are no wonder: {}",
                       a.name(), b.name(), first_difference(a, b, of_one, of_other));
  const std::string course = other_course(one.settings, other.settings, of_one, of_other);
  return course.empty()
             ? ""
             : fmt::format("their arithmetic is one ({}), but not their course: {}", a.name(), course);
}

/// "samples 8 to 15", or "none".
std::string text_of(const LeftOutSamples& left_out) {
  std::vector<std::string> ranges;
  for (const auto& [first, end] : left_out) ranges.push_back(fmt::format("{} to {}", first, end - 1));
  return ranges.empty() ? "none" : "samples " + join(ranges, ", ");
}

}  // namespace

RunHistory::RunHistory(const Manifest& manifest) {
  for (const EarlierSteps& steps : manifest.earlier)
    eras_.push_back({steps.end, RunArithmetic(steps.arithmetic), steps.settings});
  eras_.push_back({no_end, RunArithmetic(manifest.arithmetic), manifest.settings});
}

RunHistory::RunHistory(const Manifest* from, const RunArithmetic& arithmetic,
                       const WrittenSettings& settings) {
  if (from != nullptr) {
    *this = RunHistory(*from);
    Era& last = eras_.back();
    last.end = from->progress.step;
    const std::int64_t begin = eras_.size() == 1 ? 0 : eras_[eras_.size() - 2].end;
    const bool is_same = last.arithmetic.text() == arithmetic.text() && last.settings == settings;
    if (is_same || last.end <= begin) eras_.pop_back();
  }
  eras_.push_back({no_end, arithmetic, settings});
}

const RunHistory::Era& RunHistory::of(std::int64_t step) const {
  return *std::find_if(eras_.begin(), eras_.end() - 1, [&](const Era& era) { return step < era.end; });
}

std::vector<EarlierSteps> RunHistory::earlier() const {
  std::vector<EarlierSteps> all;
  for (std::size_t i = 0; i + 1 < eras_.size(); ++i)
    all.push_back({eras_[i].end, eras_[i].arithmetic.text(), eras_[i].settings});
  return all;
}

std::string other_course(const WrittenSettings& one, const WrittenSettings& other, const std::string& of_one,
                         const std::string& of_other) {
  for (const auto& [key, value] : one) {
    if (!changes_training(key)) continue;
    if (const auto there = other.find(key); there != other.end() && there->second != value)
      return fmt::format("{} is {} {} and {} {}", key, value, of_one, there->second, of_other);
  }
  return "";
}

std::string name_of_course(const WrittenSettings& settings) {
  Sha256 digest;
  for (const auto& [key, value] : settings) {
    const std::string line = fmt::format("{}: {}\n", key, value);
    if (changes_training(key)) digest.add(line.data(), line.size());
  }
  return to_string(digest.end()).substr(0, 16);
}

std::string meaning_of_other_bits(const RunHistory& one, const RunHistory& other, std::int64_t steps,
                                  const std::string& of_one, const std::string& of_other,
                                  const LeftOutSamples& left_out_of_one,
                                  const LeftOutSamples& left_out_of_other) {
  for (std::int64_t begin = 0; begin < std::max<std::int64_t>(steps, 1);) {
    const RunHistory::Era &a = one.of(begin), &b = other.of(begin);
    const std::int64_t end = std::min({a.end, b.end, std::max<std::int64_t>(steps, 1)});
    if (const std::string differs = difference(a, b, of_one, of_other); !differs.empty())
      return begin == 0 && end >= steps ? differs
                                        : fmt::format("in steps {} to {} {}", begin + 1, end, differs);
    begin = end;
  }
  const std::string name = one.of(std::max<std::int64_t>(steps, 1) - 1).arithmetic.name();
  if (left_out_of_one != left_out_of_other)
    return fmt::format("their arithmetic is one ({}), but they went back and left out {} {} and {} {}", name,
                       text_of(left_out_of_one), of_one, text_of(left_out_of_other), of_other);
  return fmt::format(
      "their arithmetic is one ({}) and so is their course: a machine or the program is broken, unless data "
      "differs that the name does not see (docs/same-bits.md)",
      name);
}

}  // namespace mindpipe
