#include "runtime/device_order.h"

#include <gtest/gtest.h>

#include "comm/plain_backend.h"
#include "late_backend.h"

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
  DeviceOrder order(list);
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

TEST(DeviceOrder, RefusesAListThatWaitsForWhatComesLater) {
  std::vector<Action> list = ring_of_two(1);
  list[0].after = {1};
  EXPECT_THROW(DeviceOrder{list}, Error);
}

}  // namespace
}  // namespace mindpipe
