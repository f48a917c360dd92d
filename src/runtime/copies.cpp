#include "runtime/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "comm/fault_points.h"

namespace mindpipe {
namespace {

#ifdef MINDPIPE_MUTATIONS
/// Bytes of a part, so few that copies of the smallest models are under way beside passes.
constexpr std::int64_t part_bytes = 128;
#else
/// Bytes of a part: a processor copies them in about a tenth of a millisecond.
constexpr std::int64_t part_bytes = std::int64_t{1} << 20;
#endif

Tensor bytes_of(const Tensor& tensor, std::int64_t first, std::int64_t bytes) {
  return {static_cast<std::byte*>(tensor.data) + first, {bytes}, DType::u8};
}

}  // namespace

std::int64_t Copies::begin(std::string_view what, const Tensor& from, const Tensor& to) {
  open_.push_back({from, to, is_left_out("copy", what) ? static_cast<std::int64_t>(from.bytes()) : 0});
  return ended_ + static_cast<std::int64_t>(open_.size()) - 1;
}

void Copies::progress() { move_on(part_bytes); }

void Copies::finish() {
  while (!open_.empty()) move_on(std::numeric_limits<std::int64_t>::max());
}

/// Makes up to `most` bytes of the oldest copy under way.
void Copies::move_on(std::int64_t most) {
  if (open_.empty() || copies_now_) return;
  Copy& oldest = open_.front();
  const auto all = static_cast<std::int64_t>(oldest.from.bytes());
  const std::int64_t begin = oldest.copied, bytes = std::min(all - begin, most);
  oldest.copied += bytes;
  copies_now_ = true;
  backend_.copy(bytes_of(oldest.from, begin, bytes), bytes_of(oldest.to, begin, bytes));
  copies_now_ = false;
  if (oldest.copied < all) return;
  forget(oldest.from.data, oldest.from.bytes());
  open_.erase(open_.begin());
  ++ended_;
}

std::string Copies::describe(std::int64_t number) const {
  const Copy& copy = open_.at(static_cast<std::size_t>(number - ended_));
  return fmt::format("{} of {} bytes copied", copy.copied, copy.from.bytes());
}

}  // namespace mindpipe
