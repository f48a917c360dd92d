#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "backend.h"
#include "config/sections/optimizer.h"
#include "optim/unit_share.h"

namespace mindpipe {

/// Masters and moments of one unit, or of this rank's share of it, and the rule that moves it.
class UnitOptimizer {
 public:
  UnitOptimizer(Unit& unit, const OptimizerConfig& config, int share, int shares);
  /// `apart`: for each use, whether this share of its gradient has a place of its own, because the
  /// accumulators' memory goes to others before the update. Empty: none has. `host`: where masters and
  /// moments are kept in place of `memory`.
  void allocate(Memory& memory, const std::vector<char>& apart = {}, Memory* host = nullptr);
  /// Takes places apart for this share of the gradients of these uses, in place of those that there were.
  void place_apart(Memory& memory, const std::vector<char>& apart);
  std::size_t bytes() const;           ///< bytes of masters and moments
  std::size_t gradient_bytes() const;  ///< bytes of this share of one use's gradient

  /// Copies f32 `values`, those of the unit's flat order from element `first` on, into what is kept here of
  /// the state of that name; into nothing where the state is not kept.
  void write(Backend& backend, std::string_view state, std::int64_t first, const Tensor& values);
  void clear_moments(Backend& backend);  ///< makes them what they are before the first step
  /// Hears that moments were written where `states` says.
  void moments_have_arrived() { moments_are_zero_ = false; }

  /// Masters and moments that are kept on the host have a place on the device from here on, or none any more.
  void take_slot(void* slot);
  void leave_slot() { fetched_.reset(); }
  /// What is kept on the host, and its place on the device.
  std::vector<std::pair<Tensor, Tensor>> fetched() const;

  /// This share of the gradient that one use makes, in flat order: where its sum over data is to be found.
  /// Use 0 holds that of all uses in the end.
  Tensor gradient_share(int use) const;

  /// Writes the sum of squares of each chunk of this share of a use's gradient into `sums` (f64 [chunks()] of
  /// the whole unit).
  void chunk_squares(Backend& backend, const Tensor& sums, int use = 0) const;

  /// Moves the values; the caller counts it as a version. `decision`: of the step (Backend::clip_and_scale);
  /// `micro_batches`: of its whole batch.
  void update(Backend& backend, double rate, const Tensor& decision, std::int64_t micro_batches = 1);

  /// What this share has of the unit.
  const UnitShare& flat() const { return flat_; }
  std::int64_t begin() const { return flat_.begin(); }
  std::int64_t end() const { return flat_.end(); }
  Unit& unit() const { return unit_; }
  /// States by name, in the order of ranges(): "master" (when values are rounded) and the moments.
  std::vector<std::pair<std::string, Tensor>> states() const;

 private:
  /// Masters (none: the values are), and moments in the order of OptimizerConfig::moments; none where nothing
  /// is kept here.
  struct State {
    Tensor master;
    std::vector<Tensor> moments;
  };
  State state_at(const std::function<Tensor()>& take) const;

  Unit& unit_;
  OptimizerConfig config_;
  UnitShare flat_;
  std::vector<SquaresSpan> squares_;  ///< ranges within this share
  std::vector<UpdateSpan> learned_;   ///< ranges that the rule moves
  Arena arena_, gradient_arena_;
  std::vector<Tensor> gradients_apart_;  ///< one for each use; none where the share lies in the accumulator
  State kept_;
  std::optional<State> fetched_;  ///< places on the device
  bool is_on_host_ = false;
  bool moments_are_zero_ = false;
};

}  // namespace mindpipe
