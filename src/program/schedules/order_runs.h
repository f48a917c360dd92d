#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "program/schedules/pass_clock.h"

namespace mindpipe {

/// Percents (WeightRule::percent_on) by which a stage would have decided as it did.
struct PercentsAlike {
  std::int64_t least = 0, most = std::numeric_limits<std::int64_t>::max();
  bool has(int percent) const { return least <= percent && percent <= most; }
};

/// Runs of one order by the inner clock, one after another in the same memory.
class OrderRuns {
 public:
  /// `clock` stays as it is, and so does `order` but for moves that are told.
  OrderRuns(const PassClock& clock, const Order& order);

  /// Where a forward or backward stands in its stage's order.
  int place_of(const Pass& pass) const { return places_[number_of(pass.kind == ActionKind::forward, pass)]; }
  /// Hears that a stage's pass was moved from one place of the order to another, past no pass of its own
  /// micro-batch.
  void move(int stage, int from, int to);

  /// A run by a rule, as of PassClock::run.
  PassClock::Run run(const WeightRule& rule, PassClock::Tells tells = PassClock::Tells::times,
                     std::int64_t longest = PassClock::any_length);
  /// Keeps the last run, which told what is critical and went on to its end, for `run_again`.
  void keep();
  /// Hears that the moves since then were taken back.
  void forget_moves();
  /// A run by the rule of the kept one that tells what is critical, as `run` would. It begins on each stage
  /// where moves since then can have changed something.
  PassClock::Run run_again(const WeightRule& rule, std::int64_t longest);
  /// For each stage the percents with which the last run that went on to its end would have been the same.
  const std::vector<PercentsAlike>& alike() const { return alike_; }
  std::int64_t passes() const { return static_cast<std::int64_t>(steps_.size()); }

 private:
  /// When passes end is known by number: of all backwards and forwards, and of two more that stand for what
  /// is there from the beginning and what never comes.
  static constexpr int there = 0, nowhere = 1, first_of_passes = 2;

  /// A pass of the order, and whom it waits for.
  struct Step {
    Pass pass;
    int input = there, own = there;  ///< ends
    int reader = -1;                 ///< the other stage that reads what this pass gives
    bool begins_shard = false;       ///< the first backward of a shard
    std::int64_t message = 0;        ///< nanoseconds for which its input is under way
  };
  struct Stage {
    int begin = 0, next = 0, end = 0;  ///< steps
    int waits_for = nowhere;           ///< an end
    int oldest = 0, newest = 0;        ///< weight gradients that are put off
    std::int64_t free = 0;             ///< when the stage is free
    std::int64_t left = 0;             ///< nanoseconds of passes in halves that have yet to begin
    std::int64_t held = 0, most = 0;   ///< bytes of tapes
    std::int64_t latest = 0;           ///< the last end among inputs of passes up to the next
  };
  /// What a run leaves that a later one can begin with.
  struct Trail {
    std::vector<std::int64_t> ends;  ///< nanoseconds
    std::vector<int> put_off;        ///< steps whose weight gradients are put off, where their stage's are
    std::vector<char> waited;  ///< passes that had to wait for what they read, by the number of their ends
  };

  int number_of(bool forward, const Pass& pass) const;
  void prepare(int stage, const std::vector<Pass>& passes, std::vector<char>& seen);
  void begin();
  void begin_again();
  PassClock::Run run_to_end(std::int64_t longest);
  void go_on(int number);
  void make_room(int number, const Step& step, std::int64_t input);
  bool fills(int number, std::int64_t gap);
  void run_weights(int number);
  void end();
  void follow_back();

  const PassClock& clock_;
  const Order& order_;
  std::vector<Step> steps_;  ///< passes of all stages, one behind the other
  std::vector<Stage> stages_;
  Trail trail_, kept_;
  std::vector<Stage> marks_, kept_marks_;  ///< stages before each of their steps and at their end, where a
                                           ///< run tells what is critical
  std::vector<int> resumed_;               ///< steps where the last run began
  std::vector<int> first_moved_;           ///< places from which on passes were moved since a run was kept
  std::vector<int> waiting_;               ///< how many weight gradients are put off, by chunk
  std::vector<int> may_go_on_;             ///< stages that do not wait for others
  std::vector<PercentsAlike> alike_;
  std::vector<int> places_;           ///< where passes stand in their stage, by the number of their ends
  PassClock::Run run_;                ///< what is known of the run under way
  const WeightRule* rule_ = nullptr;  ///< the run's rule
  PassClock::Tells tells_ = PassClock::Tells::times;  ///< what the run is to tell
  std::int64_t longest_ = PassClock::any_length;      ///< length from which on the run is left
  bool is_left_ = false;                              ///< whether the run was left
  int last_ = 0;                                      ///< the stage that ends last in the run
};

/// An order of forwards and whole backwards with its weight gradients where a rule puts them. On the stage of
/// the first chunk, for whose gradient nobody waits, a backward is whole whose weights follow it.
Order with_weight_gradients(OrderRuns& runs, const WeightRule& rule);
Order with_weight_gradients(const Order& order, const PassClock& clock, const WeightRule& rule);

}  // namespace mindpipe
