#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/manifest.h"

// Where a run's checkpoints lie: RUN/checkpoints/step-00001000/{state.h5,manifest.json,config.yaml}, and a
// link RUN/checkpoints/latest. Only whole checkpoints have such names; what is being made, or taken away, is
// hidden.
namespace mindpipe {

std::string checkpoints_of(const std::string& run_directory);
/// "step-00001000"
std::string checkpoint_name(std::int64_t step);

/// A directory with a checkpoint's name.
struct CheckpointPlace {
  std::int64_t step = 0;
  std::string path;
};
/// The newest first.
std::vector<CheckpointPlace> checkpoints_in(const std::string& run_directory);

/// Lets `latest` name a checkpoint of its directory where it names another or is not there: a save may have
/// been cut short just before. For who holds the run directory.
void mend_latest(const std::string& checkpoint);
/// Writes into a checkpoint that its weights may be wrong, and why: nobody goes on from it by itself. Where
/// that cannot be written the checkpoint is taken away.
void mark_suspect(const std::string& checkpoint, const std::string& why);
/// Why a checkpoint was marked so; empty: it was not.
std::string suspicion_of(const std::string& checkpoint);
/// Removes what saves that were cut short have left. For who holds the run directory.
void remove_unfinished_checkpoints(const std::string& run_directory);
/// Takes a checkpoint away: first its name, then its bytes.
void remove_checkpoint(const std::string& path);

/// The state of a checkpoint's file, opened for reading, or a sentence why it is not what the manifest says:
/// a link, another size.
class CheckpointFile {
 public:
  /// Fails with Exit::checkpoint_corrupt.
  CheckpointFile(const std::string& directory, std::int64_t bytes);
  const std::string& path() const { return path_; }
  /// Reads bytes of the file, all of them.
  void read(std::int64_t offset, void* to, std::int64_t count) const;
  /// Whether the CRC of a block holds.
  bool block_holds(const Manifest& manifest, std::int64_t block) const;

 private:
  std::string path_;
  File file_;
};

/// A checkpoint on its way, under a hidden name.
class NewCheckpoint {
 public:
  /// Names where the checkpoint of a step is made; makes nothing.
  NewCheckpoint(const std::string& run_directory, std::int64_t step);
  const std::string& path() const { return path_; }
  std::string file() const { return path_ + "/" + Manifest::file_name; }
  const std::string& final_path() const { return final_path_; }

  /// Makes the directory, empty.
  void create() const;
  /// Makes the file, unless it is there, and reserves `bytes` on the disk; the file's size stays.
  void reserve(std::int64_t bytes) const;
  /// Bytes that the file system has for the checkpoint; none: nobody knows.
  std::optional<std::int64_t> free_bytes() const;
  /// Writes manifest and configuration, gives the checkpoint its name for good, and lets `latest` point to
  /// it: each only once the device has what was before.
  void publish(const Manifest& manifest, const std::string& configuration) const;
  void discard() const noexcept;

 private:
  std::string run_directory_, path_, final_path_;
};

}  // namespace mindpipe
