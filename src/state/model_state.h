#pragma once
#include <functional>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/sha256.h"
#include "io/manifest.h"
#include "state/residency.h"
#include "state/shard_map.h"
#include "state/staging_buffer.h"

namespace mindpipe {

/// Whether a state is one of the optimizer's, which running statistics do not have.
inline bool is_moment(std::string_view state) {
  return state != "value" && state != "master" && state != older_state;
}

/// Everything that a training run carries from one step to the next, as whole tensors: the states of all
/// units, whichever ranks have them, and the count of applied steps. To be used between two steps.
class ModelState {
 public:
  /// `scratch` is empty between two steps; state passes through `staging_bytes` of it at a time.
  ModelState(std::uint64_t seed, Stage& stage, Residency& residency, Groups groups, Arena& scratch,
             std::size_t staging_bytes);

  /// Sets weights from the configuration's seed, moments to zero. Every rank draws its own elements.
  void initialize(int threads);

  /// Receives f32 words.
  using TakeWords = std::function<void(const std::byte* words, std::size_t bytes)>;
  /// Hands one state to `take`, some bytes at a time: `tensors`, one after the other, as they are stored.
  /// Collective; every rank takes.
  void gather(std::string_view state, const std::vector<WholeTensor>& tensors, const TakeWords& take);
  /// Gives elements first, first + step, ... of a tensor as it is stored.
  using ReadElements = std::function<void(const WholeTensor& tensor, std::int64_t first, std::int64_t step,
                                          std::int64_t count, float* to)>;
  /// Sets one state from what `read` gives; each element of the state stands in one of `tensors`. Every rank
  /// reads for itself what it keeps.
  void load(std::string_view state, const std::vector<WholeTensor>& tensors, const ReadElements& read);

  /// Sets the weights, and masters with them. What stands in none of `tensors` is drawn as at first.
  void load_weights(const std::vector<WholeTensor>& tensors, const ReadElements& read) {
    load(States{"value", "master"}, tensors, read);
  }
  /// Name, users, updates and uses of every unit, whichever rank has it. Collective over the pipeline.
  std::vector<CheckpointUnit> unit_counters();
  void set_unit_counters(const std::vector<CheckpointUnit>& counters);

  /// Gathers the weights (masters where values are rounded) in the tensors of files.
  void gather_weights(const TakeWords& take);
  /// Loads the weights, and masters with them, from the tensors of files; moments begin at zero.
  void load_weights(const ReadElements& read);

  /// How many steps have changed the weights so far: a skipped step does not count. For training runs; waits
  /// for the device.
  std::int64_t applied_steps();
  /// Sets the count that the next step goes on from, on this rank.
  void set_applied_steps(std::int64_t steps);

  /// SHA-256 over all states as whole tensors of f32 words, state by state, in model order: the same on every
  /// layout with equal bits. Fails where ranks differ in what all of them hold. Collective. `values`:
  /// "value", or those of another state in their place.
  Sha256::Digest digest(std::string_view values = "value");

 private:
  /// The counts of units that are decided each by itself; null: all are decided together, or none.
  Decisions* counts_of_units() {
    Decisions* decisions = residency_.decisions();
    return decisions == nullptr || decisions->is_of_step() ? nullptr : decisions;
  }
  using States = std::initializer_list<std::string_view>;
  /// Writes elements `flat` of a unit's flat order, in f32.
  using GiveElements = std::function<void(Elements flat, float* to)>;

  Backend& backend() { return stage_.context().backend; }
  StagingBuffer staging() { return {backend(), scratch_, staging_bytes_}; }
  bool gives(const StackedPiece& piece);
  void fill(int unit, States states, StagingBuffer& staging, const GiveElements& give);
  void load(States states, const std::vector<WholeTensor>& tensors, const ReadElements& read);
  void clear_moments();
  Sha256::Digest digest_of_copies(const std::vector<std::string_view>& states);

  std::uint64_t seed_;
  Stage& stage_;
  Residency& residency_;
  Groups groups_;
  Arena& scratch_;
  std::size_t staging_bytes_;
};

}  // namespace mindpipe
