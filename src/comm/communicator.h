#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend.h"
#include "comm/combine.h"
#include "comm/ledger.h"
#include "core/memory.h"
#include "core/sum_tree.h"

namespace mindpipe {

class Group;
class Exchange;
struct Route;

/// One exchange between the ranks that share a product: its times are zero on paper, its bytes those sent.
struct TensorSum {
  const char* operation = "";
  std::int64_t start = 0, end = 0;  ///< nanoseconds
  std::int64_t bytes = 0;
};

/// A sum, maximum or gather that a layer has asked for, of whatever number of ranks: a group of one tells of
/// it, too.
struct AskedExchange {
  const char* operation = "";
  Tensor from, to;
};

/// A place in a group that exists on paper only.
struct OnPaper {
  int size = 1, rank = 0;
};

/// What a layer sees of the ranks that share its work: the sums over logical shards, whoever computes which.
///
/// The arithmetic is cut into `logical()` shards; this rank computes `local_shards()` of them, from
/// `first_shard()` on. Every sum follows one binary tree over the logical shards, neighbours first, every
/// node rounded to the dtype, so its bits are the same for every number of ranks that divides them. A rank
/// whose shards are no whole subtree hands on several sums. A group of one calls no MPI.
///
/// Every function that sums, gathers or broadcasts is collective: every rank of the group calls the same
/// functions in the same order with the same shapes. Shards are used up: what stands in `shards` afterwards
/// is undefined, unless it is the result's own memory.
class Communicator {
 public:
  /// A group of one, which computes all shards itself.
  Communicator(Backend& backend, int logical);
  /// A group that exchanges nothing: for counting what a rank of a larger job would need and send.
  Communicator(Backend& backend, int logical, OnPaper place) : Communicator(backend, logical) {
    take_place(place.size, place.rank);
  }
  /// A communicator over the ranks of `group`; `axis` names the traffic in `ledger` (may be null). Collective
  /// over the group.
  Communicator(Backend& backend, std::unique_ptr<Group> group, int logical, Axis axis,
               TrafficLedger* ledger = nullptr);
  Communicator(Communicator&&) noexcept;
  ~Communicator();

  int size() const { return size_; }
  int rank() const { return rank_; }
  int logical() const { return logical_; }
  int local_shards() const { return logical_ / size_; }
  int first_shard() const { return rank_ * local_shards(); }

  /// total[...] = tree sum of shards[local][...] over all logical shards. `total` may be the first shard's
  /// own memory.
  void sum(const Tensor& shards, const Tensor& total);
  /// Tree sum of the shards over all logical shards, seen as [outer][inner] and cut along inner: this rank
  /// gets its part[outer][inner / size()]. `part` may overlap the shards.
  void sum_scatter(const Tensor& shards, const Tensor& part, std::int64_t outer);
  /// Joins what sum_scatter cuts: whole[outer][inner] from every rank's part[outer][inner / size()]. `part`
  /// may lie inside `whole`.
  void gather(const Tensor& part, const Tensor& whole, std::int64_t outer);
  /// Every rank receives what rank `root` holds.
  void broadcast(const Tensor& tensor, int root);
  /// values = the largest of all ranks' values, element by element; f32, or f64 in gradient checks.
  void maximum(const Tensor& values);
  /// largest[...] = the largest of shards[local][...] over all logical shards; `largest` may be the first
  /// shard's own memory; f32 or f64.
  void maximum(const Tensor& shards, const Tensor& largest);

  /// Tree sum of a few f64 of each logical shard, in the host's memory. shards[local][k] holds those of this
  /// rank's shards, one shard after the other; the sums come back in the first k.
  void sum_over_shards(std::span<double> shards);
  /// Tree sum of a few f64 of each logical shard, in the backend's memory: total[k] = sum of
  /// shards[local][k]. `total` may be the first shard's own memory.
  void sum_over_shards(const Tensor& shards, const Tensor& total);
  /// Tree sum of a few f64 of each rank, in the backend's memory and in place.
  void sum_over_ranks(const Tensor& values);
  /// Bytes that `reserve` is asked for where a rank exchanges `count` f64.
  static std::size_t scalars_bytes(const SumTree& tree, std::int64_t count);
  /// Exact sum over the ranks, modulo 2^64, in place. `scratch`, unless none, is scalars_bytes() for what
  /// arrives from ranks of one shard each.
  void sum_integers(std::span<std::int64_t> values, TrafficClass kind = TrafficClass::scalars,
                    std::byte* scratch = nullptr);

  /// Calls `observe` after every exchange of tensors: the trace and the cost table listen.
  void on_tensor_sum(std::function<void(const TensorSum&)> observe) { observe_ = std::move(observe); }

  /// Calls `hear` behind every sum, scattered sum, gather and maximum of tensors: proofs follow what they
  /// join.
  void on_asked(std::function<void(const AskedExchange&)> hear) { hear_ = std::move(hear); }

  /// Takes the memory for what arrives in exchanges: the `scratch_bytes` of a group on paper that did the
  /// same exchanges. Without it, the memory grows to the largest exchange.
  void reserve(std::size_t bytes) { scratch_.reserve(backend_.memory(), bytes); }
  std::size_t scratch_bytes() const { return scratch_.size(); }

  Backend& backend() const { return backend_; }
  Axis axis() const { return axis_; }
  /// The ranks that exchange, or null in a group of one.
  Group* group() const { return group_.get(); }

 private:
  void take_place(int size, int rank);
  /// Combines this rank's shards to its roots, which it gives back: in `total` where there is one, else among
  /// the shards.
  std::vector<Tensor> combine_shards(const SumTree& tree, const Tensor& shards, const Tensor& total,
                                     const Combine& combine);
  void combine_ranks(const SumTree& tree, const std::vector<Tensor>& roots, const Tensor& total,
                     const Combine& combine, const char* operation, TrafficClass kind);
  void combine_host(const SumTree& tree, const std::vector<Tensor>& roots, const Tensor& total,
                    const Combine& combine, const char* operation, TrafficClass kind,
                    std::byte* scratch = nullptr);
  void run(Exchange& exchange, const char* operation, TrafficClass kind);
  /// Whether there is nobody to exchange with: a group of one, or on paper, or left out by a test.
  bool exchanges_nothing(const char* operation) const;
  Route route() const;
  bool on_paper() const { return size_ > 1 && group_ == nullptr; }
  /// Adds up, or sends, what a real group's exchange would on this rank, so that counting prices it.
  void add_on_paper(const SumTree& tree, const Tensor& own) const;
  void send_on_paper(const std::vector<Tensor>& parts, int scatters, int gathers,
                     const char* operation) const;
  Combine add() const { return sums_on(backend_); }
  Combine larger() const;
  void tell(const char* operation, const Tensor& from, const Tensor& to) const {
    if (hear_) hear_({operation, from, to});
  }
  std::byte* take_scratch(std::size_t bytes) {
    return static_cast<std::byte*>(scratch_.take(backend_.memory(), bytes));
  }
  /// Tensors in `scratch`, one behind the other, for every rank's part.
  std::vector<Tensor> stacked(std::byte* scratch, const Tensor& part) const;

  Backend& backend_;
  std::unique_ptr<Group> group_;
  int size_ = 1, rank_ = 0, logical_ = 1;
  SumTree over_shards_, shards_here_,  ///< over all logical shards, and over those of this rank alone
      over_ranks_;                     ///< a tree with one shard a rank, where the order does not matter
  Axis axis_ = Axis::tensor;
  TrafficLedger* ledger_ = nullptr;
  std::function<void(const TensorSum&)> observe_;
  std::function<void(const AskedExchange&)> hear_;
  WorkArea scratch_;
  std::vector<double> host_scratch_;  ///< what arrives in sums of scalars
  std::int64_t calls_ = 0;
};

}  // namespace mindpipe
