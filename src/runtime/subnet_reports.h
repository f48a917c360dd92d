#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "comm/channel.h"
#include "program/outline.h"
#include "state/layout.h"

namespace mindpipe {

/// What a stage knows of a subnet once it has updated it; of a window's last one, a second time, once what
/// all subnets share is updated there.
struct SubnetResult {
  std::int64_t subnet = 0;
  bool has_loss = false;   ///< on the stage with the head
  double loss = 0;         ///< added up over the targets of the whole batch
  std::int64_t valid = 0;  ///< targets of the whole batch that count
  std::int64_t units = 0, clipped = 0, skipped = 0;
};

/// What rank 0 knows of a subnet once all stages have ended it. Units that all subnets share belong to a
/// window: they are counted with its last subnet.
struct SubnetScalars {
  std::int64_t subnet = 0;
  double loss = 0;         ///< mean over the valid targets of its batch; 0 where there are none
  std::int64_t valid = 0;  ///< those targets
  std::int64_t units = 0, clipped = 0, skipped = 0;  ///< of all stages
  double seconds = 0;  ///< from its first forward to the arrival of its last result here
};

/// Brings what each stage of a subnet's lane knows of it to rank 0 of the job, which tells of subnets in the
/// order of ids. Of the ranks of a stage, which all know the same, the first speaks; of windows, lane 0's.
/// Results travel beside everything else; nobody waits for them before a cut.
class SubnetReports {
 public:
  /// The payload of its messages, which is none of a list's.
  static constexpr int channel = 63;

  /// `channels`: of the program's ranks, for this alone, in the host's memory; null where there is one.
  SubnetReports(const Outline& outline, const Layout& layout, Channels* channels, Waiting& waiting,
                std::int64_t window, std::int64_t subnets);

  /// The next subnet is this.
  void begin(std::int64_t first);
  /// Subnets below `end` will run.
  void expect(std::int64_t end);
  /// Notes that a subnet's first forward begins here.
  void start(std::int64_t subnet);
  /// Takes a result of this stage.
  void add(const SubnetResult& result);
  /// Moves results on their way, without waiting. Nobody hears of anything here.
  void progress();
  /// Waits until all results have arrived, here or on rank 0, and been told.
  void finish();
  void on_scalars(std::function<void(const SubnetScalars&)> hear) { hear_ = std::move(hear); }

 private:
  using Words = std::array<std::int64_t, 7>;
  static Tensor tensor_of(Words& words) {
    return {words.data(), {static_cast<std::int64_t>(words.size())}, DType::i64};
  }
  struct OnTheWay {
    Words words{};
    Channels::Transfer transfer = 0;
  };
  /// Another rank of the program, on rank 0.
  struct Other {
    std::int64_t expected = 0;  ///< results that have not arrived
    bool is_begun = false;      ///< whether the next is being received
    OnTheWay next;
  };
  struct Open {
    SubnetScalars scalars;
    int missing = 0;  ///< results
    std::int64_t start_ns = 0;
  };
  bool speaks() const { return coord_.data == 0 && coord_.tensor == 0; }
  bool listens() const { return speaks() && rank_ == 0; }
  bool closes_window(std::int64_t id) const { return (id + 1) % window_ == 0 || id + 1 == subnets_; }
  void receive(int rank);
  void take(const SubnetResult& result);
  void tell();

  Coord coord_;
  int rank_, stages_, lanes_;  ///< of the program
  Channels* channels_;
  Waiting& waiting_;
  std::int64_t window_, subnets_;
  std::vector<char> tells_windows_;  ///< of each stage: whether it tells of units that all share
  std::deque<OnTheWay> sent_;
  std::vector<Other> others_;  ///< of each rank of the program
  std::int64_t told_ = 0;      ///< subnets
  std::deque<Open> open_;      ///< from there on
  std::function<void(const SubnetScalars&)> hear_;
};

}  // namespace mindpipe
