#include "program/check/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include "core/check.h"
#include "program/lists/forward_stretches.h"
#include "program/make_program.h"
#include "program/sample_outline.h"
#include "program/schedules/order_runs.h"

namespace mindpipe {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The lists of a step as a program without a clock would write them: what a pass needs stands before it,
/// what it makes behind it.
Program in_order_of_passes(const Outline& outline, const Order& order) {
  Program program = plan_step(outline, order).program;
  for (auto& list : program.ranks) {
    using Name = std::tuple<int, int, bool>;  // chunk, micro-batch, whether it goes forward
    std::map<Name, int> passes;               // where the last piece stands
    for (int i = 0; i < static_cast<int>(list.size()); ++i)
      if (is_pass(list[i])) passes[{list[i].chunk, list[i].micro_batch, is_forward(list[i])}] = i;
    const auto turn = [&](int i) {
      const Action& action = list[i];
      if (!crosses_cut(action)) return std::pair(i, 0);
      const int pass = passes.at({action.chunk, action.micro_batch, travels_forward(action.payload)});
      return std::pair(pass, sends(action) ? 1 : -1);
    };
    std::vector<int> order_of(list.size()), place_of(list.size());
    std::iota(order_of.begin(), order_of.end(), 0);
    std::stable_sort(order_of.begin(), order_of.end(), [&](int a, int b) { return turn(a) < turn(b); });
    std::vector<Action> sorted;
    for (const int index : order_of) {
      place_of[index] = static_cast<int>(sorted.size());
      sorted.push_back(list[index]);
    }
    for (Action& action : sorted)
      for (int& earlier : action.after) earlier = place_of[earlier];
    list = std::move(sorted);
  }
  return program;
}

int find(const std::vector<Action>& list, ActionKind kind, int nth = 0, Payload payload = Payload::none) {
  for (int i = 0; i < static_cast<int>(list.size()); ++i)
    if (list[i].kind == kind && (payload == Payload::none || list[i].payload == payload) && nth-- == 0)
      return i;
  ADD_FAILURE() << "no such action: " << name_of(kind);
  return 0;
}

/// An order for any placement: at each moment every rank runs what is ready, backwards first, with at most
/// `tapes` open.
Order greedy_order(const Outline& outline, int tapes) {
  const int chunks = outline.all_chunks();
  Order order(outline.stages);
  std::vector<int> forwards(chunks, 0), backwards(chunks, 0), open(outline.stages, 0);
  for (bool moved = true; moved;) {
    moved = false;
    const auto seen_forwards = forwards, seen_backwards = backwards;
    for (int rank = 0; rank < outline.stages; ++rank) {
      int best = -1;
      bool forward = false;
      for (int chunk = 0; chunk < chunks && best < 0; ++chunk)
        if (outline.rank_of(chunk) == rank && backwards[chunk] < seen_forwards[chunk] &&
            backwards[chunk] < (chunk == chunks - 1 ? seen_forwards[chunk] : seen_backwards[chunk + 1]))
          best = chunk;
      for (int chunk = chunks - 1; chunk >= 0 && best < 0; --chunk)
        if (outline.rank_of(chunk) == rank &&
            forwards[chunk] < (chunk == 0 ? outline.micro_batches : seen_forwards[chunk - 1]) &&
            (chunk > 0 || open[rank] < tapes)) {
          best = chunk;
          forward = true;
        }
      if (best < 0) continue;
      order[rank].push_back({forward ? ActionKind::forward : ActionKind::backward, best,
                             forward ? forwards[best] : backwards[best]});
      ++(forward ? forwards : backwards)[best];
      open[rank] += forward ? 1 : -1;
      moved = true;
    }
  }
  return order;
}

TEST(Check, VPlacementPasses) {
  for (int p = 1; p <= 5; ++p)
    for (int m : {1, 3, 8}) {
      const Outline outline = in_v(equal_stages(p, m, 2));
      EXPECT_NO_THROW(make_program(outline, "breadth-first")) << p << ' ' << m;
      EXPECT_THAT(check(plan_step(outline, greedy_order(outline, 2 * p)).program, outline), IsEmpty())
          << p << ' ' << m;
    }
}

/// An order of a V in which some neighbours of each rank have changed places by lot, but none of one chunk
/// that go the same way.
Order with_swaps(Order order, int swaps, std::mt19937& random) {
  for (std::vector<Pass>& passes : order)
    for (int k = 0; k < swaps; ++k) {
      const std::size_t place = random() % (passes.size() - 1);
      Pass &one = passes[place], &next = passes[place + 1];
      if (one.chunk != next.chunk || one.micro_batch != next.micro_batch) std::swap(one, next);
      if (one.chunk == next.chunk && one.kind == next.kind) std::swap(one, next);
    }
  return order;
}

TEST(Check, OfVShapedOrdersByLotThoseThatStandStillAreRefusedAndOthersSound) {
  std::mt19937 random(43);
  int still = 0, sound = 0;
  for (int draw = 0; draw < 4000; ++draw) {
    const int stages = 2 + draw % 3, micro_batches = 2 + draw % 5;
    const Outline outline = in_v(equal_stages(stages, micro_batches, 2));
    const PassClock clock(outline, PriceList(outline, {}));
    const auto schedule = draw % 2 == 0 ? ScheduleKind::zero_bubble_v : ScheduleKind::dual_pipe_v;
    const Order rows = with_swaps(make_order(schedule, request_of(outline)), 1 + draw % 7, random);
    const bool goes = clock.run(rows, {.puts_off = draw % 5 > 0}).step >= 0;
    ++(goes ? sound : still);
    if (!goes) {
      EXPECT_THROW(plan_step(outline, rows), Error) << draw;
      continue;
    }
    const Order order = with_weight_gradients(
        rows, clock, {.puts_off = draw % 3 > 0, .quarters = 1 + draw % 4, .most_tapes = 250});
    EXPECT_THAT(check(plan_step(outline, order).program, outline), IsEmpty()) << draw;
  }
  EXPECT_GT(std::min(still, sound), 400) << still << ' ' << sound;
}

TEST(Check, SlowLinksChangeTicketsNotSoundness) {
  Network network;
  network.message = {700, 90000};
  network.data = {2000, 50000};
  for (const std::string& schedule : all_schedules())
    EXPECT_NO_THROW(make_program(with_everything(equal_stages_for(schedule, 4, 6, {}, 2)), schedule, network))
        << schedule;
}

TEST(Check, CommunicationInTheComputeQueueDeadlocks) {
  for (int p : {2, 4, 8})
    for (int m : {2, 3, 8}) {
      const Outline outline = equal_stages(p, m);
      Program program = in_order_of_passes(outline, one_forward_one_backward_order({p, m}));
      for (auto& list : program.ranks)
        for (Action& action : list)
          if (is_message(action)) action.queue = Queue::compute;
      EXPECT_THAT(check(program, outline),
                  Contains(HasSubstr("never starts: the lists deadlock with free channels")))
          << p << ' ' << m;
    }
}

TEST(Check, SwappedTicketsAreFound) {
  const Outline outline = equal_stages(4, 8);
  Program program = plan_step(outline, one_forward_one_backward_order({4, 8})).program;
  std::vector<Action>& list = program.ranks[1];
  const int a = find(list, ActionKind::receive, 2, Payload::activation),
            b = find(list, ActionKind::send, 2, Payload::activation);
  std::swap(list[a].ticket, list[b].ticket);
  const auto errors = check(program, outline);
  EXPECT_THAT(errors, Contains(HasSubstr("has ticket ")));
  EXPECT_THAT(errors, Contains(HasSubstr("(they must ascend)")));
}

TEST(Check, NaturalListOrderAsTicketsIsCyclic) {
  // Each rank numbers its own communication in the order of its list, as a program without global tickets
  // would do.
  const Outline outline = equal_stages(4, 8);
  Program program = in_order_of_passes(outline, one_forward_one_backward_order({4, 8}));
  for (auto& list : program.ranks) {
    std::int64_t next = 0;
    for (Action& action : list)
      if (is_communication(action)) action.ticket = next++;
  }
  EXPECT_THAT(check(program, outline),
              Contains(HasSubstr("never starts: the lists deadlock in ticket order")));
}

TEST(Check, AReceiveAfterItsReaderIsFound) {
  const Outline outline = equal_stages(2, 4);
  Program program = plan_step(outline, one_forward_one_backward_order({2, 4})).program;
  std::vector<Action>& list = program.ranks[1];
  const int receive = find(list, ActionKind::receive, 1, Payload::activation),
            forward = find(list, ActionKind::forward, 1);
  for (int i = receive; i < forward; ++i) swap_places(list, i, i + 1);
  EXPECT_THAT(check(program, outline), Contains(HasSubstr("which is not an earlier one")));
  for (Action& action : list) std::erase_if(action.after, [&](int earlier) { return earlier == forward; });
  const auto errors = check(program, outline);
  EXPECT_THAT(errors, Contains(HasSubstr("(forward of micro-batch 1, block 1): does not wait for the "
                                         "activation from rank 0, which is received later or never")));
}

TEST(Check, OneChannelForActivationsAndGradientsIsFoundInAVPlacement) {
  const Outline outline = in_v(equal_stages(4, 8, 2));
  Program program = in_order_of_passes(outline, greedy_order(outline, 8));
  for (auto& list : program.ranks)
    for (Action& action : list)
      if (action.payload == Payload::gradient) action.payload = Payload::activation;
  EXPECT_THAT(check(program, outline), Contains(HasSubstr("which is something else")));
}

TEST(Check, ATicketOfTwoTasksIsFound) {
  Outline outline = equal_stages(2, 2);
  outline.data = 2;
  outline.sharded_optimizer = true;
  Program program = plan_step(outline, gpipe_order({2, 2})).program;
  // Each rank communicates first in a gather of its own, so tickets ascend in both all the same.
  const auto first_gather = [&](int rank) -> Action& {
    return *std::find_if(program.ranks[rank].begin(), program.ranks[rank].end(), is_communication);
  };
  Action &one = first_gather(0), &other = first_gather(1);
  ASSERT_TRUE(one.kind == ActionKind::gather && other.kind == ActionKind::gather);
  one.ticket = other.ticket = std::min(one.ticket, other.ticket);
  EXPECT_THAT(check(program, outline),
              ElementsAre(HasSubstr("ticket " + std::to_string(one.ticket) + " is given twice")));
}

TEST(Check, AnUpdateInAnEvaluationIsFound) {
  Outline outline = equal_stages(1, 2);
  outline.training = false;
  PlannedForwards step = plan_forwards(outline, {});
  Action update = action_of(ActionKind::update);
  update.unit = 0;
  update.after = {static_cast<int>(step.program.ranks[0].size()) - 1};
  step.program.ranks[0].push_back(update);
  EXPECT_THAT(check(step.program, outline), ElementsAre(HasSubstr("has no place in an evaluation")));
}

TEST(Check, WhatAScheduleCannotDoIsRefused) {
  const auto refusal = [](const std::string& schedule, int chunks) {
    try {
      make_program(equal_stages(2, 4, chunks), schedule);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_configuration);
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  EXPECT_EQ(refusal("1f1b", 2),
            "schedule.chunks is 2, but schedule 1f1b runs one chunk on each stage (set schedule.chunks to 1, "
            "or take interleaved, breadth-first or elastic)");
}

}  // namespace
}  // namespace mindpipe
