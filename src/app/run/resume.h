#pragma once
#include <optional>
#include <set>
#include <string>

#include "app/run/run.h"
#include "io/manifest.h"

namespace mindpipe {

/// A checkpoint to go on from.
struct Resumed {
  std::string directory;
  Manifest manifest;
};

/// The checkpoint that run.resume means, by the manifests alone: none where the run begins. Rank 0 looks and
/// tells. Fails where there are checkpoints of which none has a whole manifest, or where the wish and what is
/// there do not go together. Collective.
std::optional<Resumed> find_checkpoint(const World& world, const Config& config);

/// Settings that fix the logical shards which are left to the program as the run's newest checkpoint has
/// them; none where the run begins. For a sentence about a grid that is refused before the ranks have met.
std::vector<std::string> shards_of_checkpoint(const Config& config);

/// The configuration where a run that goes on has chosen its arithmetic already: what `open` leaves of it to
/// a search is the checkpoint's, and open no more.
Config with_arithmetic_of(const Resumed& from, const Config& config, std::set<std::string>& open);
/// The configuration with the arithmetic that the run's newest checkpoint has where `open` leaves it to a
/// search, for those that read what was trained.
Config as_trained(const Config& config, std::set<std::string> open);

/// The configuration with which the run goes on: logical shards that were left to the program are the
/// checkpoint's. Refuses other arithmetic; says what of the course changes.
Config continued(Config config, const Resumed& from, bool speaks);

/// Sets the run's state from the checkpoint, or where it is damaged, loudly, from the next older one that is
/// whole; fails with Exit::checkpoint_corrupt where there is none. Gives back the one taken. Collective.
Resumed load_newest(Run& run, Resumed from);

/// Steps that went wrong one after the other, up to the newest.
struct FailedSteps {
  std::int64_t first = 0;      ///< from 0: steps that were done before them
  std::int64_t rollbacks = 0;  ///< how often the run had gone back before
};

/// Sets the run's state back to the newest checkpoint of its own directory that is whole and was not saved
/// among steps that changed nothing, of those that checkpoint.every makes if there are any. Takes newer ones
/// away, which no run goes on from any more. None: there is none. One that was gone back to before these
/// steps, in vain, is marked as suspect, and the next older one taken, if there is one. Collective.
std::optional<Resumed> load_newest_good(Run& run, const FailedSteps& failed);

/// Whether a checkpoint lies in a run's directory.
bool is_in(const std::string& checkpoint, const std::string& run_directory);

/// Whether the run in this directory has come to its end: all steps done, everything written. Collective.
bool is_finished(const World& world, const Config& config, const Resumed& from);

/// All settings but those of the layout, as they stand in a file.
std::map<std::string, std::string> lasting_settings(Config config);

}  // namespace mindpipe
