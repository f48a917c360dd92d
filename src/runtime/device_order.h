#pragma once
#include <deque>
#include <vector>

#include "backend.h"
#include "program/action.h"

namespace mindpipe {

/// Keeps the actions of a rank in order on a device that runs behind the host. All are put into the device's
/// queues in list order, so that every `after` has been put there before, and the host never waits: where an
/// `after` lies in another queue, the action's own queue waits for the event behind it.
class DeviceOrder {
 public:
  /// `closed`: nothing behind the list's one stretch waits for an entry of it, so there are events only where
  /// one is awaited, and queues that it leaves out are left alone. Of an open list any action may be awaited
  /// by a stretch that is not known yet.
  explicit DeviceOrder(bool closed);
  /// Goes on over a list that has lost its first `dropped` actions and has more behind the others.
  void grow(const std::vector<Action>& list, std::size_t dropped);

  /// No queue goes on into a step before the compute queue comes to it, and that is behind all queues of the
  /// step before: buffers and weights are used again, and whoever reads them between two steps does so from
  /// the compute queue.
  void begin_step(Backend& backend);
  void end_step(Backend& backend);
  /// Stand around the call that puts an action into its queue: `before` chooses the queue, `behind` the
  /// compute one again.
  void before(Backend& backend, int action);
  void behind(Backend& backend, int action);

  Queue queue(int action) const { return places_[action].queue; }

  /// Notes an end behind everything put in so far of an open list; `has_come_to_an_end`: the device has come
  /// to the oldest one noted, which the next call of `forget_end` takes away.
  void note_end(Backend& backend);
  bool has_come_to_an_end(Backend& backend) const;
  void forget_end() { ends_.pop_front(); }

 private:
  struct Place {
    Queue queue = Queue::compute;
    /// The last action of each other queue to wait for; all earlier ones of that queue have ended before it.
    std::vector<int> after;
    bool awaited = false;  ///< by another queue
    std::uint64_t event = 0;
  };
  std::vector<Place> places_;
  std::vector<Queue> queues_;  ///< in use beside the compute queue
  bool closed_;
  std::deque<std::vector<std::uint64_t>> ends_;  ///< events, one of each queue
};

}  // namespace mindpipe
