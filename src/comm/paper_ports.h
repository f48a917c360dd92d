#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/link.h"

namespace mindpipe {

/// The ports of a rank whose device is only imitated: its messages are empty, and pass here in their own
/// time. What one rank offers leaves its out port, the other rank hears of it as it begins to leave, and its
/// in port takes it.
///
/// All times are those of the ports (now_ns), whenever the host comes by: an out port that was free before
/// the host looked begins then, with what was offered by then. So lateness of hosts does not add up.
class PaperPorts {
 public:
  using Number = std::int64_t;  ///< names what leaves or arrives here

  /// What has passed a port of this rank.
  struct Passed {
    TrafficClass traffic = TrafficClass::pipeline;
    Level level = Level::node;
    int peer = 0;              ///< the other end, as the group in which it passes numbers it
    std::int64_t takes = 0;    ///< time of the port
    std::int64_t said = 0;     ///< when it stood ready at an out port
    std::int64_t offered = 0;  ///< when the port had it: later, where the host told late
    std::int64_t began = 0, left = 0;
    std::int64_t arrived = 0;  ///< at an in port
    std::int64_t order = 0;    ///< order of offers, or of notices
  };

  /// Sets the links to the ranks of a program, and that of the data group.
  void connect(std::vector<Link> to_ranks, const Link& data) {
    to_ranks_ = std::move(to_ranks);
    data_ = data;
  }
  const Link& link_to(int program_rank) const { return to_ranks_[static_cast<std::size_t>(program_rank)]; }
  const Link& data_link() const { return data_; }

  /// When what is being begun may begin: as the driver says, which knows what it comes after, else now.
  std::int64_t moment() const { return moment_.value_or(now_ns()); }
  /// What takes a port so long, whatever its bytes, in so many turns.
  struct Priced {
    std::int64_t takes = 0;
    int turns = 1;
  };
  /// The price of what is being begun; none: it takes as long as its bytes.
  std::optional<Priced> price() const { return price_; }
  /// Says so of all that is begun while it lives.
  class Begins {
   public:
    Begins(PaperPorts* ports, std::int64_t moment, std::optional<Priced> price = {}) : ports_(ports) {
      if (ports_ == nullptr) return;
      ports_->moment_ = moment;
      ports_->price_ = price;
    }
    ~Begins() {
      if (ports_ == nullptr) return;
      ports_->moment_.reset();
      ports_->price_.reset();
    }
    Begins(const Begins&) = delete;
    Begins& operator=(const Begins&) = delete;

   private:
    PaperPorts* ports_;
  };

  /// A transfer stands ready for another rank, or for this one.
  Number offer(Level level, TrafficClass traffic, int to, std::int64_t takes, std::int64_t offered);
  /// A transfer of another rank, or of this one to itself, leaves for this one.
  Number expect(Level level, TrafficClass traffic, int from, std::int64_t began, std::int64_t left);
  /// Lets ports go on to this time; true: something has begun or arrived.
  bool serve(std::int64_t now);
  /// When an offered transfer began to leave and leaves; nothing: it has not begun. Asked until it is said.
  std::optional<std::pair<std::int64_t, std::int64_t>> take_begun(Number number);
  /// When the in port has what was expected; nothing: that is not known yet. Asked until it is said.
  std::optional<std::int64_t> take_arrived(Number number);

  /// Lets leave first who came first, whatever its class.
  void ignore_classes() { ignores_classes_ = true; }
  /// Keeps a record of what passes from now on.
  void keep_record() { keeps_record_ = true; }
  const std::vector<Passed>& out_record() const { return out_record_; }
  const std::vector<Passed>& in_record() const { return in_record_; }

 private:
  struct Entry : Passed {
    Number number = 0;
  };
  struct OutPort {
    std::vector<Entry> waiting;
    std::deque<std::pair<std::int64_t, std::int64_t>> busy;  ///< when what began lately did, and had left
    std::int64_t began() const { return busy.empty() ? -1 : busy.back().first; }
    std::int64_t free() const { return busy.empty() ? 0 : busy.back().second; }
  };
  struct InPort {
    std::vector<Entry> leaving;  ///< for here
    std::int64_t free = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> left;  ///< when each left, and its time; ascending
  };
  static bool fits_before(OutPort& port, Entry& entry);
  void begin(const Entry& entry);
  bool serve(OutPort& port, std::int64_t now);
  bool serve(InPort& port, std::int64_t now);
  static std::int64_t left_between(InPort& port, std::int64_t began, std::int64_t left);

  std::vector<Link> to_ranks_;
  Link data_;
  std::optional<std::int64_t> moment_;
  std::optional<Priced> price_;
  std::array<OutPort, levels> out_;
  std::array<InPort, levels> in_;
  std::map<Number, std::pair<std::int64_t, std::int64_t>> begun_;
  std::map<Number, std::int64_t> arrived_;
  Number numbers_ = 0;
  bool keeps_record_ = false, ignores_classes_ = false;
  std::vector<Passed> out_record_, in_record_;
};

}  // namespace mindpipe
