#include "comm/group.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace mindpipe {
namespace {

constexpr std::size_t longest_message = std::size_t{1} << 30;  // MPI 3 counts in int

}  // namespace

Group::Group(MPI_Comm ranks, Waiting& waiting) : waiting_(waiting) {
  MPI_CHECK(MPI_Comm_dup(ranks, comm_.receive()));
  MPI_CHECK(MPI_Comm_size(comm_.get(), &size_));
  MPI_CHECK(MPI_Comm_rank(comm_.get(), &rank_));
  world_ranks_ = world_ranks(comm_.get());
}

namespace {

/// Text of a set of ranks: "rank 2", "ranks 2 and 5", "ranks 0, 1, 2 and 9 more".
std::string ranks_text(std::vector<int> ranks) {
  constexpr std::size_t most = 6;
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  const std::size_t named = ranks.size() > most ? most - 1 : ranks.size() - 1;
  const std::string last =
      ranks.size() > most ? fmt::format("{} more", ranks.size() - named) : fmt::format("{}", ranks.back());
  return fmt::format("ranks {} and {}",
                     fmt::join(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                     last);
}

}  // namespace

std::string missing_text(std::vector<int> senders, std::vector<int> receivers) {
  std::string text;
  if (!senders.empty()) text = "nothing from " + ranks_text(senders) + " yet";
  // A rank that has sent nothing has taken nothing either: that need not be said.
  std::erase_if(receivers,
                [&](int rank) { return std::find(senders.begin(), senders.end(), rank) != senders.end(); });
  if (receivers.empty()) return text;
  const bool one =
      std::all_of(receivers.begin(), receivers.end(), [&](int rank) { return rank == receivers[0]; });
  return text + (text.empty() ? "" : "; ") + ranks_text(receivers) +
         (one ? " has not taken what is sent to it" : " have not taken what is sent to them");
}

Route Group::route(const Memory& memory) const {
  if (transport_ != nullptr) return {Route::Kind::queued, nullptr, transport_.get()};
  return route_of(memory, waiting_);
}

Route route_of(const Memory& memory, const Waiting& waiting) {
  if (memory.kind() == Memory::Kind::counted) return {Route::Kind::counted};
  if (waiting.staging() != nullptr) return {Route::Kind::staged, waiting.staging()};
  return {};
}

void Messages::begin(Wire::Way way, void* data, std::size_t bytes, int peer, int tag) {
  if (route_.kind == Route::Kind::queued) {
    using Way = Transport::Parcel::Way;
    if (bytes > 0)
      parcels_.push_back({way == Wire::Way::receive ? Way::receive : Way::send, data, bytes, peer});
    return;
  }
  for (std::size_t from = 0; from < bytes; from += longest_message)
    parts_.push_back({Wire(route_, way, static_cast<std::byte*>(data) + from,
                           std::min(longest_message, bytes - from), peer, tag, group_->comm()),
                      from == 0});
}

void Messages::send(void* data, std::size_t bytes, int peer, int tag) {
  bytes_sent_ += bytes;
  begin(Wire::Way::send, data, bytes, peer, tag);
}

void Messages::receive(void* data, std::size_t bytes, int peer, int tag) {
  begin(Wire::Way::receive, data, bytes, peer, tag);
}

bool Messages::done() {
  if (!parcels_.empty()) route_.transport->put(parcels_);
  parcels_.clear();
  for (Part& part : parts_) inquiry_.about(part.wire);
  inquiry_.ask();
  bool all = true;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i].first || parts_[i - 1].wire.handed_over()) all = parts_[i].wire.done() && all;
    else all = false;
  if (!all) return false;
  for (const Part& part : parts_) route_.moment = std::max(route_.moment, part.wire.ended());
  parts_.clear();
  return true;
}

std::string Messages::missing() const {
  std::vector<int> senders, receivers;
  for (const Part& part : parts_)
    if (part.wire.pending())
      (part.wire.sends() ? receivers : senders).push_back(group_->world_rank(part.wire.peer()));
  return missing_text(std::move(senders), std::move(receivers));
}

}  // namespace mindpipe
