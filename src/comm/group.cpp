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

/// "rank 2", "ranks 2 and 5", "ranks 0, 1, 2 and 9 more".
std::string ranks_text(std::vector<int> ranks) {
  constexpr std::size_t most = 6;
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  const std::size_t named = ranks.size() > most ? most - 1 : ranks.size() - 1;
  const std::string last = ranks.size() > most ? fmt::format("{} more", ranks.size() - named) : fmt::format("{}", ranks.back());
  return fmt::format("ranks {} and {}", fmt::join(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(named), ", "), last);
}

}  // namespace

std::string missing_text(std::vector<int> senders, std::vector<int> receivers) {
  std::string text;
  if (!senders.empty()) text = "nothing from " + ranks_text(senders) + " yet";
  // Of one that has sent nothing it goes without saying that it has taken nothing.
  std::erase_if(receivers, [&](int rank) { return std::find(senders.begin(), senders.end(), rank) != senders.end(); });
  if (receivers.empty()) return text;
  const bool one = std::all_of(receivers.begin(), receivers.end(), [&](int rank) { return rank == receivers[0]; });
  return text + (text.empty() ? "" : "; ") + ranks_text(receivers) +
         (one ? " has not taken what is sent to it" : " have not taken what is sent to them");
}

void Messages::send(const void* data, std::size_t bytes, int peer, int tag) {
  bytes_sent_ += bytes;
  for (std::size_t from = 0; from < bytes; from += longest_message) {
    ends_.push_back({peer, true});
    const int count = static_cast<int>(std::min(longest_message, bytes - from));
    if (counted_) MPI_CHECK(MPI_Isend(nullptr, 0, MPI_BYTE, peer, tag, group_->comm(), &requests_.emplace_back()));
    else MPI_CHECK(MPI_Isend(static_cast<const std::byte*>(data) + from, count, MPI_BYTE, peer, tag, group_->comm(), &requests_.emplace_back()));
  }
}

void Messages::receive(void* data, std::size_t bytes, int peer, int tag) {
  for (std::size_t from = 0; from < bytes; from += longest_message) {
    ends_.push_back({peer, false});
    const int count = static_cast<int>(std::min(longest_message, bytes - from));
    if (counted_) MPI_CHECK(MPI_Irecv(nullptr, 0, MPI_BYTE, peer, tag, group_->comm(), &requests_.emplace_back()));
    else MPI_CHECK(MPI_Irecv(static_cast<std::byte*>(data) + from, count, MPI_BYTE, peer, tag, group_->comm(), &requests_.emplace_back()));
  }
}

bool Messages::done() {
  if (requests_.empty()) return true;
  int all = 0;
  MPI_CHECK(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE));
  if (all != 0) requests_.clear(), ends_.clear();
  return all != 0;
}

std::string Messages::missing() const {
  std::vector<int> senders, receivers;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    int is_done = 0;
    MPI_CHECK(MPI_Request_get_status(requests_[i], &is_done, MPI_STATUS_IGNORE));
    if (is_done == 0) (ends_[i].sending ? receivers : senders).push_back(group_->world_rank(ends_[i].peer));
  }
  return missing_text(std::move(senders), std::move(receivers));
}

}  // namespace mindpipe
