#include "comm/reduction.h"

#include <algorithm>

#include "comm/mutation.h"

namespace mindpipe {
namespace {

constexpr std::size_t longest_part = std::size_t{4} << 20;
constexpr int parts_ahead = 2;  // so that one part's messages travel while another's are added

/// Room for what arrives of one part: less than the part itself but for the rounding of its pieces.
std::size_t slot_bytes(int ranks) { return longest_part + static_cast<std::size_t>(ranks) * 2 * alignment; }

}  // namespace

Reductions::Reductions(Backend& backend, std::unique_ptr<Group> group, Axis axis, TrafficLedger* ledger)
    : backend_(backend), group_(std::move(group)), axis_(axis), ledger_(ledger) {
  if (size() > 1) scratch_ = Arena(backend.memory(), MemoryClass::workspace, parts_ahead * aligned(slot_bytes(size())));
  for (int slot = parts_ahead; slot-- > 0;) free_slots_.push_back(slot);
}

std::vector<std::int64_t> Reductions::equal_bounds(std::int64_t count) const {
  std::vector<std::int64_t> bounds;
  for (int r = 0; r <= size(); ++r) bounds.push_back(count * r / size());
  return bounds;
}

Reductions::Request Reductions::sum(const Tensor& slab) { return begin(Exchange::Halves::both, slab, {}); }
Reductions::Request Reductions::sum_scatter(const Tensor& slab, std::span<const std::int64_t> bounds, const Tensor& own) { return begin(Exchange::Halves::scatter, slab, bounds, own); }
Reductions::Request Reductions::gather(const Tensor& slab, std::span<const std::int64_t> bounds) { return begin(Exchange::Halves::gather, slab, bounds); }

Reductions::Request Reductions::begin(Exchange::Halves halves, const Tensor& slab, std::span<const std::int64_t> bounds, const Tensor& own) {
  Job job{halves, slab.reshaped({slab.count()}), own, bounds.empty() ? equal_bounds(slab.count()) : std::vector(bounds.begin(), bounds.end()), 0};
  MP_CHECK(static_cast<int>(job.bounds.size()) == size() + 1 && job.bounds.front() == 0 && job.bounds.back() == slab.count() && std::is_sorted(job.bounds.begin(), job.bounds.end()),
           "bounds of {} parts that do not cut {} elements among {} ranks", job.bounds.size() - 1, slab.count(), size());
  // What arrives of a part is a piece for each other rank, as long as this rank's own: the longest piece sets the size.
  std::int64_t longest_piece = 0;
  for (int r = 0; r < size(); ++r) longest_piece = std::max(longest_piece, job.bounds[r + 1] - job.bounds[r]);
  const std::size_t bytes = static_cast<std::size_t>(longest_piece * size()) * bytes_of(slab.dtype);
  job.parts = static_cast<int>((bytes + longest_part - 1) / longest_part);
  if (size() == 1 || is_mutated(name_of(axis_), job.name())) job.parts = 0;
  queue_.push_back(std::move(job));
  progress();
  return next_++;
}

bool Reductions::begin_part() {
  const auto job = std::find_if(queue_.begin(), queue_.end(), [](const Job& j) { return j.begun < j.parts; });
  if (job == queue_.end() || free_slots_.empty() || !group_->waiting().gate().open_for(job->kind())) return false;
  // A part of the slab is the same share of every rank's own elements, so that all ranks have work in it.
  std::vector<Tensor> pieces;
  Tensor own;
  for (int r = 0; r < size(); ++r) {
    const std::int64_t count = job->bounds[r + 1] - job->bounds[r];
    const std::int64_t first = count * job->begun / job->parts, last = count * (job->begun + 1) / job->parts;
    pieces.push_back({job->slab.as<std::byte>() + (job->bounds[r] + first) * static_cast<std::int64_t>(bytes_of(job->slab.dtype)), {last - first}, job->slab.dtype});
    if (r == rank() && job->own) own = job->own.range(first, last - first);
  }
  const int slot = free_slots_.back();
  free_slots_.pop_back();
  ++job->begun;
  group_->waiting().gate().begin(job->kind());
  void* scratch = scratch_.address_of(static_cast<std::size_t>(slot) * aligned(slot_bytes(size())));
  // Counted slabs are not added: the simulator's price of a reduction, which the executor waits for, holds the additions too.
  const bool counted = backend_.memory().kind() == Memory::Kind::counted;
  const Combine combine = counted ? Combine([](const Tensor&, const Tensor&, const Tensor&) {}) : [this](const Tensor& a, const Tensor& b, const Tensor& sum) { backend_.add(a, b, sum); };
  parts_.push_back({Exchange(*group_, job->halves, std::move(pieces), scratch, combine, route_of(backend_.memory(), group_->waiting()), own), &*job, slot});
  return true;
}

void Reductions::finish_parts() {
  for (auto part = parts_.begin(); part != parts_.end();) {
    if (!part->exchange.advance()) {
      ++part;
      continue;
    }
    ++part->job->finished;
    part->job->bytes_sent += static_cast<std::int64_t>(part->exchange.bytes_sent());
    group_->waiting().gate().end(part->job->kind());
    free_slots_.push_back(part->slot);
    part = parts_.erase(part);
  }
  for (; !queue_.empty() && queue_.front().finished == queue_.front().parts; queue_.pop_front(), ++finished_) {
    const Job& job = queue_.front();
    if (ledger_ != nullptr && job.parts > 0) ledger_->add(axis_, job.kind(), job.bytes_sent, seconds_since(job.start_ns));
  }
}

void Reductions::progress() {
  if (moving_ || queue_.empty()) return;
  moving_ = true;
  finish_parts();
  while (begin_part()) finish_parts();
  moving_ = false;
}

void Reductions::wait(Request request) {
  if (done(request)) return;
  MP_CHECK(group_ != nullptr, "a wait for a request that was never begun");
  group_->waiting().until([&] { progress(); return done(request); }, [&] { return describe(request); });
}

std::string Reductions::describe(Request request) const {
  if (done(request)) return "a reduction that is done";
  const Job& job = queue_[static_cast<std::size_t>(request - finished_)];
  const auto part = std::find_if(parts_.begin(), parts_.end(), [&](const Part& p) { return p.job == &job; });
  const std::string missing = part == parts_.end() ? "the next part has not begun" : part->exchange.missing();
  return fmt::format("{}.{} number {}, {} of {} parts done: {}", name_of(axis_), job.name(), request, job.finished, job.parts, missing);
}

}  // namespace mindpipe
