#include "comm/reduction.h"

#include <algorithm>

#include "comm/fault_points.h"

namespace mindpipe {
namespace {

/// Bytes that arrive of one part, at most: less than the part itself from each rank's roots, but for the
/// rounding of its pieces.
std::size_t most_arriving(const SumTree& tree, std::int64_t part_bytes) {
  const auto ranks = static_cast<std::size_t>(tree.ranks()),
             roots = static_cast<std::size_t>(tree.most_roots());
  return roots * (static_cast<std::size_t>(longest_part(tree.ranks(), part_bytes)) + ranks * alignment);
}

}  // namespace

Reductions::Reductions(Backend& backend, std::unique_ptr<Group> group, Axis axis, TrafficLedger* ledger,
                       int shards, std::int64_t part_bytes)
    : backend_(backend),
      group_(std::move(group)),
      tree_(shards > 0 ? shards : size(), size(), rank()),
      of_ranks_(size(), size(), rank()),
      axis_(axis),
      ledger_(ledger),
      part_bytes_(part_bytes) {
  for (int area = 0; area < parts_under_way; ++area) free_areas_.push_back(area);
}

void Reductions::reserve(std::size_t part_scratch) {
  for (WorkArea& area : scratch_) area.reserve(backend_.memory(), part_scratch);
}

Reductions::Request Reductions::begin(const SumTree& tree, Exchange::Halves halves, Pieces pieces,
                                      std::vector<Pieces> earlier, const Tensor& own) {
  MP_CHECK(static_cast<int>(pieces.size()) == size(), "{} pieces for {} ranks", pieces.size(), size());
  const bool adds = halves != Exchange::Halves::gather;
  if (adds) earlier.push_back(pieces);
  Job job{&tree, halves, std::move(pieces), std::move(earlier), own};
  const std::size_t arriving = adds ? Exchange::scratch_bytes(tree, job.pieces[rank()].bytes()) : 0;
  MP_CHECK(size() == 1 || arriving <= most_arriving(tree_, part_bytes_),
           "{} bytes arrive of one part, where a part brings {} at most", arriving,
           most_arriving(tree_, part_bytes_));
  if (ports_ != nullptr) job.moment = ports_->moment();
  job.finished = size() == 1 || is_left_out(name_of(axis_), job.name());
  queue_.push_back(std::move(job));
  progress();
  return next_++;
}

bool Reductions::may_begin(TrafficClass kind) const {
  if (size() == 1) return true;
  const bool waits = std::any_of(queue_.begin(), queue_.end(),
                                 [](const Job& job) { return !job.finished && !job.exchange; });
  return !waits && !free_areas_.empty() && group_->waiting().gate().open_for(kind);
}

bool Reductions::begin_exchange() {
  const auto job =
      std::find_if(queue_.begin(), queue_.end(), [](const Job& j) { return !j.finished && !j.exchange; });
  if (job == queue_.end() || free_areas_.empty()) return false;
  job->area = free_areas_.front();
  free_areas_.pop_front();
  if (ports_ == nullptr) group_->waiting().gate().begin(job->kind());
  const bool adds = job->halves != Exchange::Halves::gather;
  void* scratch = scratch_[job->area].take(
      backend_.memory(), adds ? Exchange::scratch_bytes(*job->tree, job->pieces[rank()].bytes()) : 0);
  // Counted pieces are not added: the simulator's price of a reduction, which the executor waits for, holds
  // the additions too.
  const bool counted = backend_.memory().kind() == Memory::Kind::counted;
  const Combine combine =
      counted ? by_pairs([](const Tensor&, const Tensor&, const Tensor&) {}) : sums_on(backend_);
  Route route = group_->route(backend_.memory());
  if (ports_ != nullptr) {
    route.ports = ports_;
    route.link = ports_->data_link();
    route.traffic = job->kind();
    route.moment = job->moment;
  }
  job->exchange.emplace(*group_, *job->tree, job->halves, std::move(job->pieces), std::move(job->roots),
                        scratch, combine, route, job->own);
  if (ports_ == nullptr && route.kind != Route::Kind::queued) job->exchange->ask_gate(job->kind());
  return true;
}

void Reductions::finish_exchanges() {
  for (Job& job : queue_) {
    if (job.finished || !job.exchange || !job.exchange->advance()) continue;
    job.finished = true;
    free_areas_.push_back(job.area);
    if (ports_ == nullptr) group_->waiting().gate().end(job.kind());
  }
  for (; !queue_.empty() && queue_.front().finished; queue_.pop_front(), ++finished_) {
    const Job& job = queue_.front();
    if (ports_ != nullptr)
      ended_[finished_] = last_end_ =
          std::max({last_end_, job.moment, job.exchange ? job.exchange->ended() : 0});
    if (ledger_ != nullptr && job.exchange)
      ledger_->add(axis_, job.kind(), static_cast<std::int64_t>(job.exchange->bytes_sent()),
                   group_->seconds_since(job.start_ns));
  }
}

void Reductions::progress() {
  if (moving_ || queue_.empty()) return;
  moving_ = true;
  finish_exchanges();
  while (begin_exchange()) finish_exchanges();
  moving_ = false;
}

std::optional<std::int64_t> Reductions::take_end(Request request) {
  const auto found = ended_.find(request);
  if (found == ended_.end()) return {};
  const std::int64_t end = found->second;
  ended_.erase(found);
  return end;
}

void Reductions::wait(Request request) {
  if (done(request)) return;
  MP_CHECK(group_ != nullptr, "a wait for a request that was never begun");
  group_->waiting().until(
      [&] {
        progress();
        return done(request);
      },
      [&] { return describe(request); });
}

std::string Reductions::describe(Request request) const {
  if (done(request)) return "a reduction that is done";
  const Job& job = queue_[static_cast<std::size_t>(request - finished_)];
  return fmt::format("{}.{} number {}: {}", name_of(axis_), job.name(), request,
                     job.exchange ? job.exchange->missing() : "has not begun");
}

}  // namespace mindpipe
