#include "runtime/subnet_reports.h"

#include <bit>

namespace mindpipe {

SubnetReports::SubnetReports(const Outline& outline, const Layout& layout, Channels* channels,
                             Waiting& waiting, std::int64_t window, std::int64_t subnets)
    : coord_(layout.coord),
      rank_(layout.program_rank()),
      stages_(outline.stages),
      lanes_(outline.lanes),
      channels_(channels),
      waiting_(waiting),
      window_(window),
      subnets_(subnets),
      tells_windows_(outline.stages, 0),
      others_(outline.ranks()) {
  for (const UnitCost& unit : outline.units)
    if (unit.shared && unit.values > 0) tells_windows_[outline.rank_of_block(unit.blocks.front())] = 1;
}

void SubnetReports::begin(std::int64_t first) {
  MP_CHECK(open_.empty() && sent_.empty(), "subnet {} is begun while results are on their way", first);
  told_ = first;
}

void SubnetReports::expect(std::int64_t end) {
  if (!listens()) return;
  for (std::int64_t id = told_ + static_cast<std::int64_t>(open_.size()); id < end; ++id) {
    Open& open = open_.emplace_back();
    open.scalars.subnet = id;
    open.start_ns = now_ns();
    const int lane = static_cast<int>(id % lanes_);
    for (int rank = 0; rank < static_cast<int>(others_.size()); ++rank) {
      const int results =
          (rank / stages_ == lane ? 1 : 0) + (closes_window(id) && rank < stages_ ? tells_windows_[rank] : 0);
      open.missing += results;
      if (rank != rank_) others_[rank].expected += results;
    }
  }
  for (int rank = 1; rank < static_cast<int>(others_.size()); ++rank) receive(rank);
}

void SubnetReports::start(std::int64_t subnet) {
  if (listens()) open_[subnet - told_].start_ns = now_ns();
}

void SubnetReports::add(const SubnetResult& result) {
  if (listens()) {
    take(result);
    tell();
  } else if (speaks()) {
    OnTheWay& sent = sent_.emplace_back();
    sent.words = {result.subnet,
                  result.has_loss ? 1 : 0,
                  std::bit_cast<std::int64_t>(result.loss),
                  result.valid,
                  result.units,
                  result.clipped,
                  result.skipped};
    sent.transfer = channels_->send(0, channel, tensor_of(sent.words), TrafficClass::scalars);
  }
}

void SubnetReports::receive(int rank) {
  Other& other = others_[rank];
  if (other.is_begun || other.expected == 0) return;
  other.is_begun = true;
  other.next.transfer = channels_->receive(rank, channel, tensor_of(other.next.words));
}

void SubnetReports::progress() {
  if (channels_ == nullptr) return;
  if (channels_->under_way() > 0) channels_->progress();  // what had come before it was asked for has ended
  while (!sent_.empty() && channels_->done(sent_.front().transfer)) sent_.pop_front();
  for (int rank = 0; rank < static_cast<int>(others_.size()); ++rank) {
    Other& other = others_[rank];
    while (other.is_begun && channels_->done(other.next.transfer)) {
      const Words words = other.next.words;
      other.is_begun = false;
      --other.expected;
      receive(rank);
      take(
          {words[0], words[1] != 0, std::bit_cast<double>(words[2]), words[3], words[4], words[5], words[6]});
    }
  }
}

void SubnetReports::take(const SubnetResult& result) {
  Open& open = open_.at(result.subnet - told_);
  SubnetScalars& scalars = open.scalars;
  if (result.has_loss) {
    scalars.valid = result.valid;
    scalars.loss = result.valid > 0 ? result.loss / static_cast<double>(result.valid) : 0;
  }
  scalars.units += result.units;
  scalars.clipped += result.clipped;
  scalars.skipped += result.skipped;
  if (--open.missing == 0) scalars.seconds = seconds_since(open.start_ns);
}

void SubnetReports::tell() {
  while (!open_.empty() && open_.front().missing == 0) {
    const SubnetScalars scalars = open_.front().scalars;
    open_.pop_front();
    ++told_;
    if (hear_) hear_(scalars);
  }
}

void SubnetReports::finish() {
  const auto is_over = [&] {
    progress();
    return sent_.empty() &&
           std::all_of(open_.begin(), open_.end(), [](const Open& open) { return open.missing == 0; });
  };
  waiting_.until(is_over, [&] {
    for (const Other& other : others_)
      if (other.is_begun)
        return fmt::format("results of subnets, {}", channels_->describe(other.next.transfer));
    return std::string("rank 0 to take the results of subnets");
  });
  tell();
}

}  // namespace mindpipe
