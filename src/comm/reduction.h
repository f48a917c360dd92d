#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend.h"
#include "comm/exchange.h"
#include "comm/ledger.h"
#include "core/memory.h"

namespace mindpipe {

/// Sums and gathers of slabs between the ranks of a group that go on while the rank computes: begun, moved by `progress`,
/// asked for later. They run in parts, first in, first out; all ranks of the group begin the same ones in the same order.
///
/// A slab is the root of this rank's own subtree of logical shards; the rest of the tree runs over the ranks, every node
/// rounded to the dtype, as in Communicator. `bounds` cuts a slab among the ranks: rank r's own part is elements
/// [bounds[r], bounds[r + 1]); without it the parts are as equal as they can be.
class Reductions {
 public:
  using Request = std::int64_t;  ///< names something that was begun

  Reductions(Backend& backend, std::unique_ptr<Group> group, Axis axis, TrafficLedger* ledger = nullptr);
  /// A group of one: everything is done at once.
  explicit Reductions(Backend& backend) : backend_(backend) {}

  int size() const { return group_ ? group_->size() : 1; }
  int rank() const { return group_ ? group_->rank() : 0; }

  /// slab = the tree sum of all ranks' slabs.
  Request sum(const Tensor& slab);
  /// This rank's own part of the tree sum goes to `own`, or to its place in the slab; the other parts stay as they are.
  Request sum_scatter(const Tensor& slab, std::span<const std::int64_t> bounds = {}, const Tensor& own = {});
  /// The other ranks' parts arrive from where they are owned.
  Request gather(const Tensor& slab, std::span<const std::int64_t> bounds = {});

  bool done(Request request) const { return request < finished_; }
  /// Moves what can be moved; begins no part while a higher class has something on its way out.
  void progress();
  void wait(Request request);
  void wait_all() { wait(next_ - 1); }
  std::size_t under_way() const { return queue_.size(); }
  std::vector<std::int64_t> equal_bounds(std::int64_t count) const;
  /// What a request that is not done waits for, in words.
  std::string describe(Request request) const;

 private:
  struct Job {
    Exchange::Halves halves;
    Tensor slab, own;
    std::vector<std::int64_t> bounds;
    int parts, begun = 0, finished = 0;
    std::int64_t bytes_sent = 0, start_ns = now_ns();
    const char* name() const { return halves == Exchange::Halves::both ? "sum" : halves == Exchange::Halves::scatter ? "sum_scatter" : "gather"; }
    TrafficClass kind() const { return halves == Exchange::Halves::gather ? TrafficClass::values : TrafficClass::gradients; }
  };
  struct Part {
    Exchange exchange;
    Job* job;
    int slot;
  };
  Request begin(Exchange::Halves halves, const Tensor& slab, std::span<const std::int64_t> bounds, const Tensor& own = {});
  bool begin_part();
  void finish_parts();

  Backend& backend_;
  std::unique_ptr<Group> group_;
  Axis axis_ = Axis::data;
  TrafficLedger* ledger_ = nullptr;
  Arena scratch_;
  std::deque<Job> queue_;   ///< not finished, in order
  std::deque<Part> parts_;  ///< under way, in order
  std::vector<int> free_slots_;
  Request next_ = 0, finished_ = 0;
  bool moving_ = false;     ///< in progress(): an addition of its own comes by here again
};

}  // namespace mindpipe
