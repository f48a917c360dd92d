#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "program/clock/held_tasks.h"
#include "program/clock/idle_clock.h"
#include "program/clock/port_events.h"
#include "program/clock/source.h"
#include "program/clock/task.h"
#include "program/clock/task_lines.h"

namespace mindpipe {

/// One clock for all that is planned: it gives times to the tasks of a source, in one order. What travels
/// between ranks meets at their ports: messages, moves, exchanges, sums and gathers in their parts, and sums
/// inside passes in turns of them. A source asks the clock what is under way, and nothing of what has not
/// begun.
class Clock {
 public:
  using Way = TaskLines::Way;

  /// `ranks`: that a source is asked for. `unseen`: traffic that some does not find at ports.
  explicit Clock(int ranks, const std::optional<Unseen>& unseen = {});

  std::int64_t now() const { return now_; }
  /// What a rank's compute queue runs; null: it is idle.
  const Task* runs(int rank) const { return held_.task_at(running_[rank]); }
  /// What is under way from a rank; null: nothing is.
  const Task* on_way(int rank, const Way& way) const;
  /// When what is under way from a rank ends, if nothing else is put; it is one part.
  std::int64_t arrives(int rank, const Way& way) const;
  /// How long a rank has stood idle before something that began there.
  const TimesByReason& idle(int rank) const { return idle_[rank].all(); }

  /// Lets a rank be asked at this moment.
  void touch(int rank) { touched_[rank / 64] |= std::uint64_t{1} << (rank % 64); }
  /// Begins a task, or one part of a transfer, at once, whatever is under way: where it asks something of
  /// ports, it waits there.
  void begin(const Task& task) { begin_at(held_.hold(task)); }
  /// Begins a task once those that were put before it on its way have ended.
  void put(const Task& task);

  /// Goes on until nothing is under way and the source has no more (true), or the source depends on something
  /// that is not known yet (false). Calls begun(task) in the order of beginnings.
  template <class Begun>
  bool run(Source& source, const Begun& begun);
  /// Calls see(left) for each transfer that leaves a port.
  void watch_ports(std::function<void(const Ports::Left&)> see) { sees_ports_ = std::move(see); }
  /// Calls see(task) when a task ends: only then its end is known, where it travels.
  void watch_ends(std::function<void(const Task&)> see) { sees_ends_ = std::move(see); }

 private:
  void begin_at(int held);
  void begin_parts(TaskLines::Line& line);
  void send(int held, int part);
  void compute(int held);
  void end_at(std::int64_t time, int held);
  void leave_port(Ports::Left left);
  /// False: the source does not know.
  bool ask(Source& source, int rank);
  void end_turn(int number, Source& source);

  std::int64_t now_ = 0;
  PortEvents<int> events_;  ///< ends of held tasks, or of their turns
  std::function<void(const Ports::Left&)> sees_ports_;
  std::function<void(const Task&)> sees_ends_;
  std::vector<std::int64_t> last_sum_;  ///< when the last sum or gather of each rank ended
  std::vector<int> running_;            ///< each rank's task; -1: idle
  std::vector<IdleClock> idle_;
  std::vector<std::uint64_t> touched_;  ///< a bit for each rank
  HeldTasks held_;
  TaskLines lines_;
  std::vector<int> begun_;  ///< tasks that nobody has been told of
};

template <class Begun>
bool Clock::run(Source& source, const Begun& begun) {
  const auto tell = [&] {
    for (const int held : begun_) begun(static_cast<const Task&>(held_[held].task));
    begun_.clear();
  };
  while (true) {
    const bool opened = source.open(*this);
    tell();
    if (!opened) return false;
    for (std::size_t word = 0; word < touched_.size(); ++word)
      while (touched_[word] != 0) {
        if (!ask(source, static_cast<int>(word) * 64 + std::countr_zero(touched_[word]))) return false;
        tell();
        touched_[word] &= touched_[word] - 1;
      }
    events_.serve(now_);
    if (events_.next() == Ports::never) {
      const bool more = source.at_rest(*this);
      tell();
      if (!more) return true;
      events_.serve(now_);
    }
    now_ = events_.next();
    events_.at(
        now_, [&](const Ports::Left& left) { leave_port(left); },
        [&](int held) {
          end_turn(held, source);
          tell();
        });
  }
}

}  // namespace mindpipe
