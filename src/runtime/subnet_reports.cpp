#include "runtime/subnet_reports.h"

#include <algorithm>
#include <bit>

namespace mindpipe {
namespace {

constexpr int nobody = -1;

}  // namespace

SubnetReports::SubnetReports(const Outline& outline, Wiring& wiring, std::int64_t window,
                             std::int64_t subnets, Hear hear)
    : coord_(wiring.layout.coord),
      rank_(wiring.layout.program_rank()),
      stages_(outline.stages),
      lanes_(outline.lanes),
      channels_(wiring.reports.get()),
      waiting_(wiring.waiting),
      window_(window),
      subnets_(subnets),
      others_(outline.ranks()),
      hear_(std::move(hear)) {
  for (std::size_t unit = 0; unit < outline.units.size(); ++unit)
    if (const UnitCost& cost = outline.units[unit]; cost.shared)
      counted_by_[static_cast<int>(unit)] =
          cost.values > 0 ? outline.rank_of_block(cost.blocks.front()) : nobody;
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
      const auto of_window = std::count_if(counted_by_.begin(), counted_by_.end(),
                                           [&](const auto& unit) { return unit.second == rank; });
      const auto parts = (rank / stages_ == lane ? 1 : 0) + (closes_window(id) ? of_window : 0);
      open.missing += static_cast<int>(parts);
      if (rank != rank_) others_[rank].expected += parts;
    }
  }
  for (int rank = 1; rank < static_cast<int>(others_.size()); ++rank) receive(rank);
}

void SubnetReports::start(std::int64_t subnet) {
  if (listens()) open_[subnet - told_].start_ns = now_ns();
}

void SubnetReports::add(const SubnetScalars& part) {
  if (listens()) {
    take(part);
    tell();
  } else if (speaks()) {
    OnTheWay& sent = sent_.emplace_back();
    sent.words = {part.subnet, std::bit_cast<std::int64_t>(part.losses), part.valid, part.units, part.clipped,
                  part.skipped};
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
      take({words[0], std::bit_cast<double>(words[1]), words[2], words[3], words[4], words[5]});
    }
  }
}

void SubnetReports::take(const SubnetScalars& part) {
  expect(part.subnet + 1);  // another rank may be a stretch ahead, where a younger subnet overtakes
  Open& open = open_.at(part.subnet - told_);
  open.scalars.add(part);
  if (--open.missing == 0) open.scalars.seconds = seconds_since(open.start_ns);
}

void SubnetReports::tell() {
  while (!open_.empty() && open_.front().missing == 0) {
    const SubnetScalars scalars = open_.front().scalars;
    open_.pop_front();
    ++told_;
    hear_(scalars);
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
