#include "app/train/run_comparison.h"

#include <bit>
#include <filesystem>

#include "app/run/resume.h"
#include "app/run/run_directory.h"
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

/// What a run's directory says of its settings; none: it cannot be read.
std::optional<Config> settings_in(const std::string& run) {
  try {
    return read_config(run + "/config.yaml", {});
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Refuses a run that began elsewhere: weights to begin with are no part of the name.
void require_same_beginning(const std::string& run, const Config& there, const Config& here) {
  const auto beginning = [](const Config& config) {
    const std::string weights =
        config.run.weights.empty() ? "weights drawn from its seed" : "the weights " + config.run.weights;
    return config.run.new_head ? weights + " and a new head" : weights;
  };
  MP_REQUIRE(beginning(there) == beginning(here), Exit::bad_configuration,
             "--compare {}: it began with {}, and this run begins with {}, so other bits are no wonder", run,
             beginning(there), beginning(here));
}

/// Refuses a run of another name, by the first part that differs where one of its checkpoints says it.
void require_same_name(const std::string& run, const std::string& name, const RunArithmetic& here,
                       const std::optional<Manifest>& manifest) {
  MP_REQUIRE(!name.empty(), Exit::bad_configuration,
             "--compare {}: its metrics.jsonl names no arithmetic (it was made before there were names, or "
             "its first step is missing), so nobody can say whether its bits should be equal",
             run);
  if (name == here.name()) return;
  std::string differs;
  if (manifest) differs = first_difference(here, RunArithmetic(manifest->arithmetic), "there");
  fail(Exit::bad_configuration,
       "--compare {}: its arithmetic has another name ({}, here {}), so other bits are no wonder: {}", run,
       name, here.name(),
       differs.empty() ? "no checkpoint of it is left to say which part differs" : differs);
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
  if (!fs::is_regular_file(first) || !fs::is_regular_file(second)) return std::nullopt;
  if (fs::file_size(first) != fs::file_size(second)) return std::nullopt;
  return std::pair(digest_of(first), digest_of(second));
}

}  // namespace

RunComparison::RunComparison(const std::string& other, const std::string& own,
                             const RunArithmetic& arithmetic, const Config& config)
    : other_(other), own_(own) {
  std::error_code none;
  MP_REQUIRE(!fs::equivalent(other, own, none), Exit::bad_configuration,
             "--compare {}: is the directory of this run (give it a run.dir of its own)", other);
  std::string name;
  const bool is_there = read_metrics(other, [&](const JsonMembers& line) {
    if (const auto found = line.texts.find("arithmetic"); name.empty() && found != line.texts.end())
      name = found->second;
    const auto step = line.integers.find("step");
    if (step == line.integers.end() || line.texts.count("source") > 0) return;
    for (const char* key : {"loss", "gradient_norm"})
      if (const auto found = line.numbers.find(key); found != line.numbers.end())
        steps_[step->second][key] = found->second;
  });
  MP_REQUIRE(is_there, Exit::input_missing, "--compare {}: there is no {}/metrics.jsonl", other, other);
  const std::optional<Manifest> manifest = newest_manifest(other);
  require_same_name(other, name, arithmetic, manifest);
  const std::optional<Config> theirs = settings_in(other);
  if (theirs) require_same_beginning(other, *theirs, config);
  if (!manifest && !theirs) {
    meaning_ = "neither a checkpoint nor a config.yaml of it says whether its course was this one";
    return;
  }
  const auto course = manifest ? manifest->settings : lasting_settings(*theirs);
  meaning_ = meaning_of_other_bits(arithmetic, arithmetic,
                                   other_course(lasting_settings(config), course, "here", "there"));
}

void RunComparison::differ(const std::string& what) const {
  fail(Exit::peer_failed, "--compare {}: {}; {}", other_, what, meaning_);
}

void RunComparison::see(std::int64_t step, const std::map<std::string, double>& numbers) {
  const auto there = steps_.find(step);
  if (there == steps_.end()) return;
  for (const auto& [key, value] : numbers) {
    const auto theirs = there->second.find(key);
    if (theirs == there->second.end()) continue;
    if (std::bit_cast<std::uint64_t>(value) != std::bit_cast<std::uint64_t>(theirs->second))
      differ(fmt::format("{} of step {} is {} here and {} there", key, step, value, theirs->second));
  }
  ++compared_;
}

void RunComparison::end(std::int64_t step) const {
  std::string weights = "the weights were not compared (they are in several files, or of another step)";
  if (!steps_.empty() && steps_.rbegin()->first == step) {
    if (const auto both = weights_of(own_, other_)) {
      const std::string here = both->first.substr(0, 16), there = both->second.substr(0, 16);
      if (both->first != both->second)
        differ(fmt::format("the weights after step {} are {}... here and {}... there", step, here, there));
      weights = "so are the weights, " + here + "...";
    }
  }
  if (compared_ == 0)
    return warning("--compare {}: it has none of the steps of this start, so nothing was compared", other_);
  info("losses of {} step{} are those of {}, bit for bit; {}", compared_, compared_ == 1 ? "" : "s", other_,
       weights);
}

}  // namespace mindpipe
