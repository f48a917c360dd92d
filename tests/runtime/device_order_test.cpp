#include "runtime/device_order.h"

#include <gtest/gtest.h>

#include "comm/plain_backend.h"
#include "late_backend.h"
#include "runtime/stretches.h"

namespace mindpipe {
namespace {

/// Compute writes a buffer, a message carries it away, bulk adds to what arrived: each time in other buffers
/// of a ring of two, which are used again as the lists of a pipeline do it.
std::vector<Action> ring_of_two(int rounds) {
  std::vector<Action> list;
  for (int round = 0; round < rounds; ++round) {
    Action write = action_of(ActionKind::forward), carry = action_of(ActionKind::send),
           add = action_of(ActionKind::reduce);
    carry.payload = Payload::activation;
    if (round >= 2) {
      write.after = {3 * (round - 2) + 1};
      carry.after = {3 * (round - 2) + 2};
    }
    carry.after.push_back(3 * round);
    add.after = {3 * round + 1};
    list.insert(list.end(), {write, carry, add});
  }
  return list;
}

/// What all the rounds of two steps have added up to in the end.
float outcome(const std::vector<Action>& list, int rounds, int lots) {
  Memory memory(Memory::Kind::host);
  LateBackend backend(std::make_unique<PlainBackend>(memory), lots);
  std::vector<float> source(2 * rounds), written(2, 0), carried(2, 0), total(1, 0);
  const auto one = [](std::vector<float>& of, int at) { return Tensor{&of[at], {1}, DType::f32}; };
  DeviceOrder order(true);
  order.grow(list, 0);
  for (int step = 0; step < 2; ++step) {
    order.begin_step(backend);
    for (int round = 0; round < rounds; ++round) {
      const int slot = round % 2, at = step * rounds + round;
      source[at] = static_cast<float>(1 << (at % 20));
      order.before(backend, 3 * round);
      backend.copy(one(source, at), one(written, slot));
      order.behind(backend, 3 * round);
      order.before(backend, 3 * round + 1);
      backend.copy(one(written, slot), one(carried, slot));
      order.behind(backend, 3 * round + 1);
      order.before(backend, 3 * round + 2);
      backend.add({one(carried, slot), one(total, 0), one(total, 0)});
      order.behind(backend, 3 * round + 2);
    }
    order.end_step(backend);
  }
  const std::uint64_t last = backend.record(Queue::compute);
  for (int turn = 0; turn < 100 * rounds; ++turn) backend.finished(last);  // runs queues drawn by lot
  backend.synchronize();
  return total[0];
}

TEST(DeviceOrder, WhatComesAfterIsAfterInWhateverOrderQueuesRun) {
  constexpr int rounds = 10;
  const float wanted = static_cast<float>((1 << (2 * rounds)) - 1);
  for (int lots = 0; lots < 50; ++lots) ASSERT_EQ(outcome(ring_of_two(rounds), rounds, lots), wanted) << lots;
}

TEST(DeviceOrder, WithoutWhatComesAfterWhatNumbersAreOther) {
  constexpr int rounds = 10;
  const float wanted = static_cast<float>((1 << (2 * rounds)) - 1);
  for (int kind = 0; kind < 3; ++kind) {
    std::vector<Action> list = ring_of_two(rounds);
    for (int i = kind; i < static_cast<int>(list.size()); i += 3) list[i].after.clear();
    int other = 0;
    for (int lots = 0; lots < 50; ++lots) other += outcome(list, rounds, lots) != wanted ? 1 : 0;
    EXPECT_GT(other, 10) << "of 50, where actions " << kind << ", " << kind + 3 << " ... wait for nothing";
  }
}

/// What all rounds of a list that grows have added up to in the end, where the host is up to two stretches
/// ahead of the device and the list holds no more. `wrong`: a mistake in numbers across cuts.
float grown_outcome(int rounds, int draw, int wrong) {
  const std::vector<Action> list = ring_of_two(rounds);
  Memory memory(Memory::Kind::host);
  LateBackend backend(std::make_unique<PlainBackend>(memory), draw);
  Script script(Outline{}, nullptr, backend, {.at_once = 64, .queued = true});
  StretchLots lots(draw, 6);
  std::vector<float> source(rounds), written(2, 0), carried(2, 0), total(1, 0);
  const auto one = [](std::vector<float>& of, std::size_t at) { return Tensor{&of[at], {1}, DType::f32}; };
  std::deque<std::size_t> under_way;  // actions of stretches that the device may not have come to
  script.order.begin_step(backend);
  for (std::size_t first = 0, last = 0; first < list.size(); first = last) {
    last = std::min(list.size(), first + lots.length());
    script.extend(Unproved::taken(cut_out(list, first, last, wrong)));
    for (std::size_t number = first; number < last; ++number) {
      const std::size_t round = number / 3, slot = round % 2;
      const int index = static_cast<int>(number) - static_cast<int>(script.dropped);
      source[round] = static_cast<float>(1 << round);
      script.order.before(backend, index);
      if (number % 3 == 0) backend.copy(one(source, round), one(written, slot));
      if (number % 3 == 1) backend.copy(one(written, slot), one(carried, slot));
      if (number % 3 == 2) backend.add({one(carried, slot), one(total, 0), one(total, 0)});
      script.order.behind(backend, index);
    }
    script.order.note_end(backend);
    under_way.push_back(last - first);
    if (under_way.size() < 2) continue;
    while (!script.order.has_come_to_an_end(backend)) {
    }
    script.order.forget_end();
    for (std::size_t i = 0; i < under_way.front(); ++i)
      script.cursors.ended[script.cursors.ended_for_good()] = 1;
    under_way.pop_front();
    EXPECT_LE(script.list.size(), 3 * 6u);
  }
  backend.synchronize();
  return total[0];
}

TEST(DeviceOrder, WhatComesAfterActionsOfEarlierStretchesIsAfterThem) {
  constexpr int rounds = 20;
  for (int draw = 0; draw < 100; ++draw)
    ASSERT_EQ(grown_outcome(rounds, draw, 0), static_cast<float>((1 << rounds) - 1)) << draw;
}

TEST(DeviceOrder, NumbersAcrossCutsThatAreOffByOneGiveOtherNumbers) {
  constexpr int rounds = 20;
  int other = 0;
  for (int draw = 0; draw < 100; ++draw) try {
      other += grown_outcome(rounds, draw, -1) != static_cast<float>((1 << rounds) - 1) ? 1 : 0;
    } catch (const Error&) {
      ++other;
    }
  EXPECT_GT(other, 10) << "of 100";
}

/// How much order puts into a device's queues for a list whose actions do nothing.
std::int64_t issued_for(const std::vector<Action>& list, bool closed) {
  Memory memory(Memory::Kind::host);
  LateBackend backend(std::make_unique<PlainBackend>(memory), 0);
  DeviceOrder order(closed);
  order.grow(list, 0);
  for (int action = 0; action < static_cast<int>(list.size()); ++action) {
    order.before(backend, action);
    order.behind(backend, action);
  }
  return backend.issued();
}

TEST(DeviceOrder, AClosedListHasEventsOnlyWhereOneIsAwaited) {
  const std::vector<Action> passes(7, action_of(ActionKind::forward)), ring = ring_of_two(1);
  EXPECT_EQ(issued_for(passes, true), 0);
  EXPECT_EQ(issued_for(passes, false), 7) << "a later stretch may wait for any of them";
  EXPECT_EQ(issued_for(ring, true), 4) << "two events and two waits";
  EXPECT_EQ(issued_for(ring, false), 5);
}

TEST(DeviceOrder, RefusesAListThatWaitsForWhatComesLater) {
  std::vector<Action> list = ring_of_two(1);
  list[0].after = {1};
  EXPECT_THROW(DeviceOrder(true).grow(list, 0), Error);
}

}  // namespace
}  // namespace mindpipe
