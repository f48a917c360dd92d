#pragma once
#include <cstdint>

#include "program/clock/task.h"

namespace mindpipe {

class Clock;

/// Decides what begins: a rule, or lists as they are written. The clock asks it at every moment
/// at which something ends: first all ends are told, then it is opened, then the touched ranks are asked.
class Source {
 public:
  enum class Answer : std::uint8_t { begins, waits, unknown };

  virtual ~Source() = default;
  /// All that ends at this moment has been told: puts what no rank has to be idle for. False: it depends on
  /// something that is not known yet; the clock stops, and opens the moment again when it goes on.
  virtual bool open(Clock& clock) = 0;
  /// A touched rank is idle. begins: fills `task` and takes its rooms. waits: says why. unknown: it depends
  /// on something that is not known yet; the clock stops, and asks this rank again when it goes on.
  virtual Answer next(int rank, const Clock& clock, Task& task, WaitReason& why) = 0;
  /// A task has ended, and the next one on its way has begun: gives its rooms back, puts what follows,
  /// touches the ranks that may go on.
  virtual void ended(const Task& task, Clock& clock) = 0;
  /// Nothing is under way. True: it has put more.
  virtual bool at_rest(Clock&) { return false; }
};

}  // namespace mindpipe
