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

}  // namespace

std::int64_t bytes_of(const BoundaryBytes& buffer) {
  return std::max(buffer.activation + buffer.encoder_output,
                  buffer.gradient + buffer.encoder_output_gradient);
}

void share_buffers(Rings& rings, std::vector<BoundaryBytes>& buffers,
                   const std::vector<BoundaryBytes>& host) {
  const std::vector<int> places = places_of(buffers, host);
  for (auto& [key, ring] : rings)
    for (int& buffer : ring) buffer = places[buffer];
  std::vector<BoundaryBytes> moved(std::max(buffers.size(), host.size()));
  for (std::size_t buffer = 0; buffer < buffers.size(); ++buffer) moved[places[buffer]] = buffers[buffer];
  buffers = moved;
}

}  // namespace mindpipe
