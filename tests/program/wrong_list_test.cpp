#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "program/wrong_list.h"

// One table of what can be wrong with a list, whatever it is a list of, and of what the checker says to it.
namespace mindpipe {
namespace {

bool waits_to_move(const Action& action) {
  return is_move(action) && action.part == 0 && !action.after.empty();
}
bool leaves_later(const Action& action) { return sends(action) && waits_to_move(action); }
bool comes_later(const Action& action) { return !sends(action) && waits_to_move(action) && action.parts > 1; }

/// Block 0 has 10 MiB of gradients, three parts.
Outline with_a_large_first_block(Outline outline) {
  outline = on_data_ranks(std::move(outline));
  outline.units[0].gradients = 10 << 20;
  return outline;
}
Outline with_large_blocks(Outline outline) {
  outline = in_slabs(std::move(outline));
  for (UnitCost& unit : outline.units) unit.gradients = 10 << 20;
  return outline;
}
Outline of_two_shards(Outline outline) {
  outline.shards = 2;
  return outline;
}

Lists of_two_stages(int rank) {
  Lists lists = lists_of_step(equal_stages(2, 6), "gpipe");
  lists.rank = rank;
  return lists;
}
Lists with_slabs() { return lists_of_step(in_slabs(equal_stages(1, 1, 1, {}, 4)), "1f1b"); }
Lists with_slabs_of_two() { return lists_of_step(in_slabs(equal_stages(1, 2, 1, {}, 4)), "1f1b"); }
Lists in_parts() { return lists_of_step(with_a_large_first_block(equal_stages(1, 1, 1, {}, 2)), "1f1b"); }
bool is_sum_in_parts(const Action& action) { return action.kind == ActionKind::reduce && action.parts > 1; }
bool is_backward_of_block(const Action& action, int block) {
  return is_backward(action) && action.first == block;
}

const WrongList of_steps[] = {
    {"ABackwardOutOfOrder", [] { return lists_of_step(equal_stages(1, 3), "gpipe"); },
     [](Lists& lists) {
       const int first = lists.find(of_kind(ActionKind::backward));
       swap_places(lists.list(), first, first + 1);
     },
     "rank 0, action 3 (backward of micro-batch 1, block 0): micro-batch 0 is next (backwards of a unit "
     "ascend)"},
    {"ABufferReusedWhileItIsSent", [] { return of_two_stages(0); },
     without_waits(of_kind(ActionKind::forward), 2),
     "(forward of micro-batch 2, block 0): writes buffer 2 while action 2 (send activation of micro-batch 0 "
     "to rank 1) may still use it"},
    {"AReceiveIntoABufferThatIsStillRead", [] { return of_two_stages(1); },
     without_waits(of_kind(ActionKind::receive), 2), "may still use it"},
    {"APassThatDoesNotWaitForItsInput", [] { return of_two_stages(1); },
     without_waits(of_kind(ActionKind::forward)), "does not wait for the activation from rank 0"},
    {"ASendThatDoesNotWaitForItsPass", [] { return of_two_stages(0); },
     without_waits(end_of(Payload::activation, true)), "before action 0 has filled it"},
    {"AForwardThatDoesNotWaitForItsGather", with_slabs, without_waits(of_kind(ActionKind::forward)),
     "does not wait for the values of unit"},
    {"AGatherBehindTheUpdate", with_slabs,
     [](Lists& lists) {
       const int gather = lists.find(of_kind(ActionKind::gather));
       lists.list().push_back(lists.list()[gather]);
     },
     "comes behind the update, whose values the next step gathers"},
    {"AFoldThatIsLeftOut", [] { return lists_of_halves(of_two_shards(equal_stages(1, 4))); },
     [](Lists& lists) { lists.at(of_kind(ActionKind::backward_input), 1).fold = false; },
     "shard 0 ends here, but its gradients are not folded"},
    {"ProductsThatWaitWhereOthersDo", [] { return lists_of_halves(equal_stages(1, 4)); },
     [](Lists& lists) { lists.at(of_kind(ActionKind::backward_input), 1).waiting = 0; },
     "puts products off into arena 0, where those of micro-batch 0, chunk 0, still wait"},
    {"ProductsOfAnotherMicroBatch", [] { return lists_of_halves(equal_stages(1, 4)); },
     [](Lists& lists) { lists.at(of_kind(ActionKind::backward_weight)).waiting = 2; },
     "looks for its products in arena 2, where others wait"},
    {"WeightsBeforeTheirBackward", [] { return lists_of_halves(equal_stages(1, 4)); },
     [](Lists& lists) {
       const int backward = lists.find(of_kind(ActionKind::backward_input));
       const int weights = lists.find(of_kind(ActionKind::backward_weight));
       std::swap(lists.list()[backward], lists.list()[weights]);
     },
     "runs before its backward_input"},
    {"AFoldBeforeItsTime", [] { return lists_of_step(of_two_shards(equal_stages(1, 4)), "1f1b"); },
     [](Lists& lists) { lists.at(of_kind(ActionKind::backward), 2).fold = true; },
     "folds shard 1 before its end"},
    {"WorkBetweenThePiecesOfABackward", [] { return lists_of_step(equal_stages(1, 2, 1, {}, 2), "1f1b"); },
     [](Lists& lists) {
       // Cuts the first backward into two pieces, with the next forward between them.
       const int backward = lists.find(of_kind(ActionKind::backward));
       const int next = lists.find(of_kind(ActionKind::forward), 1);
       ASSERT_EQ(next, backward + 1);
       Action piece = lists.list()[backward];
       lists.list()[backward].first = piece.last = 1;
       lists.list().insert(lists.list().begin() + next + 1, piece);
       for (Action& action : lists.list())
         for (int& earlier : action.after) earlier += earlier > next ? 1 : 0;
     },
     "something else runs between the pieces of one backward"},
    {"AUnitThatIsUpdatedTwice", [] { return lists_of_step(equal_stages(1, 2), "gpipe"); },
     [](Lists& lists) { lists.list().push_back(Action(lists.at(of_kind(ActionKind::update)))); },
     "is updated a second time"},
    {"AnUpdateOfAUnitThatLivesElsewhere", [] { return of_two_stages(0); },
     [](Lists& lists) { lists.at(of_kind(ActionKind::update)).unit = 1; }, "unit 1 does not live here"},
    {"APassBehindTheScalars", [] { return lists_of_step(equal_stages(1, 2), "gpipe"); },
     [](Lists& lists) { lists.list().push_back(Action(lists.at(of_kind(ActionKind::forward)))); },
     "comes behind the sum of scalars"},
    {"AnotherQueue", [] { return lists_of_step(on_data_ranks(equal_stages(1, 2)), "gpipe"); },
     [](Lists& lists) { lists.at(of_kind(ActionKind::update)).queue = Queue::bulk; },
     "is in queue bulk, not compute"},
    {"AnotherGroup", [] { return lists_of_step(on_data_ranks(equal_stages(1, 2)), "gpipe"); },
     [](Lists& lists) { lists.at(of_kind(ActionKind::reduce)).group = Members::grid; },
     "is for group grid, not data"},
    {"AWaitForALaterAction", [] { return of_two_stages(0); },
     [](Lists& lists) { lists.at(of_kind(ActionKind::send)).after = {50}; },
     "waits for action 50, which is not an earlier one"},
    {"ASlabThatIsWrittenWhileASumReadsIt", with_slabs,
     without_waits([](const Action& action) { return is_backward_of_block(action, 1); }),
     "writes gradient slab 0 while the sum of unit 3 in block 3 over data may still read it"},
    {"APartThatStaysInASlabThatOthersWrite", with_slabs,
     [](Lists& lists) {
       lists.at([](const Action& a) { return a.kind == ActionKind::reduce && a.first == 3; }).apart = -1;
     },
     "writes gradient slab 0, where this rank's share of unit 3 in block 3 stays until its update"},
    {"TwoBlocksInOneSlabAtOnce", with_slabs,
     [](Lists& lists) {
       for (Action& action : lists.list())
         if (action.kind == ActionKind::reduce) action.slab = 0;
     },
     "while the sum of unit 3 in block 3 over data may still read it"},
    {"AReturnToASlabThatOthersHaveTaken", with_slabs_of_two,
     [](Lists& lists) {
       for (Action& action : lists.list())
         if (action.kind == ActionKind::reduce) action.slab = 0;
     },
     "which unit 3 in block 3 has taken over"},
    {"ASlabThatIsWrittenBeforeTheLastPartHasReadIt",
     [] { return lists_of_step(with_large_blocks(equal_stages(1, 1, 1, {}, 4)), "1f1b"); },
     [](Lists& lists) {
       for (Action& action : lists.list())
         if (is_backward(action))
           for (int& earlier : action.after)
             if (lists.list()[earlier].part == 2) --earlier;  // the part before
     },
     "may still read it"},
    {"GradientsThatAreNotZeroed", with_slabs_of_two,
     [](Lists& lists) { lists.at(of_kind(ActionKind::backward)).clears = false; },
     "adds to gradients that nobody has zeroed"},
    {"GradientsThatAreZeroedTwice", with_slabs_of_two,
     [](Lists& lists) { lists.at(of_kind(ActionKind::backward), 1).clears = true; },
     "zeroes gradients that others have added to"},
    {"APartTwice", in_parts, [](Lists& lists) { lists.at(is_sum_in_parts, 1).part = 0; },
     "comes out of turn (part 2 is due)"},
    {"APartOutOfTurn", in_parts,
     [](Lists& lists) { std::swap(lists.at(is_sum_in_parts, 0).part, lists.at(is_sum_in_parts, 1).part); },
     "comes out of turn (part 1 is due)"},
    {"APartOfSomethingElse", in_parts,
     [](Lists& lists) {
       Action& part = lists.at(is_sum_in_parts, 1);
       part.first = 1;
       part.last = 2;
     },
     "comes between the parts of something else (part 2 is due)"},
    {"AMissingLastPart", in_parts, [](Lists& lists) { lists.leave_out(lists.find(is_sum_in_parts, 2)); },
     "the gradient of unit 0 in block 0 is never summed over data, or not all of it"},
};

Lists with_a_table() { return subnets_with_a_table(1); }
Lists at_the_table() { return subnets_with_a_table(0); }
constexpr int table = 48 * 3;  // a unit
/// The last micro-batch's is in pieces.
bool is_whole_backward(const Action& action) { return is_backward(action) && action.micro_batch == 0; }
bool is_table(const Action& action) { return names_unit(action) && action.unit == table; }

const WrongList of_subnets[] = {
    {"AForwardBeforeAnOwnersUpdate",
     [] {
       Lists lists = with_a_table();
       lists.rules.order = SubnetOrder::free;
       lists = lists_of_subnets(lists.outline, lists.rules, 40, 1);
       lists.rules.order = SubnetOrder::causal;
       return lists;
     },
     [](Lists&) {}, "older subnets use"},
    {"AForwardThatDoesNotWaitForItsInput", with_a_table, without_waits(of_kind(ActionKind::forward), 5),
     "does not wait for the activation from rank 0"},
    {"ABackwardThatDoesNotWaitForItsInput", with_a_table, without_waits(is_whole_backward, 5),
     "does not wait for the gradient from rank 2"},
    {"ABufferThatIsWrittenWhileItIsSent", with_a_table,
     without_waits_for([](const Action& a) { return is_forward(a) && a.after.size() > 1; },
                       [](const Action& a) { return sends(a); }, 5),
     "may still use it"},
    {"ASlotThatIsReceivedIntoOneReaderTooEarly", with_a_table, none_waits(end_of(Payload::activation, false)),
     "may still read it"},
    {"AGradientThatArrivesBeforeTheForward", with_a_table, none_waits(end_of(Payload::gradient, false)),
     "may arrive before its forward has ended"},
    {"ASlotOfAnother", with_a_table, [](Lists& lists) { ++lists.at(of_kind(ActionKind::backward), 5).tape; },
     "does not hold it"},
    {"AForwardInAnotherSlotThanItsInput", with_a_table,
     [](Lists& lists) { lists.at(of_kind(ActionKind::forward), 5).tape = 60; },
     "looks for its input in arena 60, where it has not arrived"},
    {"ASlotThatIsTakenTwice", with_a_table,
     [](Lists& lists) {
       const SuchAction arrives = end_of(Payload::activation, false);
       int nth = 5;
       while (lists.at(arrives, nth).tape == lists.at(arrives, nth - 1).tape) ++nth;
       lists.at(arrives, nth).tape = lists.at(arrives, nth - 1).tape;
     },
     "still holds the tape of micro-batch"},
    {"MicroBatchesOfABackwardInAnotherOrder", with_a_table,
     [](Lists& lists) {
       const std::int64_t subnet = lists.at(is_whole_backward, 4).owner.number;
       for (Action& action : lists.list())
         if (is_backward(action) && action.owner.number == subnet)
           action.micro_batch = 1 - action.micro_batch;
     },
     "is next"},
    {"OtherBlocksThanTheCutSays", with_a_table,
     [](Lists& lists) { --lists.at(of_kind(ActionKind::forward), 5).last; },
     "chunk 1 is the blocks [12, 24)"},
    {"ASlabOfAnother", with_a_table,
     [](Lists& lists) {
       lists.at(of_kind(ActionKind::backward), 5).slab = 1 - lists.at(of_kind(ActionKind::backward), 5).slab;
     },
     "slab"},
    {"AnUpdateThatIsLeftOut", with_a_table,
     [](Lists& lists) { lists.leave_out(lists.find(of_kind(ActionKind::update), 5)); }, "older subnets use"},
    {"AnUpdateThatDoesNotWaitForItsSums", with_a_table, without_waits(of_kind(ActionKind::update), 5),
     "does not wait for the sum of unit"},
    {"ASumThatDoesNotWaitForTheLastBackward", with_a_table, none_waits(of_kind(ActionKind::reduce)),
     "does not wait for the last backward"},
    {"ASumOfAnotherUnit", with_a_table,
     [](Lists& lists) { lists.at(of_kind(ActionKind::reduce), 5).unit = 0; },
     "its subnet uses no unit 0 here"},
    {"AMessageThatIsLeftOut", with_a_table,
     [](Lists& lists) { lists.leave_out(lists.find(end_of(Payload::activation, true), 5)); },
     "of which nobody has read or sent all"},
    {"AMessageThatIsSentTwice", with_a_table,
     [](Lists& lists) {
       const int send = lists.find(end_of(Payload::activation, true), 5);
       lists.list()[lists.find(end_of(Payload::activation, true), 6)].micro_batch =
           lists.list()[send].micro_batch;
       lists.list()[lists.find(end_of(Payload::activation, true), 6)].owner.number =
           lists.list()[send].owner.number;
     },
     "sends what no pass has made for it"},
    {"WhatAllShareOneWindowEarly", at_the_table,
     [](Lists& lists) {
       const int update =
           lists.find([](const Action& a) { return a.kind == ActionKind::update && is_table(a); }, 1);
       Action early = lists.list()[update];
       early.after.clear();
       lists.list().insert(lists.list().begin() + update - 40, early);
       for (Action& action : lists.list())
         for (int& earlier : action.after) earlier += earlier >= update - 40 ? 1 : 0;
     },
     "of its subnets have passed"},
    {"WhatAllShareWithoutWhatTheOtherStageAdds", at_the_table,
     without_waits([](const Action& a) { return a.kind == ActionKind::update && is_table(a); }, 1),
     "does not wait for what others add"},
    {"WhatAllShareSentBeforeItIsSummed", at_the_table,
     none_waits([](const Action& a) { return is_table(a) && sends(a); }),
     "does not wait for what its subnets add"},
    {"WhatAllShareSummedBeforeItIsMade", at_the_table, none_waits(of_kind(ActionKind::reduce)),
     "does not wait for what its subnets add"},
    {"WhatAllShareThatArrivesOverWhatIsRead", at_the_table, none_waits(end_of(Payload::unit_gradient, false)),
     "may still be read"},
    {"AnExchangeThatIsLeftOut", at_the_table,
     [](Lists& lists) { lists.leave_out(lists.find(end_of(Payload::unit_gradient, true), 1)); },
     "comes out of turn"},
    {"TicketsThatDoNotAscend", with_a_table,
     [](Lists& lists) {
       const auto talks = [](const Action& action) { return is_communication(action); };
       std::swap(lists.at(talks, 8).ticket, lists.at(talks, 9).ticket);
     },
     "(they must ascend)"},
    {"AMessageThatIsSentBeforeItIsMade", with_a_table, without_waits(end_of(Payload::activation, true), 5),
     "does not wait for the pass that makes it"},
    {"AHalfOfABackward", with_a_table,
     [](Lists& lists) { lists.at(of_kind(ActionKind::backward), 5).kind = ActionKind::backward_input; },
     "has no place in a supernet's program"},
};

Lists on_lanes() { return subnets_on_lanes(); }

const WrongList of_lanes[] = {
    {"AMoveBeforeTheUpdateItFollows", on_lanes, without_waits(leaves_later, 5),
     "does not wait for what was last done to unit"},
    {"AnArrivalOverWhatIsStillRead", on_lanes,
     none_waits([](const Action& a) { return is_move(a) && !sends(a); }),
     "does not wait for what was last done to unit"},
    {"AMoveThatIsLeftOut", on_lanes,
     [](Lists& lists) {
       std::set<int> away;
       const Action head = lists.at([&](const Action& a) {
         if (is_move(a) && sends(a)) away.insert(a.units.begin(), a.units.end());
         return is_move(a) && !sends(a) && away.count(a.units.front()) > 0;
       });
       for (int left = head.parts; left > 0; --left)
         lists.leave_out(lists.find([&](const Action& a) {
           return is_move(a) && !sends(a) && a.peer == head.peer && a.owner.number == head.owner.number;
         }));
     },
     "is on another rank"},
    {"APartTooFew", on_lanes, [](Lists& lists) { lists.leave_out(lists.find(comes_later, 5) + 1); },
     "comes out of turn"},
    {"AUnitOfAMessageThatIsLeftOut", on_lanes,
     [](Lists& lists) {
       const int first = lists.find([](const Action& a) { return comes_later(a) && a.units.size() > 1; }, 2);
       const Action head = lists.list()[first];
       for (Action& action : lists.list())
         if (action.payload == head.payload && action.peer == head.peer &&
             action.owner.number == head.owner.number && action.kind == head.kind)
           action.units.pop_back();
     },
     "finds version"},
    {"AForwardThatDoesNotWaitForItsUnits", on_lanes,
     [](Lists& lists) {
       for (Action& action : lists.list())
         if (is_forward(action))
           std::erase_if(action.after, [&](int earlier) { return is_move(lists.list()[earlier]); });
     },
     "does not wait for units"},
    {"AMoveThatIsNotSent", on_lanes,
     [](Lists& lists) {
       lists.leave_out(lists.find([](const Action& a) { return leaves_later(a) && a.parts == 1; }));
     },
     "the unit state from rank 1 to rank 3"},
    {"AMoveOfNothing", on_lanes, [](Lists& lists) { lists.at(leaves_later, 5).units.clear(); },
     "moves no unit"},
};

Lists of_batches() { return batches_of_forwards(); }

const WrongList of_forwards[] = {
    {"AMessageThatArrivesWhereAnotherIsRead", of_batches, without_waits(of_kind(ActionKind::receive), 8),
     "may still use it"},
    {"AForwardThatDoesNotWaitForItsInput", of_batches, without_waits(of_kind(ActionKind::forward), 6),
     "does not wait for the activation"},
    {"AForwardThatWritesWhatIsSent", of_batches,
     without_waits_for(
         of_kind(ActionKind::forward), [](const Action& a) { return sends(a); }, 6),
     "may still use it"},
    {"ABatchBeforeTheOneBeforeIt", of_batches,
     [](Lists& lists) {
       std::swap(lists.at(of_kind(ActionKind::forward), 4).owner.number,
                 lists.at(of_kind(ActionKind::forward), 6).owner.number);
     },
     "does not wait for the activation"},
    {"AForwardFromTheOtherBuffer", of_batches,
     [](Lists& lists) {
       Action& forward = lists.at(of_kind(ActionKind::forward), 6);
       forward.from_buffer = 1 - forward.from_buffer;
     },
     "finds something else in buffer"},
    {"AForwardThatIsLeftOut", of_batches,
     [](Lists& lists) {
       lists.list().erase(lists.list().begin() + lists.find(of_kind(ActionKind::forward), 6),
                          lists.list().end());
     },
     "is missing"},
    {"AMessageOutOfTurn", of_batches,
     [](Lists& lists) {
       std::swap(lists.at(of_kind(ActionKind::send), 4).ticket,
                 lists.at(of_kind(ActionKind::send), 6).ticket);
     },
     "(they must ascend)"},
    {"ABatchThatNobodyHasAskedFor", of_batches, [](Lists& lists) { --lists.batches; },
     "its subnet has ended, or is not known"},
    {"ABackward", of_batches,
     [](Lists& lists) { lists.at(of_kind(ActionKind::forward), 6).kind = ActionKind::backward; },
     "has no place in an evaluation"},
};

class IsFound : public testing::TestWithParam<WrongList> {};

TEST_P(IsFound, AndSaidWithItsReason) {
  Lists lists = GetParam().make();
  GetParam().spoil(lists);
  EXPECT_THAT(lists.errors(), testing::Contains(testing::HasSubstr(GetParam().sentence)));
}

const auto name_of_row = [](const auto& row) { return std::string(row.param.name); };
INSTANTIATE_TEST_SUITE_P(InSteps, IsFound, testing::ValuesIn(of_steps), name_of_row);
INSTANTIATE_TEST_SUITE_P(InSubnets, IsFound, testing::ValuesIn(of_subnets), name_of_row);
INSTANTIATE_TEST_SUITE_P(OnLanes, IsFound, testing::ValuesIn(of_lanes), name_of_row);
INSTANTIATE_TEST_SUITE_P(InForwards, IsFound, testing::ValuesIn(of_forwards), name_of_row);

}  // namespace
}  // namespace mindpipe
