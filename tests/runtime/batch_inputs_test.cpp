#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend_over.h"
#include "runtime/predicted.h"
#include "runtime/worker.h"

// Batches go to the device through the queue copy_in, beside the step before where there are two rooms.
namespace mindpipe {
namespace {

/// A device that remembers what was asked of its queues while a batch was brought.
class Remembering final : public BackendOver {
 public:
  using BackendOver::BackendOver;
  void use_queue(Queue queue) override { queue_ = queue; }
  std::uint64_t record(Queue queue) override { return records.emplace_back(queue), records.size() - 1; }
  void wait(Queue queue, std::uint64_t event) override { waits.emplace_back(queue, event); }
  void upload(const void* host, const Tensor& to) override {
    uploads.emplace_back(queue_, to.data);
    BackendOver::upload(host, to);
  }
  std::vector<Queue> records;
  std::vector<std::pair<Queue, std::uint64_t>> waits;
  std::vector<std::pair<Queue, const void*>> uploads;

 private:
  Queue queue_ = Queue::compute;
};

/// A worker that only brings batches, on such a device.
struct Bringing {
  Remembering* device = nullptr;
  Config config = resolve(small_run());
  std::unique_ptr<Worker> worker;
  Corpus corpus{config.data, Subset::train, fields_of(config), config.seed};

  explicit Bringing(int rooms) {
    RunPlan plan = make_run_plan(config);
    plan.held_batches = rooms;
    worker = std::make_unique<Worker>(
        config, World{}, std::move(plan),
        [this](const Config& c, Memory& memory, int threads, const World& world) {
          auto made = std::make_unique<Remembering>(make_backend(c, memory, threads, world));
          device = made.get();
          return made;
        });
  }
  /// Brings a batch by `bring`: the event behind which it was copied, and the events before and behind.
  struct Brought {
    std::uint64_t behind, first, end;
    const void* room;
  };
  template <class Bring>
  Brought brought(const Bring& bring) {
    device->waits.clear();
    device->uploads.clear();
    const std::uint64_t first = device->records.size();
    bring(worker->inputs());
    EXPECT_FALSE(device->uploads.empty());
    for (const auto& [queue, room] : device->uploads) EXPECT_EQ(queue, Queue::copy_in);
    EXPECT_EQ(device->waits.size(), 2u) << "the copies for the readers before, the readers for the copies";
    EXPECT_EQ(device->waits.front().first, Queue::copy_in);
    EXPECT_EQ(device->records[device->waits.front().second], Queue::compute);
    EXPECT_EQ(device->waits.back().first, Queue::compute);
    EXPECT_EQ(device->records[device->waits.back().second], Queue::copy_in);
    EXPECT_EQ(device->waits.back().second + 1, device->records.size()) << "it is behind all copies";
    return {device->waits.front().second, first, device->records.size(), device->uploads.front().second};
  }
  Brought loaded() {
    return brought([&](BatchInputs& inputs) { inputs.load(corpus, 0); });
  }
  Brought held(std::int64_t batch) {
    return brought([&](BatchInputs& inputs) { inputs.hold(corpus, batch); });
  }
};

TEST(BatchInputs, ABatchIsCopiedBesideTheStepBeforeWhereThereAreTwoRooms) {
  Bringing bringing(2);
  std::vector<Bringing::Brought> all;
  for (int step = 0; step < 5; ++step) all.push_back(bringing.loaded());
  for (std::size_t step = 2; step < all.size(); ++step) {
    EXPECT_EQ(all[step].room, all[step - 2].room);
    EXPECT_NE(all[step].room, all[step - 1].room);
    EXPECT_GE(all[step].behind, all[step - 1].first) << "behind the step that reads this room";
    EXPECT_LT(all[step].behind, all[step - 1].end) << "and not behind the one after";
  }
}

TEST(BatchInputs, ABatchWaitsForTheStepBeforeWhereThereIsOneRoom) {
  Bringing bringing(1);
  for (int step = 0; step < 3; ++step) {
    const auto [behind, first, end, room] = bringing.loaded();
    EXPECT_GE(behind, first) << "all that computes so far";
  }
}

TEST(BatchInputs, WhatWasHeldForEvaluationsIsReadUntilAnotherComes) {
  Bringing bringing(2);
  bringing.loaded();
  bringing.loaded();
  for (const std::int64_t batch : {0, 1}) {
    const auto [behind, first, end, room] = bringing.held(batch);
    EXPECT_GE(behind, first) << "a step may have read the room until now";
  }
  for (int step = 0; step < 2; ++step) {
    const auto [behind, first, end, room] = bringing.loaded();
    EXPECT_GE(behind, first) << "evaluations may have read the room until now";
  }
}

}  // namespace
}  // namespace mindpipe
