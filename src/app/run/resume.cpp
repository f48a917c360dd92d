#include "app/run/resume.h"

#include <filesystem>
#include <limits>
#include <utility>

#include "app/run/agreement.h"
#include "app/run/json_read.h"
#include "app/run/run_inputs.h"
#include "app/run/version.h"
#include "app/run/whole_checkpoint.h"
#include "comm/text_of_rank_0.h"
#include "config/config.h"
#include "config/open_settings.h"
#include "config/settings.h"
#include "core/input_file.h"
#include "core/log.h"
#include "core/text.h"
#include "io/checkpoint_directory.h"
#include "runtime/checkpoint_reader.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;

/// The manifest of the checkpoint at `place`, or nothing and a warning.
std::optional<Resumed> readable(const CheckpointPlace& place) {
  try {
    Resumed found{place.path, read_manifest(place.path)};
    MP_REQUIRE(found.manifest.progress.step == place.step, Exit::checkpoint_corrupt,
               "{}: its manifest is that of step {} (it stands in another's place)", place.path,
               found.manifest.progress.step);
    const std::string suspicion = suspicion_of(place.path);
    MP_REQUIRE(suspicion.empty(), Exit::checkpoint_corrupt, "{}: {}", place.path, suspicion);
    return found;
  } catch (const Error& error) {
    MP_REQUIRE(error.code == Exit::checkpoint_corrupt, error.code, "{}", error.what());
    warning("{}; it is passed over", error.what());
    return std::nullopt;
  }
}

/// Lets the link `latest` name a checkpoint, which nothing here depends on.
void name_latest(const std::string& checkpoint) {
  try {
    mend_latest(checkpoint);
  } catch (const Error& error) {
    warning("{}; {} is the newest", error.what(), checkpoint);
  }
}

std::optional<Resumed> newest_readable(const std::vector<CheckpointPlace>& places, std::int64_t below) {
  for (const CheckpointPlace& place : places)
    if (place.step < below)
      if (std::optional<Resumed> found = readable(place)) return found;
  return std::nullopt;
}

[[noreturn]] void none_is_whole(const std::string& run_directory) {
  fail(Exit::checkpoint_corrupt,
       "{}: no checkpoint is whole (see the warnings above; to begin anew choose another run.dir, or move "
       "them away and say run.resume=never)",
       checkpoints_of(run_directory));
}

/// What the status of a run says in its texts, such as "state".
std::map<std::string, std::string> status_texts(const std::string& run_directory) {
  const auto text = read_text_if_there(run_directory + "/status.json", largest_status);
  const auto members = read_json(text.value_or(""));
  return members ? members->texts : std::map<std::string, std::string>();
}

/// Refuses to begin a run anew that has saved something: its files may be on a disk that is not there today.
void require_none_lost(const std::string& run_directory) {
  const std::string saved = status_texts(run_directory)["checkpoint"];
  MP_REQUIRE(saved.empty(), Exit::input_missing,
             "{}/status.json names {}, and there is no checkpoint (bring it back; to begin anew, over what "
             "the run has written, say run.resume=never)",
             run_directory, saved);
}

std::optional<Resumed> automatic(const std::string& run_directory) {
  const std::vector<CheckpointPlace> places = checkpoints_in(run_directory);
  std::optional<Resumed> found = newest_readable(places, std::numeric_limits<std::int64_t>::max());
  if (!found && !places.empty()) none_is_whole(run_directory);
  if (!found) require_none_lost(run_directory);
  if (found) name_latest(found->directory);
  return found;
}

/// A checkpoint that was named must not leave newer ones behind, which the next start would take for the
/// run's.
std::optional<Resumed> named(const std::string& path, const std::string& run_directory) {
  std::error_code problem;
  const fs::path whole = fs::canonical(path, problem);
  MP_REQUIRE(!problem, Exit::input_missing, "run.resume is {}: {} (auto, never, or a checkpoint's directory)",
             path, problem.message());
  const bool is_one = fs::exists(whole / Manifest::name, problem),
             is_run = !is_one && !checkpoints_in(whole).empty();
  MP_REQUIRE(!is_run, Exit::bad_configuration,
             "run.resume is {}, a run's directory (name one of its checkpoints, {} for instance)", path,
             (whole / "checkpoints" / "latest").string());
  MP_REQUIRE(is_one, Exit::input_missing,
             "run.resume is {}, which has no {} (auto, never, or a checkpoint's directory)", path,
             Manifest::name);
  Resumed found{whole, read_manifest(whole)};
  warn_of_suspicion(whole);
  const std::vector<CheckpointPlace> places = checkpoints_in(run_directory);
  const bool own = is_in(whole, run_directory);
  MP_REQUIRE(places.empty() || (own && places.front().step == found.manifest.progress.step),
             Exit::bad_configuration,
             "run.resume is {}, but {} has {} (let run.resume be auto to go on from there, choose another "
             "run.dir, or move newer ones away)",
             path, checkpoints_of(run_directory), fs::path(places.front().path).filename().string());
  return found;
}

std::optional<Resumed> chosen(const Config& config) {
  const std::string &wish = config.run.resume, &directory = config.run.dir;
  if (wish == "auto") return automatic(directory);
  if (wish != "never") return named(wish, directory);
  const std::vector<CheckpointPlace> places = checkpoints_in(directory);
  MP_REQUIRE(places.empty(), Exit::bad_configuration,
             "run.resume is never, but {} is there (auto goes on from it; to begin anew choose another "
             "run.dir, or move the checkpoints away)",
             places.front().path);
  return std::nullopt;
}

/// What rank 0 has found, on all ranks.
std::optional<Resumed> told(const World& world, const std::optional<Resumed>& found) {
  const std::string text =
      text_of_rank_0(world, found ? found->directory + "\n" + text_of(found->manifest) : std::string());
  if (text.empty()) return std::nullopt;
  const std::size_t end = text.find('\n');
  const std::string directory = text.substr(0, end);
  return Resumed{directory, parse_manifest(text.substr(end + 1), directory + "/" + Manifest::name)};
}

/// The logical shards of an axis that a checkpoint was made with; 0: it says nothing of them.
int shards_in(const Resumed& from, const char* key) {
  const auto stored = from.manifest.settings.find(key);
  if (stored == from.manifest.settings.end()) return 0;
  const bool short_enough = is_plain_integer(stored->second) && stored->second.size() <= 7;
  const int number = short_enough ? std::stoi(stored->second) : 0;
  MP_REQUIRE(number > 0 && number <= (1 << 20), Exit::checkpoint_corrupt, "{}: its {} is {}", from.directory,
             key, stored->second);
  return number;
}

void take_shards(int& shards, bool& follows, const Resumed& from, const char* key) {
  const int stored = follows ? shards_in(from, key) : 0;
  if (stored == 0) return;
  shards = stored;
  follows = false;
}

}  // namespace

std::map<std::string, std::string> lasting_settings(Config config) {
  std::map<std::string, std::string> settings;
  for (const Setting& setting : settings_of(config))
    if (setting.role() != Setting::Role::layout) settings[setting.key()] = setting.written();
  return settings;
}

std::optional<Resumed> find_checkpoint(const World& world, const Config& config) {
  if (!row_of(config.device.kind).computes) {
    MP_REQUIRE(
        checkpoints_in(config.run.dir).empty(), Exit::bad_configuration,
        "{} exists, but device.kind {} computes nothing and cannot go on from it; choose another run.dir",
        checkpoints_of(config.run.dir), config.device.kind);
    return std::nullopt;
  }
  return told(world, world.rank == 0 ? chosen(config) : std::nullopt);
}

namespace {

/// The checkpoint that run.resume means, newest first, whose manifest can be read: a start says what is wrong
/// with others.
std::optional<Resumed> newest_named(const Config& config) {
  const std::string& wish = config.run.resume;
  std::vector<std::string> places;
  if (wish == "auto")
    for (const CheckpointPlace& place : checkpoints_in(config.run.dir)) places.push_back(place.path);
  else if (wish != "never") places.push_back(wish);
  for (const std::string& place : places) {
    try {
      return Resumed{place, read_manifest(place)};
    } catch (const Error&) {
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> shards_of_checkpoint(const Config& config) {
  const ReproducibleConfig& shards = config.reproducible;
  std::vector<std::string> settings;
  try {
    if (const std::optional<Resumed> newest = newest_named(config))
      for (const auto& [key, follows] : {std::pair{"reproducible.tensor", shards.tensor_follows},
                                         {"reproducible.data", shards.data_follows}})
        if (const int stored = follows ? shards_in(*newest, key) : 0; stored > 0)
          settings.push_back(fmt::format("{}={}", key, stored));
  } catch (const Error&) {  // the start says what is wrong with it
  }
  return settings;
}

Config with_arithmetic_of(const Resumed& from, const Config& config, std::set<std::string>& open) {
  std::vector<std::string> settings;
  for (const auto& [left_open, chosen] :
       {std::pair{"train.micro_batch", "train.micro_batch"}, {"plan.batches", "train.batch"}}) {
    const auto stored = from.manifest.settings.find(chosen);
    if (stored == from.manifest.settings.end() || open.erase(left_open) == 0) continue;
    settings.push_back(fmt::format("{}={}", chosen, stored->second));
  }
  return settings.empty() ? config : with_settings(config, settings);
}

Config as_trained(const Config& config, std::set<std::string> open) {
  if (open.empty()) return config;
  const std::optional<Resumed> newest = newest_named(config);
  return newest ? with_arithmetic_of(*newest, config, open) : config;
}

Config continued(Config config, const Resumed& from, bool speaks) {
  ReproducibleConfig& shards = config.reproducible;
  take_shards(shards.tensor, shards.tensor_follows, from, "reproducible.tensor");
  take_shards(shards.data, shards.data_follows, from, "reproducible.data");
  const RunArithmetic arithmetic(from.manifest.arithmetic);
  std::string refused;
  for (const Setting& setting : settings_of(config)) {
    if (setting.role() == Setting::Role::layout) continue;
    const auto stored = from.manifest.settings.find(setting.key());
    const bool is_there = stored != from.manifest.settings.end();
    // Runs from before there were tokenizers say nothing of one, and had none.
    if (!is_there && setting.key() == "data.tokenizer_hash" && config.data.tokenizer_hash.empty()) continue;
    const std::string before = is_there ? stored->second : "not set";
    if (before == setting.written()) continue;
    // A file may have moved: what stands in it is compared later.
    if (counts_by_contents(setting.key()) && arithmetic.has(part_of_contents + setting.key()) &&
        !kind_named<SamplerKind>(setting.written()) && !kind_named<SamplerKind>(before))
      continue;
    if (setting.role() == Setting::Role::arithmetic)
      refused += fmt::format("{}{} is {} (there {})", refused.empty() ? "" : ", ", setting.key(),
                             setting.written(), before);
    else if (speaks) info("from here on {} is {} (before {})", setting.key(), setting.written(), before);
  }
  MP_REQUIRE(refused.empty(), Exit::bad_configuration,
             "{}: a checkpoint of a run with other arithmetic: {} (take its settings, or choose another "
             "run.dir)",
             from.directory, refused);
  return config;
}

namespace {

/// Inputs of the arithmetic that a run must not change as it goes on, unlike the machine and the program. The
/// choices that a sampler's file has are compared by themselves: it may go on.
bool must_stay(const std::string& part) {
  return part.starts_with(part_of_contents) && part != fmt::format("{}supernet.sampler", part_of_contents);
}
bool must_stay_on_a_gpu(const std::string& part) {
  return part.starts_with("device.") || part == fmt::format("{}device.kernels", part_of_contents);
}

/// Refuses a checkpoint whose inputs were others; warns where anything else of the arithmetic was.
void compare_arithmetic(const RunArithmetic& here, const Resumed& from) {
  const RunArithmetic there(from.manifest.arithmetic);
  const auto difference = [&](const RunArithmetic::Counts& counts) {
    return first_difference(here, there, "here", "in the checkpoint", counts);
  };
  const std::string refused = difference([&](const std::string& part) {
    return there.has(part) && (must_stay_on_a_gpu(part) ? here.has(part) : must_stay(part));
  });
  MP_REQUIRE(refused.empty(), Exit::bad_configuration,
             "{}: a checkpoint of a run with other arithmetic: {} (take its settings and files, or choose "
             "another run.dir)",
             from.directory, refused);
  if (const std::string differs = difference({}); !differs.empty())
    warning("{}: bits may differ from here on", differs);
  if (from.manifest.created_by != version() && !there.has_name())
    warning("the checkpoint was made by {} (here {}): bits may differ from here on", from.manifest.created_by,
            version());
}

/// `falls_back`: whether an older checkpoint may take a damaged one's place.
Resumed load(Run& run, Resumed from, bool falls_back) {
  const std::string run_directory = fs::path(from.directory).parent_path().parent_path();
  for (;;) {
    require_same_tensors(run.worker(), from.manifest, from.directory);
    const std::string damage = load_checkpoint(run.worker(), from.manifest, from.directory);
    if (damage.empty()) break;
    MP_REQUIRE(falls_back, Exit::checkpoint_corrupt, "{} (run.resume named it)", damage);
    std::optional<Resumed> older;
    if (run.is_rank_0()) {
      warning("{}; the next older checkpoint is taken", damage);
      older = newest_readable(checkpoints_in(run_directory), from.manifest.progress.step);
      if (!older) none_is_whole(run_directory);
      name_latest(older->directory);
    }
    from = *told(run.world(), older);
    continued(run.config(), from, false);
  }
  compare_arithmetic(run.arithmetic(), from);
  return from;
}

}  // namespace

Resumed load_newest(Run& run, Resumed from) {
  const bool falls_back = run.config().run.resume == "auto";
  return load(run, std::move(from), falls_back);
}

namespace {

/// The newest checkpoint before a step that was not saved among steps that changed nothing. `every`: the one
/// of every so many steps before it, as long as that is there, since a run that stops elsewhere is to go back
/// to where one that never stopped does.
std::optional<Resumed> newest_good(const std::string& run_directory, std::int64_t below, std::int64_t every) {
  std::optional<Resumed> any;
  for (;;) {
    std::optional<Resumed> next = newest_readable(checkpoints_in(run_directory), below);
    if (!next) return any;
    below = next->manifest.progress.step;
    if (next->manifest.progress.skipped_in_a_row > 0) continue;
    if (any && any->manifest.progress.step - below >= every) return any;
    if (every == 0 || below % every == 0) return next;
    if (!any) any = std::move(next);
  }
}

/// The checkpoint to go back to. One that the run has gone back to before, and whose very next steps failed
/// again, may be wrong itself: an older one takes its place where there is one, and nobody goes on from it.
std::optional<Resumed> checkpoint_of_before(const std::string& run_directory, const FailedSteps& failed,
                                            std::int64_t every) {
  const std::optional<Resumed> newest =
      newest_good(run_directory, std::numeric_limits<std::int64_t>::max(), every);
  if (!newest || newest->manifest.progress.step != failed.first ||
      newest->manifest.progress.rollbacks >= failed.rollbacks)
    return newest;
  std::optional<Resumed> older = newest_good(run_directory, failed.first, every);
  if (!older) return newest;
  const std::string why = "it is suspect: the run went back to it, and failed again at once";
  warning("{}: {}", newest->directory, why);
  mark_suspect(newest->directory, why);
  return older;
}

}  // namespace

std::optional<Resumed> load_newest_good(Run& run, const FailedSteps& failed) {
  const std::string& directory = run.config().run.dir;
  std::optional<Resumed> newest;
  if (run.is_rank_0()) newest = checkpoint_of_before(directory, failed, run.config().checkpoint.every);
  newest = told(run.world(), newest);
  if (!newest) return std::nullopt;
  newest = load(run, std::move(*newest), true);
  if (!run.is_rank_0()) return newest;
  for (const CheckpointPlace& place : checkpoints_in(directory))
    if (place.step > newest->manifest.progress.step && suspicion_of(place.path).empty())
      remove_checkpoint(place.path);
  name_latest(newest->directory);
  return newest;
}

bool is_in(const std::string& checkpoint, const std::string& run_directory) {
  std::error_code none;
  const fs::path folder = fs::path(checkpoint).parent_path();
  return fs::equivalent(folder, checkpoints_of(run_directory), none) && !none;
}

bool is_finished(const World& world, const Config& config, const Resumed& from) {
  // Rank 0 alone looks, whose answer counts.
  bool done = world.rank == 0 && status_texts(config.run.dir)["state"] == "done";
  try {
    if (done) CheckpointFile(from.directory, from.manifest.file_bytes);
  } catch (const Error&) {  // a start finds what is wrong, and goes on from an older one
    done = false;
  }
  return text_of_rank_0(world, done ? "done" : "") == "done" &&
         from.manifest.progress.step >= config.train.steps;
}

}  // namespace mindpipe
