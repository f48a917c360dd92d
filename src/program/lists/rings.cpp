#include "program/lists/rings.h"

#include <tuple>

namespace mindpipe {
namespace {

/// Finds a crossing by what it carries, and makes it when it is new.
class Crossings {
 public:
  Crossing& at(const RingKey& key, int cut, int micro_batch) {
    auto& ring = rings[key];
    const auto [known, fresh] = index_.try_emplace({key, cut, micro_batch}, ring.size());
    if (fresh) {
      ring.emplace_back();
      ring.back().cut = cut;
    }
    return ring[known->second];
  }
  std::map<RingKey, std::vector<Crossing>> rings;

 private:
  std::map<std::tuple<RingKey, int, int>, std::size_t> index_;
};

}  // namespace

std::map<RingKey, std::vector<Crossing>> crossings_of(const std::vector<Action>& list, const Outline& outline,
                                                      int rank) {
  Crossings crossings;
  for (int index = 0; index < static_cast<int>(list.size()); ++index) {
    const Action& action = list[index];
    if (crosses_cut(action)) {
      crossings
          .at({action.peer, travels_forward(action.payload), sends(action)}, action.first, action.micro_batch)
          .messages.push_back(index);
    }
    if (!is_forward(action) && !is_backward(action)) continue;
    const bool forward = is_forward(action);
    const int first = outline.first_block[action.chunk], last = outline.first_block[action.chunk + 1];
    const int in_cut = forward ? first : last, out_cut = forward ? last : first;
    const bool enters = forward ? action.chunk > 0 : action.chunk < outline.all_chunks() - 1;
    const bool leaves = forward ? action.chunk < outline.all_chunks() - 1 : action.chunk > 0;
    if (enters) {
      const int from = outline.rank_of(action.chunk + (forward ? -1 : 1));
      Crossing& crossing = crossings.at({from, forward, from == rank}, in_cut, action.micro_batch);
      if (forward || action.last == last) crossing.reader = index;
      crossing.last_reader = index;
    }
    if (leaves && (forward || action.first == first)) {
      const int to = outline.rank_of(action.chunk + (forward ? 1 : -1));
      crossings.at({to, forward, true}, out_cut, action.micro_batch).writer = index;
    }
  }
  return crossings.rings;
}

}  // namespace mindpipe
