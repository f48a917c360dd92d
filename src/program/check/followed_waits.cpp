#include "program/check/followed_waits.h"

#include <algorithm>

#include "core/bulk_parts.h"

namespace mindpipe {

static_assert(parts_under_way == 2, "one other may run beside a sum or gather");

void FollowedWaits::merge(Clock& into, const Clock& other) {
  if (into.size() < other.size()) into.resize(other.size(), -1);
  for (std::size_t queue = 0; queue < other.size(); ++queue)
    into[queue] = std::max(into[queue], other[queue]);
}

void FollowedWaits::merge_ended(Clock& into, std::int64_t place, std::int64_t newest) const {
  if (newest - place < kept) return merge(into, ends_[place % kept]);
  const std::size_t queue = queues_[place % known];
  if (into.size() <= queue) into.resize(queue + 1, -1);
  into[queue] = std::max(into[queue], place);
}

int FollowedWaits::queue_number(const Action& action) {
  const QueueKey key = queue_of(action);
  const auto [known, fresh] = numbers_.try_emplace(key, static_cast<int>(lines_.size()));
  if (fresh) lines_.push_back({{}, {}, key.group != Members::none});
  return known->second;
}

/// What an entry has waited for stands before it: the newest is followed first.
void FollowedWaits::thin(Action& action, std::int64_t begin) {
  std::vector<int>& after = action.after;
  std::sort(after.begin(), after.end());
  after.erase(std::unique(after.begin(), after.end()), after.end());
  if (after.empty()) return;
  now_ = lines_[queue_number(action)].begins;
  for (std::size_t left = after.size(); left-- > 0;) {
    const std::int64_t place = begin + after[left];
    if (place < 0 || newest_.place + 1 - place >= known) continue;
    const ListEntry earlier{place, queues_[place % known]};
    if (earlier.queue < static_cast<int>(now_.size()) && now_[earlier.queue] >= place)
      after.erase(after.begin() + static_cast<std::ptrdiff_t>(left));
    else merge_ended(now_, place, newest_.place + 1);
  }
}

void FollowedWaits::add(const Action& action, std::int64_t begin) {
  newest_ = {newest_.place + 1, queue_number(action)};
  Line& line = lines_[newest_.queue];
  now_ = line.begins;
  awaited_.clear();
  for (const int after : action.after) {
    const std::int64_t place = begin + after;
    awaited_.push_back(place);
    if (place >= 0 && newest_.place - place < known) merge_ended(now_, place, newest_.place);
  }
  if (std::ssize(ends_) < kept) ends_.emplace_back();
  if (std::ssize(queues_) < known) queues_.emplace_back();
  queues_[newest_.place % known] = newest_.queue;
  Clock& ended = ends_[newest_.place % kept];
  ended = now_;
  merge(ended, line.ends);
  if (line.runs_ahead) line.begins = ended;
  if (static_cast<int>(ended.size()) <= newest_.queue) ended.resize(newest_.queue + 1, -1);
  ended[newest_.queue] = newest_.place;
  line.ends = ended;
  if (!line.runs_ahead) line.begins = ended;
}

bool FollowedWaits::has_ended(const ListEntry& earlier) const {
  const bool follows = earlier.queue < static_cast<int>(now_.size()) && now_[earlier.queue] >= earlier.place;
  return follows || std::find(awaited_.begin(), awaited_.end(), earlier.place) != awaited_.end();
}

}  // namespace mindpipe
