#include "program/share_buffers.h"

#include <algorithm>
#include <numeric>

namespace mindpipe {
namespace {

/// The numbers of the buffers, the largest first.
std::vector<int> by_size(const std::vector<BoundaryBytes>& buffers) {
  std::vector<int> numbers(buffers.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  std::stable_sort(numbers.begin(), numbers.end(),
                   [&](int a, int b) { return bytes_of(buffers[a]) > bytes_of(buffers[b]); });
  return numbers;
}

/// Where each of the guest's buffers lies.
std::vector<int> places_of(const std::vector<BoundaryBytes>& guest, const std::vector<BoundaryBytes>& host) {
  const std::vector<int> own = by_size(guest), theirs = by_size(host);
  std::vector<int> places(guest.size());
  for (std::size_t k = 0; k < own.size(); ++k)
    places[own[k]] = k < theirs.size() ? theirs[k] : static_cast<int>(k);
  return places;
}

void rename(int& buffer, const std::vector<int>& places) {
  if (buffer >= 0) buffer = places[buffer];
}

}  // namespace

std::int64_t bytes_of(const BoundaryBytes& buffer) {
  return std::max(buffer.activation + buffer.encoder_output,
                  buffer.gradient + buffer.encoder_output_gradient);
}

void share_buffers(PlannedForwards& guest, const Placement& host) {
  for (std::size_t rank = 0; rank < guest.program.ranks.size(); ++rank) {
    std::vector<BoundaryBytes>& buffers = guest.placement.ranks[rank].buffers;
    const std::vector<int> places = places_of(buffers, host.ranks[rank].buffers);
    for (Action& action : guest.program.ranks[rank]) {
      if (!is_pass(action) && !crosses_cut(action)) continue;
      rename(action.from_buffer, places);
      rename(action.to_buffer, places);
    }
    for (auto& [key, ring] : guest.rings[rank])
      for (int& buffer : ring) rename(buffer, places);
    std::vector<BoundaryBytes> moved(std::max(buffers.size(), host.ranks[rank].buffers.size()));
    for (std::size_t buffer = 0; buffer < buffers.size(); ++buffer) moved[places[buffer]] = buffers[buffer];
    buffers = moved;
  }
}

}  // namespace mindpipe
