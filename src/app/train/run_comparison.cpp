#include "app/train/run_comparison.h"

#include <bit>
#include <filesystem>
#include <set>

#include "app/run/resume.h"
#include "app/run/run_directory.h"
#include "config/config.h"
#include "core/log.h"
#include "core/mapped_file.h"
#include "core/sha256.h"
#include "io/checkpoint_directory.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

/// The newest checkpoint's manifest, which has all parts of the name and the course.
std::optional<Manifest> newest_manifest(const std::string& run) {
  for (const CheckpointPlace& place : checkpoints_in(run)) try {
      return read_manifest(place.path);
    } catch (const Error&) {  // an older one may be whole
    }
  return std::nullopt;
}

/// The samples that a run had left out before a step.
LeftOutSamples left_out_before(std::int64_t step, const std::string& run) {
  LeftOutSamples ranges;
  read_metrics(run, [&](const JsonMembers& line) {
    const auto behind = line.integers.find("step"), first = line.integers.find("left_out_from"),
               end = line.integers.find("left_out_to");
    if (behind == line.integers.end() || first == line.integers.end() || end == line.integers.end()) return;
    if (behind->second < step) ranges.push_back({first->second, end->second});
  });
  return ranges;
}

/// The lasting settings in a run's config.yaml; none: it cannot be read.
std::optional<WrittenSettings> settings_in(const std::string& run) {
  try {
    return lasting_settings(read_config(run + "/config.yaml", {}));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string digest_of(const std::string& path) {
  const MappedFile file(path);
  Sha256 digest;
  digest.add(file.data(), static_cast<std::size_t>(file.size()));
  return to_string(digest.end());
}

/// The digests of the weights in two runs' directories; none where they are no two files of one length.
std::optional<std::pair<std::string, std::string>> weights_of(const std::string& one,
                                                              const std::string& other) {
  const std::string first = one + "/model.safetensors", second = other + "/model.safetensors";
  std::error_code none;
  if (!fs::is_regular_file(first, none) || !fs::is_regular_file(second, none)) return std::nullopt;
  if (fs::file_size(first) != fs::file_size(second)) return std::nullopt;
  return std::pair(digest_of(first), digest_of(second));
}

}  // namespace

RunComparison::RunComparison(const std::string& other, const std::string& own, const RunHistory& history)
    : other_(other), own_(own), history_(history) {
  std::error_code none;
  MP_REQUIRE(!fs::equivalent(other, own, none), Exit::bad_configuration,
             "--compare {}: is the directory of this run (give it a run.dir of its own)", other);
  read();
  if (const std::optional<Manifest> newest = newest_manifest(other)) theirs_.emplace(*newest);
  last_settings_ = settings_in(other);
  require_same_names();
}

void RunComparison::read() {
  const bool is_there = read_metrics(other_, [&](const JsonMembers& line) {
    const auto step = line.integers.find("step");
    if (step == line.integers.end() || line.texts.count("source") > 0) return;
    for (const auto& [key, named] : {std::pair("arithmetic", &names_), {"course", &courses_}})
      if (const auto found = line.texts.find(key); found != line.texts.end())
        (*named)[step->second] = found->second;
    for (const char* key : {"loss", "gradient_norm"})
      if (const auto found = line.numbers.find(key); found != line.numbers.end())
        steps_[step->second][key] = found->second;
  });
  MP_REQUIRE(is_there, Exit::input_missing, "--compare {}: there is no {}/metrics.jsonl", other_, other_);
  MP_REQUIRE(!names_.empty(), Exit::bad_configuration,
             "--compare {}: its metrics.jsonl names no arithmetic (it was made before there were names, or "
             "its first step is missing), so nobody can say whether its bits should be equal",
             other_);
}

namespace {

/// The steps up to `last` from which on one of two runs has something else than before, of those of which
/// the other's lines say what it is.
std::set<std::int64_t> changes(const RunHistory& own, const std::map<std::int64_t, std::string>& theirs,
                               std::int64_t last) {
  std::set<std::int64_t> steps;
  for (const auto& [step, text] : theirs)
    if (step <= last) steps.insert(step);
  for (std::size_t i = 0; i + 1 < own.eras().size() && !steps.empty(); ++i)
    if (const std::int64_t step = own.eras()[i].end + 1; step > *steps.begin() && step <= last)
      steps.insert(step);
  return steps;
}

}  // namespace

/// Refuses a run of another name, by the first part that differs where one of its checkpoints says it.
void RunComparison::require_same_names() const {
  const std::int64_t last = steps_.empty() ? names_.rbegin()->first : steps_.rbegin()->first;
  for (const std::int64_t step : changes(history_, names_, last)) {
    const RunArithmetic& here = history_.of(step - 1).arithmetic;
    const std::string& name = std::prev(names_.upper_bound(step))->second;
    if (name == here.name()) continue;
    std::string differs = "no checkpoint of it is left to say which part differs";
    if (theirs_ && theirs_->of(step - 1).arithmetic.name() == name)
      differs = first_difference(here, theirs_->of(step - 1).arithmetic, "here", "there");
    fail(Exit::bad_configuration,
         "--compare {}: its arithmetic has another name ({}, here {}){}, so other bits are no wonder: {}",
         other_, name, here.name(),
         step == names_.begin()->first ? "" : fmt::format(" from step {} on", step), differs);
  }
}

/// The first setting of the course that differs in a step up to this one; empty where none is known to.
std::string RunComparison::other_course_through(std::int64_t last) const {
  for (const std::int64_t step : changes(history_, courses_, last)) {
    const WrittenSettings& here = history_.of(step - 1).settings;
    const std::string& course = std::prev(courses_.upper_bound(step))->second;
    if (course == name_of_course(here)) continue;
    std::string differs = "nothing of it is left to say which setting differs";
    for (const WrittenSettings* there :
         {theirs_ ? &theirs_->of(step - 1).settings : nullptr, last_settings_ ? &*last_settings_ : nullptr})
      if (there != nullptr && name_of_course(*there) == course) {
        differs = mindpipe::other_course(here, *there, "here", "there");
        break;
      }
    return step == courses_.begin()->first ? differs : fmt::format("from step {} on {}", step, differs);
  }
  return "";
}

std::string RunComparison::meaning(std::int64_t step) const {
  const std::string name = history_.of(step - 1).arithmetic.name();
  if (const std::string course = other_course_through(step); !course.empty())
    return fmt::format("their arithmetic is one ({}), but not their course: {}", name, course);
  const LeftOutSamples here = left_out_before(step, own_), there = left_out_before(step, other_);
  if (!courses_.empty() || theirs_)
    return meaning_of_other_bits(history_, courses_.empty() ? *theirs_ : history_, step, "here", "there",
                                 here, there);
  return "neither a checkpoint nor a line of it says whether its course was this one";
}

void RunComparison::differ(std::int64_t step, const std::string& what) const {
  fail(Exit::peer_failed, "--compare {}: {}; {}", other_, what, meaning(step));
}

void RunComparison::stands(std::int64_t step) const {
  if (!found_.empty() && found_.begin()->first <= step) differ(found_.begin()->first, found_.begin()->second);
}

void RunComparison::forget_behind(std::int64_t step) { found_.erase(found_.upper_bound(step), found_.end()); }

void RunComparison::see(std::int64_t step, const std::map<std::string, double>& numbers, bool may_go_back) {
  const auto there = steps_.find(step);
  if (there == steps_.end()) return;
  for (const auto& [key, value] : numbers) {
    const auto theirs = there->second.find(key);
    if (theirs == there->second.end()) continue;
    if (std::bit_cast<std::uint64_t>(value) != std::bit_cast<std::uint64_t>(theirs->second))
      found_.try_emplace(
          step, fmt::format("{} of step {} is {} here and {} there", key, step, value, theirs->second));
  }
  if (!may_go_back) stands(step);
  ++compared_;
}

void RunComparison::end(std::int64_t step) const {
  stands(step);
  std::string weights = "the weights were not compared (they are of another step, or no two files alike)";
  if (!steps_.empty() && steps_.rbegin()->first == step) {
    if (const auto both = weights_of(own_, other_)) {
      const std::string here = both->first.substr(0, 16), there = both->second.substr(0, 16);
      if (both->first != both->second)
        differ(step,
               fmt::format("the weights after step {} are {}... here and {}... there", step, here, there));
      weights = "so are the weights, " + here + "...";
    }
  }
  if (compared_ == 0)
    return warning("--compare {}: it has none of the steps of this start, so nothing was compared", other_);
  info("losses of {} step{} are those of {}, bit for bit; {}", compared_, compared_ == 1 ? "" : "s", other_,
       weights);
}

}  // namespace mindpipe
