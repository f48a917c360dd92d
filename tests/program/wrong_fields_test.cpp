#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/wrong_list.h"

// What an action can name that its kind has no use for, or that others of its kind name otherwise, what can
// be wrong with copies of state, and what the checker says to it.
namespace mindpipe {
namespace {

Lists of_stages() { return lists_of_step(equal_stages(2, 4, 1, {}, 2), "1f1b"); }
Lists at_the_end() {
  Lists lists = of_stages();
  lists.rank = 1;
  return lists;
}
Lists halves_of_one_stage() { return lists_of_halves(equal_stages(1, 4)); }
Lists on_replicas() { return lists_of_step(on_data_ranks(equal_stages(1, 2, 1, {}, 2)), "1f1b"); }
/// Gradients take turns in slabs, and come in three parts.
Lists in_turns() {
  Outline outline = in_slabs(equal_stages(1, 1, 1, {}, 4));
  for (UnitCost& unit : outline.units) unit.gradients = 10 << 20;
  return lists_of_step(outline, "1f1b");
}
Lists with_an_encoder() {
  Lists lists = lists_of_step(with_everything(equal_stages(3, 4, 1, {}, 2)), "1f1b");
  lists.rank = 2;
  return lists;
}
/// One stage of four units, of which the third is fetched into the slot of the first.
Lists from_host() { return lists_of_step(kept_on_host(equal_stages(1, 2, 1, {}, 4)), "1f1b"); }
Lists of_space() { return subnets_with_a_table(1); }
Lists lanes_of_space() { return subnets_on_lanes(); }

bool moves_out(const Action& action) { return action.kind == ActionKind::reduce && action.apart >= 0; }
bool stays(const Action& action) { return action.kind == ActionKind::reduce && action.apart < 0; }
bool is_early_piece(const Action& action) {
  return is_backward(action) && action.micro_batch == 3 && action.first == 3;
}

const WrongList of_fields[] = {
    {"ALaterPartThatStaysInItsSlab", in_turns, naming(moves_out, &Action::apart, -1, 1),
     "names place apart -1, the parts before it 0"},
    {"AFirstPartThatStaysInItsSlab", in_turns, naming(moves_out, &Action::apart, -1),
     "names place apart 0, the parts before it -1"},
    {"ALastPartThatStaysInItsSlab", in_turns, naming(moves_out, &Action::apart, -1, 2),
     "names place apart -1, the parts before it 0"},
    {"APartInAnotherPlaceApart", in_turns, naming(moves_out, &Action::apart, 7, 1),
     "names place apart 7, the parts before it 0"},
    {"TwoSharesInOnePlaceApart", in_turns,
     [](Lists& lists) {
       for (Action& action : lists.list())
         if (action.apart > 0) action.apart = 0;
     },
     "names place apart 0, which has the share of unit 3 in block 3"},
    {"AShareThatMovesOutForNobody", in_turns,
     [](Lists& lists) {
       const int block = lists.at(stays).first;
       for (Action& action : lists.list())
         if (stays(action) && action.first == block) action.apart = 7;
     },
     "moves out of gradient slab"},
    {"APlaceApartWhereGradientsAreWhole", on_replicas, naming(of_kind(ActionKind::reduce), &Action::apart, 0),
     "names place apart 0, but has no use for it"},
    {"ASlabWhereGradientsAreWhole", on_replicas, naming(of_kind(ActionKind::reduce), &Action::slab, 0),
     "names gradient slab 0, but has no use for it"},
    {"ASlabOfAForward", of_stages, naming(of_kind(ActionKind::forward), &Action::slab, 0),
     "names gradient slab 0, but has no use for it"},
    {"ASlabOfABackward", of_stages, naming(of_kind(ActionKind::backward), &Action::slab, 0),
     "names gradient slab 0, but has no use for it"},
    {"ASlabOfAnUpdate", of_stages, naming(of_kind(ActionKind::update), &Action::slab, 0),
     "names gradient slab 0, but has no use for it"},
    {"APassOfASubnetInAStep", of_stages,
     [](Lists& lists) { lists.at(of_kind(ActionKind::forward)).owner.of = Owner::subnet; },
     "is the work of a subnet"},
    {"APassOfAWindow", of_space,
     [](Lists& lists) { lists.at(of_kind(ActionKind::forward)).owner.of = Owner::window; },
     "is the work of a window"},
    {"AMoveOfAStep", lanes_of_space,
     [](Lists& lists) {
       lists.at([](const Action& action) { return is_move(action); }).owner.of = Owner::step;
     },
     "is the work of a step"},
    {"AnUpdateOfBlocks", of_stages, naming(of_kind(ActionKind::update), &Action::last, 1),
     "names the blocks [0, 1), but is of none"},
    {"APassThatBecomesAnUpdate", of_stages,
     [](Lists& lists) { lists.at(of_kind(ActionKind::backward)).kind = ActionKind::update; },
     "there is no unit -1"},
    {"AnUpdateThatNamesNoUnit", of_stages,
     [](Lists& lists) {
       Action& update = lists.at(of_kind(ActionKind::update));
       update.unit = -1;
       update.last = 1;
     },
     "there is no unit -1"},
    {"AUnitOfAPass", of_stages, naming(of_kind(ActionKind::forward), &Action::unit, 0),
     "names unit 0, but has no use for it"},
    {"APassOfNoBlock", of_stages,
     [](Lists& lists) {
       Action none = lists.at(of_kind(ActionKind::backward));
       none.first = none.last;
       lists.at(of_kind(ActionKind::backward)) = none;
     },
     "runs no block"},
    {"ASumOfTwoBlocks", on_replicas, naming(of_kind(ActionKind::reduce), &Action::first, 0),
     "sums the gradient of 2 blocks, not of one"},
    {"ABufferThatTheFirstForwardReads", of_stages,
     naming(of_kind(ActionKind::forward), &Action::from_buffer, 0),
     "reads buffer 0, but takes nothing in from one"},
    {"ABufferThatTheLastForwardWrites", at_the_end,
     naming(of_kind(ActionKind::forward), &Action::to_buffer, 0),
     "writes buffer 0, but leaves nothing for a neighbour"},
    {"ABufferThatTheFirstBackwardReads", at_the_end,
     naming(of_kind(ActionKind::backward), &Action::from_buffer, 0),
     "reads buffer 0, but takes nothing in from one"},
    {"ABufferThatTheLastBackwardWrites", of_stages,
     naming(of_kind(ActionKind::backward), &Action::to_buffer, 0),
     "writes buffer 0, but leaves nothing for a neighbour"},
    {"ABufferThatAnEarlyPieceWrites", at_the_end, naming(is_early_piece, &Action::to_buffer, 0),
     "writes buffer 0, but leaves nothing for a neighbour"},
    {"AnEncodersOutputInAnotherBuffer", with_an_encoder,
     [](Lists& lists) {
       int buffers = 0;
       for (const Action& action : lists.list()) buffers = std::max(buffers, action.to_buffer + 1);
       lists.at(end_of(Payload::encoder_output, false)).to_buffer = buffers;
     },
     "finds but a part of its input in buffer"},
    {"ABufferThatASendWrites", of_stages, naming(of_kind(ActionKind::send), &Action::to_buffer, 0),
     "names buffer to write 0, but has no use for it"},
    {"ABufferThatAReceiveReads", of_stages, naming(of_kind(ActionKind::receive), &Action::from_buffer, 0),
     "names buffer to read 0, but has no use for it"},
    {"ABufferThatTheSecondHalfReads", halves_of_one_stage,
     naming(of_kind(ActionKind::backward_weight), &Action::from_buffer, 0),
     "names buffer to read 0, but has no use for it"},
    {"AnArenaThatAWholeBackwardPutsOffInto", of_stages,
     naming(of_kind(ActionKind::backward), &Action::waiting, 0),
     "names arena of what is put off 0, but has no use for it"},
    {"AnArenaOfAnUpdate", of_stages, naming(of_kind(ActionKind::update), &Action::tape, 0),
     "names arena 0, but has no use for it"},
    {"AMicroBatchOfAnUpdate", of_stages, naming(of_kind(ActionKind::update), &Action::micro_batch, 0),
     "names micro-batch 0, but has no use for it"},
    {"APeerOfAPass", of_stages, naming(of_kind(ActionKind::forward), &Action::peer, 1),
     "names peer 1, but has no use for it"},
    {"AFoldOfAForward", of_stages, [](Lists& lists) { lists.at(of_kind(ActionKind::forward)).fold = true; },
     "folds gradients, but adds to none"},
    {"UnitsOfAPass", of_stages, [](Lists& lists) { lists.at(of_kind(ActionKind::forward)).units = {0}; },
     "names units, but moves none"},
    {"APayloadOfAPass", of_stages,
     [](Lists& lists) { lists.at(of_kind(ActionKind::forward)).payload = Payload::activation; },
     "has the payload activation"},
    {"ASlabOfASubnetsForward", of_space, naming(of_kind(ActionKind::forward), &Action::slab, 0),
     "names gradient slab 0, but has no use for it"},
    {"ABufferThatASubnetsForwardReads", of_space,
     naming(of_kind(ActionKind::forward), &Action::from_buffer, 0),
     "names buffer to read 0, but has no use for it"},
    {"AUnitOfASubnetsUpdate", of_space, naming(of_kind(ActionKind::update), &Action::unit, 0),
     "names unit 0, but has no use for it"},
};

const WrongList of_copies[] = {
    {"AFetchIntoASlotThatIsStillUsed", from_host, without_waits(of_kind(ActionKind::fetch), 2),
     "takes the slot of unit 0, whose state may still be there"},
    {"AFetchThatIsLeftOut", from_host,
     [](Lists& lists) { lists.leave_out(lists.find(of_kind(ActionKind::fetch), 1)); },
     "does not wait for the unit's state, which is on the host"},
    {"AFetchOfAnotherUnit", from_host, [](Lists& lists) { lists.at(of_kind(ActionKind::fetch), 1).unit = 0; },
     "runs a second time"},
    {"AnUpdateThatDoesNotWaitForItsState", from_host,
     without_waits_for(of_kind(ActionKind::update), of_kind(ActionKind::fetch), 2),
     "does not wait for the unit's state, which is on the host"},
    {"AnEvictionBeforeTheUpdate", from_host, without_waits(of_kind(ActionKind::evict), 0),
     "does not wait for the update"},
    {"AnEvictionThatIsLeftOut", from_host,
     [](Lists& lists) { lists.leave_out(lists.find(of_kind(ActionKind::evict), 3)); },
     "the state of unit 3 never goes back to the host"},
    {"AnEvictionTwice", from_host, [](Lists& lists) { lists.at(of_kind(ActionKind::evict), 1).unit = 0; },
     "runs a second time"},
    {"ACopyOfStateThatIsOnTheDevice", from_host, [](Lists& lists) { lists.outline.state_on_host = false; },
     "has no place in a step"},
};

class IsFoundInAField : public testing::TestWithParam<WrongList> {};

TEST_P(IsFoundInAField, AndSaidWithItsReason) {
  Lists lists = GetParam().make();
  EXPECT_THAT(lists.errors(), testing::IsEmpty());
  GetParam().spoil(lists);
  EXPECT_THAT(lists.errors(), testing::Contains(testing::HasSubstr(GetParam().sentence)));
}

INSTANTIATE_TEST_SUITE_P(Lists, IsFoundInAField, testing::ValuesIn(of_fields),
                         [](const auto& row) { return std::string(row.param.name); });
INSTANTIATE_TEST_SUITE_P(Copies, IsFoundInAField, testing::ValuesIn(of_copies),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace mindpipe
