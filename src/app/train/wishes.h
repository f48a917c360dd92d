#pragma once
#include <span>
#include <string>

#include "app/run/run.h"
#include "app/run/run_directory.h"
#include "app/train/report_end.h"
#include "app/train/saves.h"

namespace mindpipe {

/// What ranks wish behind a step or subnet: to stop, to save by time, to be waited for while they still
/// write; and what a kind of training tells besides. Of each number the largest is heard on all ranks.
class Wishes {
 public:
  enum Stop : std::uint64_t { no_stop, by_signal_or_time, by_file };
  using Numbers = Agreement::Numbers;

  /// `directory`: of the rank that writes, else none.
  Wishes(Run& run, RunDirectory* directory, Saves& saves, const EndReport& report);

  /// Lets rank 0 stop the run in time for this many seconds since its start.
  void end_within(double seconds) { walltime_ = seconds; }
  /// Whether this rank wishes a stop after `done` steps or subnets, which comes up to `ahead` behind its
  /// wish; and why.
  Stop to_stop(std::int64_t done, std::int64_t ahead) const;
  /// Says what this rank wishes, and `own`, the numbers of its kind. Heard later.
  void ask(std::int64_t done, std::int64_t ahead, const Numbers& own);
  /// Hears all ranks. Collective. `newest`: the step or subnet behind which they wish.
  void hear(const std::string& newest);

  /// What all ranks have said, as last heard.
  Stop stop() const { return static_cast<Stop>(heard_[stops]); }
  bool is_save_due() const { return heard_[saves_by_time] > 0; }
  bool still_writes() const { return heard_[writes] > 0; }
  std::span<const std::uint64_t> own() const { return std::span(heard_).subspan(of_all_kinds); }

 private:
  enum Place : std::size_t { stops, saves_by_time, writes, of_all_kinds };

  Run& run_;
  RunDirectory* directory_;
  Saves& saves_;
  const EndReport& report_;
  double walltime_;  ///< seconds of the run in which it has to end; 0: any
  Numbers heard_;
};

}  // namespace mindpipe
