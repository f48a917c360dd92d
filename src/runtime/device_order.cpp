#include "runtime/device_order.h"

#include <algorithm>
#include <map>

#include "runtime/cursors.h"

namespace mindpipe {

DeviceOrder::DeviceOrder(bool closed) : closed_(closed) {
  for (int queue = 0; queue < queue_count && !closed; ++queue)
    if (static_cast<Queue>(queue) != Queue::compute) queues_.push_back(static_cast<Queue>(queue));
}

void DeviceOrder::grow(const std::vector<Action>& list, std::size_t dropped) {
  places_.erase(places_.begin(), places_.begin() + static_cast<std::ptrdiff_t>(dropped));
  for (Place& place : places_) renumber(place.after, -static_cast<std::int64_t>(dropped));
  const int first = static_cast<int>(places_.size());
  places_.resize(list.size());
  for (int i = first; i < static_cast<int>(list.size()); ++i) {
    Place& place = places_[i];
    place.queue = list[i].queue;
    place.awaited = !closed_;
    std::map<Queue, int> last;
    for (int earlier : list[i].after) {
      MP_CHECK(earlier < i, "{} waits for a later action of its list", to_string(list[i]));
      if (places_[earlier].queue != place.queue)
        last[places_[earlier].queue] = std::max(last[places_[earlier].queue], earlier);
    }
    for (const auto& [queue, earlier] : last) {
      place.after.push_back(earlier);
      places_[earlier].awaited = true;
    }
    if (place.queue != Queue::compute &&
        std::find(queues_.begin(), queues_.end(), place.queue) == queues_.end())
      queues_.push_back(place.queue);
  }
}

void DeviceOrder::begin_step(Backend& backend) {
  if (queues_.empty()) return;
  const std::uint64_t begin = backend.record(Queue::compute);
  for (Queue queue : queues_) backend.wait(queue, begin);
}

void DeviceOrder::end_step(Backend& backend) {
  for (Queue queue : queues_) backend.wait(Queue::compute, backend.record(queue));
}

void DeviceOrder::note_end(Backend& backend) {
  std::vector<std::uint64_t>& end = ends_.emplace_back();
  end.push_back(backend.record(Queue::compute));
  for (Queue queue : queues_) end.push_back(backend.record(queue));
}

bool DeviceOrder::has_come_to_an_end(Backend& backend) const {
  return std::all_of(ends_.front().begin(), ends_.front().end(),
                     [&](std::uint64_t event) { return backend.finished(event); });
}

void DeviceOrder::before(Backend& backend, int action) {
  const Place& place = places_[action];
  for (int earlier : place.after) backend.wait(place.queue, places_[earlier].event);
  backend.use_queue(place.queue);
}

void DeviceOrder::behind(Backend& backend, int action) {
  Place& place = places_[action];
  backend.use_queue(Queue::compute);
  if (place.awaited) place.event = backend.record(place.queue);
}

}  // namespace mindpipe
