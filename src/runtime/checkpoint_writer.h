#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "io/checked_writer.h"
#include "io/checkpoint_directory.h"
#include "io/hdf5_skeleton.h"
#include "io/mpi_file.h"
#include "runtime/worker.h"
#include "state/state_copy.h"

namespace mindpipe {

/// Saves a run's state, all ranks together: each brings its file_pieces of the file together, writes them,
/// and waits for the device; then rank 0 gives the checkpoint its name. Where the worker has room for a copy
/// of the state, training goes on while a thread of each rank writes it.
class CheckpointWriter {
 public:
  /// Hears, on rank 0 and perhaps on its thread, of each checkpoint that was made and read back.
  using Made = std::function<void(const Manifest& manifest)>;
  /// Makes a writer; `made` hears on rank 0 of each checkpoint that is whole. Collective.
  CheckpointWriter(Worker& worker, std::string run_directory, Made made = {});
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Begins a save between two steps, after the one under way. `manifest` says all but what the file decides.
  /// Collective.
  void begin(Manifest manifest, const std::string& configuration);
  /// Whether this rank still writes: `collect` is to be called once none does.
  bool writes() const { return phase_ == Phase::writing && !written_; }
  bool to_be_collected() const { return phase_ == Phase::writing; }
  /// What all ranks have written becomes a checkpoint. Collective.
  void collect();
  /// Waits until nothing is under way. Collective.
  void finish();

  std::int64_t bytes() const { return copy_->all_bytes(); }  ///< bytes of the whole state

  /// The checkpoint that was made last, known on rank 0. Asked for once, it is forgotten.
  struct Saved {
    std::int64_t step = 0;
    double seconds = 0;  ///< from its beginning until it had its name
  };
  std::optional<Saved> made();
  /// Why a save has come to nothing, known on rank 0; asked for once, it is forgotten.
  std::string problem();
  /// Seconds that this rank's training has stood still for saves so far.
  double stood_still() const { return stood_still_; }

 private:
  enum class Phase { idle, writing, publishing };
  struct Part {
    std::int64_t offset;
    const std::byte* words;
    std::int64_t bytes;
  };

  void make_copy();
  bool make_file();
  void copy_aside();
  void write_as_it_comes();
  void write_parts();
  void publish();
  /// Takes away what there is of the checkpoint and keeps the reason, with the room that it needs and has.
  void give_up(const std::string& problem);
  void join();
  template <class Call>
  void in_background(Call call);

  Worker& worker_;
  std::string run_directory_;
  Made hears_;
  std::optional<StateCopy> copy_;  ///< made anew for each save, since blocks may have moved
  Phase phase_ = Phase::idle;
  Manifest manifest_;
  std::string configuration_;
  std::unique_ptr<NewCheckpoint> place_;
  std::unique_ptr<CheckedWriter> writer_;
  std::vector<Part> parts_;
  std::thread thread_;
  std::atomic<bool> written_ = false;
  std::mutex mutex_;  ///< guards what follows, which rank 0's thread leaves
  std::string problem_;
  std::optional<Saved> made_;
  std::int64_t began_ns_ = 0;
  double stood_still_ = 0;
};

}  // namespace mindpipe
