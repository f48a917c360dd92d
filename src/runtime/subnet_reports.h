#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "program/outline.h"
#include "runtime/wiring.h"

namespace mindpipe {

/// What a stage knows of a subnet once its units there are updated, or all stages of it together. Units that
/// all subnets share belong to a window: they are counted with its last subnet, by the first stage that has
/// them.
struct SubnetScalars {
  std::int64_t subnet = 0;
  double losses = 0;       ///< added up over the targets of the whole batch, by the stage with the head
  std::int64_t valid = 0;  ///< targets that count, likewise
  std::int64_t units = 0, clipped = 0, skipped = 0;
  double seconds = 0;  ///< on rank 0: from its first forward to the arrival of its last part here

  double loss() const { return valid > 0 ? losses / static_cast<double>(valid) : 0; }
  void add(const SubnetScalars& part) {
    losses += part.losses;
    valid += part.valid;
    units += part.units;
    clipped += part.clipped;
    skipped += part.skipped;
  }
};

/// Brings what each stage of a subnet's lane knows of it to rank 0 of the job, which tells of subnets in the
/// order of ids. Of the ranks of a stage, which all know the same, the first speaks; of windows, lane 0's.
/// Parts travel beside everything else; nobody waits for them before a drain.
class SubnetReports {
 public:
  /// The payload of its messages, which is none of a list's.
  static constexpr int channel = 63;

  using Hear = std::function<void(const SubnetScalars&)>;

  /// `hear`: hears of each subnet, on rank 0.
  SubnetReports(const Outline& outline, Wiring& wiring, std::int64_t window, std::int64_t subnets, Hear hear);

  /// The next subnet is this.
  void begin(std::int64_t first);
  /// Subnets below `end` will run.
  void expect(std::int64_t end);
  /// Notes that a subnet's first forward begins here.
  void start(std::int64_t subnet);
  /// Whether this rank's stage tells of a unit that all subnets share.
  bool counts(int unit) const { return counted_by_.at(unit) == rank_; }
  /// Takes what this stage knows.
  void add(const SubnetScalars& part);
  /// Moves parts on their way, without waiting. Nobody hears of anything here.
  void progress();
  /// Waits until all parts have arrived, here or on rank 0, and been told.
  void finish();

 private:
  using Words = std::array<std::int64_t, 6>;
  static Tensor tensor_of(Words& words) {
    return {words.data(), {static_cast<std::int64_t>(words.size())}, DType::i64};
  }
  struct OnTheWay {
    Words words{};
    Channels::Transfer transfer = 0;
  };
  /// Another rank of the program, on rank 0.
  struct Other {
    std::int64_t expected = 0;  ///< parts that have not arrived
    bool is_begun = false;      ///< whether the next is being received
    OnTheWay next;
  };
  struct Open {
    SubnetScalars scalars;
    int missing = 0;  ///< parts
    std::int64_t start_ns = 0;
  };
  bool speaks() const { return coord_.data == 0 && coord_.tensor == 0; }
  bool listens() const { return speaks() && rank_ == 0; }
  bool closes_window(std::int64_t id) const { return (id + 1) % window_ == 0 || id + 1 == subnets_; }
  void receive(int rank);
  void take(const SubnetScalars& part);
  void tell();

  Coord coord_;
  int rank_, stages_, lanes_;  ///< rank, stages and lanes of the program
  Channels* channels_;
  Waiting& waiting_;
  std::int64_t window_, subnets_;
  std::map<int, int> counted_by_;  ///< the rank whose stage tells of a unit that all share
  std::deque<OnTheWay> sent_;
  std::vector<Other> others_;  ///< one for each rank of the program
  std::int64_t told_ = 0;      ///< subnets
  std::deque<Open> open_;      ///< from there on
  Hear hear_;
};

}  // namespace mindpipe
