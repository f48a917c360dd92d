#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "app/run/json_line.h"
#include "app/run/json_read.h"
#include "io/file.h"

namespace mindpipe {

struct Config;

/// What status.json says: the authority on how a run stands, for scripts.
/// Why a run is told to have stopped that was ended at once, and has not saved its weights.
inline constexpr std::string_view ended_by_signal = "a signal ended the run at once",
                                  ended_by_launcher =
                                      "the launcher ended the run (SIGTERM): a rank was lost, or the job was "
                                      "asked to end; its output says which";

struct Status {
  std::string state = "running";  ///< running | done | stopped | failed
  std::int64_t step = 0;
  std::string reason;
  std::string checkpoint;  ///< the last good one, below the run directory
};

/// The name of the file that holds the order of passes which a run has searched.
inline constexpr const char* passes_file = "passes.txt";

/// Tells of each line of a run's metrics.jsonl that is whole; says whether there is such a file.
bool read_metrics(const std::string& run_directory, const std::function<void(const JsonMembers&)>& hear);

/// What becomes of lines that say which samples were left out behind the step that a run goes on from: a
/// start goes through that again, a run that goes back has been there.
enum class LeftOut { is_said_again, stays };

/// The directory that holds everything a run writes: config.yaml, status.json, metrics.jsonl, checkpoints.
/// Made by rank 0 only, and locked: a second job that wants the same directory is refused. A lock whose
/// process is dead is taken over.
class RunDirectory {
 public:
  /// `emulated`: the run computes nothing, which its status says.
  explicit RunDirectory(const std::string& directory, bool emulated = false);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  void write_config(const Config& config);
  /// The order of passes that was searched, for later starts.
  void write_passes(const std::string& text);
  /// Replaces status.json in one move: a reader sees the old one or the new one. That it runs, which comes
  /// with every step, waits for no device. When the job fails later, the failure's sentence takes the
  /// reason's place and the rest stays.
  void write_status(const Status& given);
  /// Adds one line to metrics.jsonl.
  void append_metrics(const JsonLine& line);
  /// Drops the lines of metrics.jsonl behind this step, so that a resumed run's file is the uninterrupted
  /// run's, and warns of steps behind the first line that have none. `has_lines`: steps were taken in this
  /// directory.
  void keep_metrics_through(std::int64_t step, bool has_lines, LeftOut left_out = LeftOut::is_said_again);
  /// Waits until the device has all lines of metrics.jsonl: a checkpoint's steps have theirs, whatever comes.
  void flush_metrics();
  /// The last good checkpoint, below the directory: what every status that names none says from now on.
  void note_checkpoint(const std::string& checkpoint) { checkpoint_ = checkpoint; }
  /// Whether someone has put a file named STOP into the directory.
  bool stop_asked() const;
  /// Takes the file away, so that the next start does not stop at once.
  void forget_stop();

 private:
  void replace(const std::string& name, const std::string& text) const;

  std::string path_;
  bool emulated_;
  std::optional<Status> status_;  ///< none yet: what an earlier run has said stays
  std::string checkpoint_;
  bool says_running_ = false;
  File metrics_;
};

/// The status on a rank that does not hold the directory: when it is the one to say why the job fails, as the
/// holder is stopped or gone, that a run has failed stands in status.json too.
class PeerStatus {
 public:
  PeerStatus(const std::string& directory, bool emulated);
  ~PeerStatus();
  PeerStatus(const PeerStatus&) = delete;
  PeerStatus& operator=(const PeerStatus&) = delete;
};

}  // namespace mindpipe
