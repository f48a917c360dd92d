#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "program/checked_lists.h"

// Whatever one leaves out of a list that was written, the checker finds.
namespace mindpipe {
namespace {

struct ListSource {
  const char* name;
  std::function<std::vector<Lists>()> make;
};
void PrintTo(const ListSource& source, std::ostream* out) { *out << source.name; }

/// A list of each rank.
std::vector<Lists> on_all_ranks(const Lists& lists) {
  std::vector<Lists> all(lists.program.ranks.size(), lists);
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) all[rank].rank = rank;
  return all;
}

std::vector<Lists> of_steps(const Outline& outline, const std::vector<const char*>& schedules) {
  std::vector<Lists> all;
  for (const char* schedule : schedules)
    for (Lists& lists : on_all_ranks(lists_of_step(outline, schedule))) all.push_back(std::move(lists));
  return all;
}

Outline with_a_tied_table_in_parts(Outline outline) {
  outline.data = 2;
  outline.sharded_optimizer = true;
  tie(outline, {0, 1}, 18 << 20);
  outline.units[0].values = 5 << 20;
  return outline;
}

Lists subnets_with_own_cuts() {
  Outline outline = sample_lanes(2, 2, 3, 2, 0.3);
  outline.own_cuts = true;
  return lists_of_subnets(outline, {.admission = 8}, 12, 0);
}

Lists subnets_in_bulk() {
  return lists_of_subnets(sample_space(3, 4, 1), {.order = SubnetOrder::bulk, .admission = 6}, 12, 0);
}

const ListSource sources[] = {
    {"steps",
     [] {
       return of_steps(with_everything(equal_stages(3, 4, 1, {}, 2)), {"1f1b", "zb-h1"});
     }},
    {"steps_with_rings",
     [] {
       return of_steps(with_everything(equal_stages(3, 8, 1, {}, 2)), {"1f1b", "zb-h1"});
     }},
    {"steps_in_parts", [] { return of_steps(with_a_tied_table_in_parts(equal_stages(2, 2)), {"1f1b"}); }},
    {"steps_with_slabs",
     [] {
       return of_steps(in_slabs(with_everything(equal_stages(2, 1, 2, {}, 3))),
                       {"breadth-first", "interleaved"});
     }},
    {"steps_that_swap",
     [] {
       return of_steps(with_swapped(equal_stages(3, 4, 1, {}, 3), {0, 2}), {"1f1b", "zb-h1"});
     }},
    {"steps_with_state_on_the_host",
     [] { return of_steps(kept_on_host(equal_stages(2, 2, 1, {}, 4)), {"1f1b"}); }},
    {"steps_that_move_blocks", [] { return on_all_ranks(step_that_moves_blocks(0)); }},
    {"steps_in_a_v",
     [] {
       return of_steps(with_everything(in_v(equal_stages(2, 4, 2, {}, 2))), {"zb-v", "v-half"});
     }},
    {"elastic_steps", [] { return of_steps(with_everything(equal_stages(2, 6, 2, {}, 2)), {"elastic"}); }},
    {"subnets_with_cuts_of_their_own", [] { return on_all_ranks(subnets_with_own_cuts()); }},
    {"subnets_in_bulk", [] { return on_all_ranks(subnets_in_bulk()); }},
    {"subnets", [] { return on_all_ranks(subnets_with_a_table(0, 16)); }},
    {"subnets_on_lanes", [] { return on_all_ranks(subnets_on_lanes(0, 16)); }},
    {"subnets_on_three_lanes", [] { return on_all_ranks(subnets_on_three_lanes()); }},
    {"forwards", [] { return on_all_ranks(batches_of_forwards()); }},
    {"forwards_in_a_v", [] { return on_all_ranks(batches_in_a_v()); }},
};

class LeftOut : public testing::TestWithParam<ListSource> {};

TEST_P(LeftOut, EveryActionIsMissed) {
  for (Lists& lists : GetParam().make()) {
    EXPECT_THAT(lists.errors(), testing::IsEmpty());
    const std::vector<Action> sound = lists.list();
    for (int place = 0; place < static_cast<int>(sound.size()); ++place) {
      lists.leave_out(place);
      EXPECT_FALSE(lists.errors().empty())
          << "rank " << lists.rank << " without " << line_of(sound[place], place);
      lists.list() = sound;
    }
  }
}

// None waits for what has ended anyhow, because others wait for it.
TEST_P(LeftOut, EveryWaitIsMissed) {
  int missed = 0;
  for (Lists& lists : GetParam().make())
    for (int place = 0; place < static_cast<int>(lists.list().size()); ++place) {
      const std::vector<int> waits = lists.list()[place].after;
      for (const int earlier : waits) {
        std::erase(lists.list()[place].after, earlier);
        EXPECT_FALSE(lists.errors().empty())
            << "rank " << lists.rank << ": " << line_of(lists.list()[place], place) << " without " << earlier;
        ++missed;
        lists.list()[place].after = waits;
      }
    }
  EXPECT_GT(missed, 0);
}

INSTANTIATE_TEST_SUITE_P(Of, LeftOut, testing::ValuesIn(sources),
                         [](const auto& source) { return std::string(source.param.name); });

/// A list in four queues, where each action waits for some of the last ones.
std::vector<Action> drawn_list(std::mt19937& random, int actions) {
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  constexpr ActionKind kinds[] = {ActionKind::forward, ActionKind::send, ActionKind::receive,
                                  ActionKind::reduce};
  std::vector<Action> list;
  for (int i = 0; i < actions; ++i) {
    Action action = action_of(kinds[below(4)]);
    for (int waits = below(3); waits > 0 && i > 0; --waits)
      action.after.push_back(i - 1 - below(std::min(i, 20)));
    list.push_back(std::move(action));
  }
  return list;
}

TEST(FollowedWaits, AreThoseThatAreFoundTheSlowWay) {
  std::mt19937 random(1);
  for (int draw = 0; draw < 100; ++draw) {
    const std::vector<Action> list = drawn_list(random, 150);
    const SlowWaits slow(list);
    FollowedWaits waits;
    std::vector<ListEntry> entries;
    for (int index = 0; index < static_cast<int>(list.size()); ++index) {
      waits.add(list[index], 0);
      for (int earlier = 0; earlier < index; ++earlier)
        ASSERT_EQ(waits.has_ended(entries[earlier]), slow.has_ended(earlier, index))
            << earlier << ' ' << index;
      entries.push_back(waits.newest());
    }
  }
}

// Subnets that move in many parts have thousands of actions between a move and the passes that wait for it.
TEST(FollowedWaits, KnowWhatQueuesHadWaitedForLongBefore) {
  FollowedWaits waits;
  waits.add(action_of(ActionKind::receive), 0);
  const ListEntry move = waits.newest();
  for (int i = 0; i < 10'000; ++i) waits.add(action_of(ActionKind::reduce), 0);
  Action pass = action_of(ActionKind::forward);
  waits.add(pass, 0);
  EXPECT_FALSE(waits.has_ended(move));
  pass.after = {static_cast<int>(move.place)};
  waits.add(pass, 0);
  EXPECT_TRUE(waits.has_ended(move));
  pass.after.clear();
  waits.add(pass, 0);
  EXPECT_TRUE(waits.has_ended(move)) << "behind a pass that has waited";
  pass.after = {static_cast<int>(move.place)};
  waits.thin(pass, 0);
  EXPECT_TRUE(pass.after.empty());
}

// A sum may run beside the one before it; it ends after it.
TEST(FollowedWaits, OfSumsKnowThatTheOneBeforeMayStillRun) {
  const Action pass = action_of(ActionKind::forward), sum = action_of(ActionKind::reduce);
  FollowedWaits waits;
  std::vector<ListEntry> entries;
  for (const Action* action : {&sum, &sum, &sum, &pass}) {
    Action next = *action;
    if (action == &pass) next.after = {2};
    waits.add(next, 0);
    entries.push_back(waits.newest());
    if (entries.size() == 3) {
      EXPECT_TRUE(waits.has_ended(entries[0]));
      EXPECT_FALSE(waits.has_ended(entries[1]));
    }
  }
  EXPECT_TRUE(waits.has_ended(entries[1]));
}

}  // namespace
}  // namespace mindpipe
