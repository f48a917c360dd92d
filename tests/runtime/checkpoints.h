#pragma once
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "comm/text_of_rank_0.h"
#include "config/settings.h"
#include "io/checkpoint_directory.h"
#include "runtime/checkpoint_reader.h"
#include "runtime/checkpoint_writer.h"
#include "runtime/parity_cases.h"
#include "runtime/ranks.h"

// Runs that are saved and loaded, for tests of checkpoints.
namespace mindpipe {

/// The first so many ranks of the job, as a job of their own.
class FirstRanks {
 public:
  explicit FirstRanks(int count) {
    const World all = all_ranks();
    MPI_Comm_split(all.comm, all.rank < count ? 0 : MPI_UNDEFINED, all.rank, &comm_);
    takes_part_ = comm_ != MPI_COMM_NULL;
    if (takes_part_ && count > 1) world_ = {comm_, all.rank, count};
  }
  ~FirstRanks() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }
  FirstRanks(const FirstRanks&) = delete;
  FirstRanks& operator=(const FirstRanks&) = delete;
  bool takes_part() const { return takes_part_; }
  const World& world() const { return world_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  bool takes_part_ = false;
  World world_;
};

/// A folder of all ranks, empty at first and gone afterwards: in `parent` where there is such a directory.
class SharedFolder {
 public:
  explicit SharedFolder(const std::string& parent = {}) {
    std::string made;
    if (all_ranks().rank == 0) {
      const bool there = !parent.empty() && std::filesystem::is_directory(parent);
      made = (there ? parent : std::filesystem::temp_directory_path().string()) + "/mindpipe-saves-XXXXXX";
      if (::mkdtemp(made.data()) == nullptr) made.clear();
    }
    path_ = text_of_rank_0(all_ranks(), made);
    MP_CHECK(!path_.empty(), "no temporary folder");
  }
  ~SharedFolder() {
    MPI_Barrier(MPI_COMM_WORLD);
    if (all_ranks().rank == 0) std::filesystem::remove_all(path_);
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  /// A run directory in it.
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::unique_ptr<Worker> worker_of(const Config& config, const World& world) {
  auto worker = std::make_unique<Worker>(config, world);
  share_processors(*worker);
  return worker;
}

/// Some steps of a worker from step `first` on; their losses and norms go to `outcome`.
inline void train_steps(Worker& worker, int first, int count, Outcome& outcome) {
  BatchFeed feed(worker.config(), worker.layout());
  const auto keep = [&](const std::optional<StepScalars>& known) {
    if (!known) return;
    outcome.losses.push_back(known->loss);
    outcome.norms.push_back(known->gradient_norm);
  };
  for (int step = first; step < first + count; ++step) keep(worker.run(feed.at(step)));
  keep(worker.steps().remaining());
}

/// What the program says of a run after so many steps.
inline Manifest manifest_after(const Worker& worker, int steps) {
  Config config = worker.config();
  Manifest manifest;
  RunProgress& progress = manifest.progress;
  progress.step = steps;
  progress.samples = std::int64_t{steps} * config.train.batch;
  progress.planned_samples = 2 * progress.samples;
  progress.tokens = progress.samples * rows_of(config);
  progress.best_loss = 2.5;
  manifest.created_by = "a test";
  manifest.arithmetic = "of this machine";
  for (const Setting& setting : settings_of(config))
    if (setting.role() != Setting::Role::layout) manifest.settings[setting.key()] = setting.written();
  for (const Axis axis : axes) manifest.grid[name_of(axis)] = worker.layout().grid[axis];
  return manifest;
}

/// The directory of a checkpoint.
inline std::string checkpoint_of(const std::string& run_directory, int steps) {
  return checkpoints_of(run_directory) + "/" + checkpoint_name(steps);
}

/// Saves a run; `meanwhile` is done while it is written, where the run has room for a copy. Collective.
inline void save(Worker& worker, const std::string& run_directory, int steps,
                 const std::function<void()>& meanwhile = {}) {
  CheckpointWriter writer(worker, run_directory);
  writer.begin(manifest_after(worker, steps), "seed: 1\n");
  if (meanwhile) meanwhile();
  writer.finish();
  EXPECT_EQ(writer.problem(), "");
  if (worker.world().rank == 0) {
    EXPECT_EQ(writer.made().value_or(CheckpointWriter::Saved{-1}).step, steps);
  }
}

/// Loads a checkpoint as the program does. Collective.
inline void load(Worker& worker, const std::string& directory) {
  const Manifest manifest = read_manifest(directory);
  require_same_tensors(worker, manifest, directory);
  EXPECT_EQ(load_checkpoint(worker, manifest, directory), "");
}

}  // namespace mindpipe
