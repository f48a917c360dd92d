#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mindpipe {

/// A whole tensor in a checkpoint's file, in f32.
struct CheckpointTensor {
  std::string path;  ///< "/model/layers.0.mlp.up.weight"
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0, bytes = 0;
};

/// Parameters that travel together, with their counters.
struct CheckpointUnit {
  std::string name;
  std::int64_t version = 0, uses = 0;
  std::int64_t applied = 0;  ///< supernet: updates that changed the unit
  bool operator==(const CheckpointUnit&) const = default;
};

/// Samples [first, end) of the order of a run's data.
struct SampleRange {
  std::int64_t first = 0, end = 0;
  bool operator==(const SampleRange&) const = default;
};

/// How far a run has come.
struct RunProgress {
  std::int64_t step = 0;             ///< steps done
  std::int64_t applied = 0;          ///< steps that changed the weights
  std::int64_t samples = 0;          ///< consumed
  std::int64_t planned_samples = 0;  ///< samples that the order of the data was made for
  std::int64_t tokens = 0;
  std::optional<double> best_loss;  ///< best loss of all evaluations
  std::int64_t best_step = 0;
  std::vector<SampleRange> left_out = {};    ///< samples that no step sees; ascending, and apart
  std::int64_t rollbacks = 0;                ///< how often the run has gone back
  std::int64_t skipped_in_a_row = 0;         ///< newest steps that were not finite
  std::vector<double> accepted_losses = {};  ///< newest losses that a later one is compared with

  static constexpr std::size_t most_losses = 64;

  /// The first sample that a step (from 0) sees, or a subnet of that number, of batches of this size: the one
  /// place that says which samples a step sees.
  std::int64_t first_sample(std::int64_t step, std::int64_t batch) const;
  /// Leaves samples out from now on, which begin behind all that were trained on so far.
  void leave_out(SampleRange range);
};

/// Steps of a run up to `end` whose arithmetic or settings were others than those of the steps behind them.
struct EarlierSteps {
  std::int64_t end = 0;
  std::string arithmetic;
  std::map<std::string, std::string> settings;
  bool operator==(const EarlierSteps&) const = default;
};

/// What stands beside a checkpoint's file: all that loading it takes, and what the file must be.
struct Manifest {
  static constexpr std::int64_t block = std::int64_t{16} << 20;  ///< bytes that have one CRC
  static constexpr const char* file_name = "state.h5";
  static constexpr const char* name = "manifest.json";

  RunProgress progress;
  std::int64_t restarts = 0;
  std::int64_t longest_save_ms = 0;             ///< longest save of the run so far, this one among them
  std::string created_by, arithmetic;           ///< the program; the parts of its arithmetic, a line each
  std::map<std::string, std::string> settings;  ///< all but those of the layout, as they stand in a file
  std::vector<EarlierSteps> earlier;            ///< the oldest first; none where nothing has changed
  std::map<std::string, std::int64_t> grid;     ///< at the time of saving
  std::int64_t file_bytes = 0;
  std::vector<std::uint32_t> crcs;  ///< checksum of each block of the file
  std::vector<CheckpointTensor> tensors;
  std::vector<CheckpointUnit> units;
  std::string choices;  ///< supernet: hash_of_choices of the subnets that were trained
};

/// The manifest as the text of its file, which ends in a CRC of all before it.
std::string text_of(const Manifest& manifest);
/// Reads that text; `path` is for sentences. Fails with Exit::checkpoint_corrupt where anything about it is
/// not as it was written, or as it could not have been: tensors beyond the file or over each other, sizes
/// that do not follow from shapes.
Manifest parse_manifest(const std::string& text, const std::string& path);
/// Reads the manifest of the checkpoint in this directory.
Manifest read_manifest(const std::string& directory);

}  // namespace mindpipe
