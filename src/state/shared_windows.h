#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "config/sections/optimizer.h"
#include "state/gradient_updates.h"

namespace mindpipe {

struct SupernetConfig;

/// The parameters that all subnets of a supernet share (embeddings, the last norm, the softmax). Subnets come
/// in windows; those of window w read the version that window w - 2 has left, and what their backwards give
/// is added up as whole numbers, which have no order: over micro-batches, places of use, ranks. Once a window
/// is complete the sum is applied, divided by the window's valid targets. Two sums take turns, as two copies
/// of the values do (UnitValues).
class SharedWindows {
 public:
  SharedWindows(Stage& stage, Residency& residency, GradientUpdates& updates, Groups groups,
                const SupernetConfig& supernet, const TrainConfig& train, const RateConfig& rate,
                const Outline& outline);
  static std::size_t bytes(const Stage& stage, const Outline& outline);
  /// Bytes of what arrives in the tensor group's exchange.
  static std::size_t exchange_bytes(const Stage& stage);

  std::int64_t window_of(std::int64_t subnet) const { return subnet / window_; }
  /// Begins before subnet `first`, at a drain: no window is open.
  void begin(std::int64_t first);

  /// Counts a subnet's targets that count.
  void count(std::int64_t subnet, std::int64_t valid) { valid_[window_of(subnet)] += valid; }
  /// Counts those of subnets that other lanes run, of whom `targets_of` says how many they have; a window's
  /// are counted once.
  template <class TargetsOf>
  void count_other_lanes(std::int64_t window, const TargetsOf& targets_of) {
    const Layout& layout = stage_.layout();
    for (std::int64_t id = std::max(counted_, window * window_); id <= last_of(window); ++id)
      if (id % layout.grid.supernet != layout.coord.supernet) count(id, targets_of(id));
    counted_ = std::max(counted_, last_of(window) + 1);
  }
  /// The last subnet of a window, which the end of the run may make a shorter one.
  std::int64_t last_of(std::int64_t window) const {
    return std::min<std::int64_t>((window + 1) * window_, subnets_) - 1;
  }
  /// Adds what a micro-batch's backward over blocks [first, last) has given, and zeroes it.
  void add(std::int64_t subnet, int first, int last);
  /// One part of a window's sum over this rank's data axis.
  Reductions::Request reduce(Reductions& over_data, std::int64_t window, int unit, int part, int parts);
  /// One part of what is sent to other ranks that use the unit, or arrives from them.
  Tensor part(const Action& message) const;
  /// Applies a complete window to a unit, once everything has arrived, at the rate of its last subnet.
  /// Collective over the tensor group.
  void update(std::int64_t window, int unit);

 private:
  /// The sums of one unit: a whole number for each element, and how many elements none stands for.
  struct Sums {
    std::array<Tensor, 2> of_window;
    std::map<int, std::array<Tensor, 2>> arrived;  ///< from other ranks of the program
  };
  static std::vector<int> others_of(const Stage& stage, const Outline& outline, int unit);
  void add_use(const UnitUse& use, const Tensor& totals);
  void add_parts(const Unit& unit, int param, const Tensor& gradient, const Tensor& totals);
  void sum_over_sequence(Unit& unit, const Tensor& totals);
  static std::int64_t numbers_of(const Unit& unit) { return unit.flat_count() + 1; }

  Stage& stage_;
  Residency& residency_;
  GradientUpdates& updates_;
  Groups groups_;
  RateConfig rate_;
  std::int64_t window_, subnets_;  ///< subnets of one; of the run
  std::int64_t counted_ = 0;       ///< subnets, all ids below
  Arena arena_;
  std::map<int, Sums> sums_;
  std::vector<UnitUse> uses_;  ///< uses of shared units in blocks here
  Tensor of_shards_;           ///< one parameter's shards, for a sum over T-ths of the sequence
  std::map<std::int64_t, std::int64_t> valid_;  ///< targets of each window
};

}  // namespace mindpipe
