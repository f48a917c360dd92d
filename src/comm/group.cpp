#include "comm/group.h"

#include <algorithm>

namespace mindpipe {
namespace {

constexpr std::size_t longest_message = std::size_t{1} << 30;  // MPI 3 counts in int

}  // namespace

Group::Group(MPI_Comm ranks, Waiting& waiting) : waiting_(waiting) {
  MPI_CHECK(MPI_Comm_dup(ranks, comm_.receive()));
  MPI_CHECK(MPI_Comm_size(comm_.get(), &size_));
  MPI_CHECK(MPI_Comm_rank(comm_.get(), &rank_));
}

void Messages::send(const void* data, std::size_t bytes, int peer, int tag) {
  bytes_sent_ += bytes;
  for (std::size_t from = 0; from < bytes; from += longest_message) {
    const int count = static_cast<int>(std::min(longest_message, bytes - from));
    if (counted_) MPI_CHECK(MPI_Isend(nullptr, 0, MPI_BYTE, peer, tag, group_->comm(), &requests_.emplace_back()));
    else MPI_CHECK(MPI_Isend(static_cast<const std::byte*>(data) + from, count, MPI_BYTE, peer, tag, group_->comm(), &requests_.emplace_back()));
  }
}

void Messages::receive(void* data, std::size_t bytes, int peer, int tag) {
  for (std::size_t from = 0; from < bytes; from += longest_message) {
    const int count = static_cast<int>(std::min(longest_message, bytes - from));
    if (counted_) MPI_CHECK(MPI_Irecv(nullptr, 0, MPI_BYTE, peer, tag, group_->comm(), &requests_.emplace_back()));
    else MPI_CHECK(MPI_Irecv(static_cast<std::byte*>(data) + from, count, MPI_BYTE, peer, tag, group_->comm(), &requests_.emplace_back()));
  }
}

bool Messages::done() {
  if (requests_.empty()) return true;
  int all = 0;
  MPI_CHECK(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE));
  if (all != 0) requests_.clear();
  return all != 0;
}

}  // namespace mindpipe
