#pragma once
#include <bitset>
#include <functional>

#include "program/check/checker.h"
#include "program/check/list_check.h"
#include "program/lists/forward_stretches.h"
#include "program/moving_step.h"
#include "program/sample_outline.h"
#include "program/sample_space.h"
#include "program/schedules/pass_clock.h"

// Lists of each source, as they were written, for tests that spoil them.
namespace mindpipe {

using SuchAction = std::function<bool(const Action&)>;

/// The lists of all ranks, one of which is looked at.
struct Lists {
  ListOf of = ListOf::step;
  Outline outline;
  SubnetRules rules = {};
  std::vector<Subnet> subnets = {};
  std::vector<Communication> sequence = {};  ///< a supernet's communications
  int batches = 0;                           ///< batches of a list of forwards
  Program program = {};
  int rank = 0;

  std::vector<Action>& list() { return program.ranks[rank]; }
  /// What the checker says: of a step with all ranks' lists, of others with that of `rank` alone.
  std::vector<std::string> errors() const {
    if (of == ListOf::step) return check(program, outline);
    ListCheck books =
        of == ListOf::forwards ? ListCheck::of_forwards(outline, rank) : ListCheck(outline, rules, rank);
    if (of == ListOf::forwards) books.expect(batches);
    else books.know(subnets, 0);
    if (of == ListOf::subnets) books.expect(sequence);
    return books.check(program.ranks[rank], true);
  }
  /// The place of the `nth` action that is such.
  int find(const SuchAction& is_such, int nth = 0) {
    for (int i = 0; i < static_cast<int>(list().size()); ++i)
      if (is_such(list()[i]) && nth-- == 0) return i;
    ADD_FAILURE() << "no such action";
    return 0;
  }
  Action& at(const SuchAction& is_such, int nth = 0) { return list()[find(is_such, nth)]; }
  /// Takes an action out of the list, as if nobody waited for it.
  void leave_out(int place) {
    list().erase(list().begin() + place);
    for (Action& action : list()) {
      std::erase(action.after, place);
      for (int& earlier : action.after) earlier -= earlier > place ? 1 : 0;
    }
  }
  /// Moves an action behind a later one. It waits for nobody, and nobody for it.
  void move_behind(int place, int later) {
    Action moved = list()[place];
    moved.after.clear();
    leave_out(place);
    for (Action& action : list())
      for (int& earlier : action.after) earlier += earlier >= later ? 1 : 0;
    list().insert(list().begin() + later, std::move(moved));
  }
};

inline Lists lists_of_step(const Outline& outline, const char* schedule) {
  return {.outline = outline, .program = make_program(outline, schedule).program};
}

/// A step of 1f1b whose backwards are all in halves.
inline Lists lists_of_halves(const Outline& outline) {
  const PassClock clock(outline, PriceList(outline, {}));
  const Order order = clock.run(zero_bubble_order(request_of(outline)), {}, PassClock::Tells::order).order;
  return {.outline = outline, .program = plan_step(outline, order).program};
}

/// A step after which stage 1 has lost its lowest block to stage 0, and its highest to stage 2: units 4
/// and 7.
inline Lists step_that_moves_blocks(int rank) {
  Outline outline = on_data_ranks(equal_stages(3, 4, 1, {}, 4));
  for (UnitCost& unit : outline.units) {
    unit.gradients = 10 << 20;
    unit.moved = 9 << 20;
  }
  Lists lists = lists_of_step(moving_step(outline, {0, 5, 7, 12}, 1), "1f1b");
  lists.rank = rank;
  return lists;
}

inline Lists lists_of_subnets(const Outline& outline, const SubnetRules& rules, int count, int rank) {
  Lists lists{.of = ListOf::subnets, .outline = outline, .rules = rules, .rank = rank};
  lists.subnets = sample_subnets(outline, Draw::uniform, count, 1);
  const Network network = sample_network(outline.micro_batches);
  lists.program = whole_program(outline, network, rules, lists.subnets, {count}).program;
  CausalPlanner planner(outline, network, rules);
  lists.sequence = Communications(outline).add(planned(planner, lists.subnets));
  return lists;
}

/// Subnets that share a table, with sums over data.
inline Lists subnets_with_a_table(int rank, int count = 40) {
  Outline outline = sample_space(4, 3, 2);
  outline.data = 2;
  for (UnitCost& unit : outline.units) unit.gradients = 6 << 20;  // in parts
  share_a_table(outline);
  outline.units.back().gradients = 3 << 20;
  return lists_of_subnets(
      outline, {.admission = 8, .slots = {6, 6, 6, 6}, .slabs = {2, 2, 2, 2}, .window = 8}, count, rank);
}

/// Subnets on two lanes of two stages, whose units move in parts.
inline Lists subnets_on_lanes(int rank = 1, int count = 60) {
  Outline outline = sample_lanes(2, 2, 3, 1, 0.5);
  for (UnitCost& unit : outline.units) unit.moved = 3 << 20;
  return lists_of_subnets(outline, {.admission = 16}, count, rank);
}

/// Subnets on three lanes of two stages: the moves of a rank go to several others.
inline Lists subnets_on_three_lanes(int rank = 1) {
  Outline outline = sample_lanes(3, 2, 3, 1, 0.3);
  outline.data = 2;
  share_a_table(outline);
  return lists_of_subnets(outline, {.admission = 16, .window = 2}, 24, rank);
}

/// Batches that go down the stages and up again.
inline Lists batches_in_a_v() {
  Outline outline = with_everything(in_v(equal_stages(3, 4, 2, {}, 2)));
  outline.training = false;
  return {
      .of = ListOf::forwards, .outline = outline, .batches = 5, .program = forward_program(outline, {}, 5)};
}

inline Lists batches_of_forwards(int rank = 2, int batches = 6) {
  Outline outline = with_everything(equal_stages(4, 2, 1, {}, 2));
  outline.training = false;
  return {.of = ListOf::forwards,
          .outline = outline,
          .batches = batches,
          .program = forward_program(outline, {}, batches),
          .rank = rank};
}

/// What has surely ended when an entry of a list begins, found the slow way: for each entry all of the
/// others.
class SlowWaits {
 public:
  explicit SlowWaits(const std::vector<Action>& list) : begins_(list.size()), ends_(list.size()) {
    std::map<QueueKey, std::vector<int>> queues;
    for (int index = 0; index < static_cast<int>(list.size()); ++index) {
      std::vector<int>& before = queues[queue_of(list[index])];
      const bool runs_ahead = is_collective(list[index]) && list[index].queue == Queue::bulk;
      for (std::size_t back = 1; back <= before.size() && back <= 2; ++back) {
        const int earlier = before[before.size() - back];
        begins_[index] |= back == 1 && runs_ahead ? begins_[earlier] : ends_[earlier];
      }
      for (const int earlier : list[index].after) begins_[index] |= ends_[earlier];
      ends_[index] = begins_[index];
      if (!before.empty()) ends_[index] |= ends_[before.back()];
      ends_[index].set(index);
      before.push_back(index);
    }
  }
  bool has_ended(int earlier, int later) const { return begins_[later][earlier]; }

 private:
  std::vector<std::bitset<4096>> begins_, ends_;
};

}  // namespace mindpipe
