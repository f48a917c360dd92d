#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend.h"
#include "comm/exchange.h"
#include "comm/ledger.h"
#include "core/bulk_parts.h"
#include "core/memory.h"

namespace mindpipe {

/// Sums and gathers between the ranks of a group that go on while the rank computes: begun, moved by
/// `progress`, asked for later. First in, first out; all ranks of the group begin the same ones in the same
/// order. The caller begins what is long in parts (core/bulk_parts.h), a few of which are under way at a
/// time.
///
/// Each rank brings the roots of what it holds of the tree over logical shards; the rest of the tree runs
/// over the ranks, every node rounded to the dtype, as in Communicator. Sums of integers have no order: each
/// rank adds up its shards and brings one root. pieces[r] is the piece that rank r
/// owns; sizes are equal on all ranks and may be zero. Where the group has a transport, messages and
/// additions go into the device's current queue at once, and are done for the host with that.
class Reductions {
 public:
  using Request = std::int64_t;  ///< names something that was begun

  /// `shards`: logical ones of the axis; 0: one for each rank. `part_bytes`: how long the parts are that the
  /// caller cuts, alike on all ranks.
  Reductions(Backend& backend, std::unique_ptr<Group> group, Axis axis, TrafficLedger* ledger = nullptr,
             int shards = 0, std::int64_t part_bytes = most_part_bytes);
  /// A group of one: everything is done at once.
  explicit Reductions(Backend& backend) : backend_(backend) {}

  /// Takes the memory for what arrives of `parts_under_way` parts, `part_scratch` bytes for each:
  /// Exchange::scratch_bytes of this rank's own piece. Without it, the memory grows to the largest parts.
  void reserve(std::size_t part_scratch);
  /// Lets all messages pass ports, where the backend's memory is counted.
  void pass(PaperPorts& ports) { ports_ = &ports; }

  int size() const { return group_ ? group_->size() : 1; }
  int rank() const { return group_ ? group_->rank() : 0; }
  using Pieces = Exchange::Pieces;

  /// Begins a sum: all pieces = the tree sums of all ranks' pieces. `pieces` are those of this rank's last
  /// root, `earlier` those of the roots before it, which are used up.
  Request sum(Pieces pieces, std::vector<Pieces> earlier = {}) {
    return begin(tree_, Exchange::Halves::both, std::move(pieces), std::move(earlier), {});
  }
  /// Begins a sum of integers: all pieces = the sums of all ranks' pieces, however many shards each rank has.
  Request sum_of_integers(Pieces pieces) {
    return begin(of_ranks_, Exchange::Halves::both, std::move(pieces), {}, {});
  }
  /// Begins a sum whose result every rank gets of its own piece only, in `own` or in the piece's place; the
  /// other pieces stay as they are.
  Request sum_scatter(Pieces pieces, const Tensor& own = {}, std::vector<Pieces> earlier = {}) {
    return begin(tree_, Exchange::Halves::scatter, std::move(pieces), std::move(earlier), own);
  }
  /// Begins a gather: the other ranks' pieces arrive from their owners.
  Request gather(Pieces pieces) { return begin(tree_, Exchange::Halves::gather, std::move(pieces), {}, {}); }

  /// Whether one more sum or gather of this class may begin: no higher class has something on its way out,
  /// and there is memory for what arrives.
  bool may_begin(TrafficClass kind) const;
  bool done(Request request) const { return request < finished_; }
  /// Moves everything under way as far as possible without waiting.
  void progress();
  void wait(Request request);
  std::size_t under_way() const { return queue_.size(); }
  /// When one that is done was over, in the time of the ports that it passed, if any. Asked once of
  /// each.
  std::optional<std::int64_t> take_end(Request request);
  /// Says in words what a request that is not done waits for.
  std::string describe(Request request) const;

 private:
  struct Job {
    const SumTree* tree;
    Exchange::Halves halves;
    Pieces pieces;
    std::vector<Pieces> roots;
    Tensor own;
    std::optional<Exchange> exchange = {};
    int area = -1;
    bool finished = false;
    std::int64_t moment = 0;  ///< from which it may pass ports
    std::int64_t start_ns = now_ns();
    const char* name() const {
      return halves == Exchange::Halves::both      ? "sum"
             : halves == Exchange::Halves::scatter ? "sum_scatter"
                                                   : "gather";
    }
    TrafficClass kind() const {
      return halves == Exchange::Halves::gather ? TrafficClass::values : TrafficClass::gradients;
    }
  };
  Request begin(const SumTree& tree, Exchange::Halves halves, Pieces pieces, std::vector<Pieces> earlier,
                const Tensor& own);
  bool begin_exchange();
  void finish_exchanges();

  Backend& backend_;
  std::unique_ptr<Group> group_;
  SumTree tree_;      ///< over logical shards
  SumTree of_ranks_;  ///< one leaf a rank
  Axis axis_ = Axis::data;
  TrafficLedger* ledger_ = nullptr;
  std::int64_t part_bytes_ = most_part_bytes;
  PaperPorts* ports_ = nullptr;
  std::map<Request, std::int64_t> ended_;  ///< in the time of ports; nobody has asked yet
  std::int64_t last_end_ = 0;
  std::array<WorkArea, parts_under_way> scratch_;  ///< what arrives of each exchange under way
  std::deque<Job> queue_;                          ///< jobs that are not finished, in order
  std::deque<int> free_areas_;
  Request next_ = 0, finished_ = 0;
  bool moving_ = false;  ///< inside progress(), which an addition calls again
};

}  // namespace mindpipe
