#include "app/train/trace_file.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "io/file.h"
#include "runtime/gather_spans.h"
#include "trace/subnet_trace.h"

namespace mindpipe {
namespace {

/// When the first action of the oldest step began: time 0 of the trace.
std::int64_t first_start(const Recorder& recorder) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < recorder.actions(0); ++i)
    if (const auto& times = recorder.times(0, i); times.end != 0) first = std::min(first, times.start);
  return first;
}

std::string name_of_rank(const Worker& worker, int rank, const Coord& at) {
  return fmt::format("{}rank {}: {}stage {}, data {}, tensor {}",
                     row_of(worker.config().device.kind).computes ? "" : "emulated ", rank,
                     worker.layout().grid.supernet > 1 ? fmt::format("lane {}, ", at.supernet) : "",
                     at.pipeline, at.data, at.tensor);
}

/// This rank's part of a supernet's trace. Its clock's `shift`, unless it is 0, moves all times.
TracedSubnets traced_here(Worker& worker, std::int64_t shift) {
  const Layout& layout = worker.layout();
  TracedSubnets traced{.rank = worker.world().rank,
                       .replica = layout.coord.data * layout.grid.tensor + layout.coord.tensor,
                       .place = layout.program_rank(),
                       .has_lanes = layout.grid.supernet > 1,
                       .name = name_of_rank(worker, worker.world().rank, layout.coord),
                       .actions = worker.subnets()->traced(),
                       .sums = worker.subnets()->script().kept.sums()};
  for (KeptAction& kept : traced.actions) {
    kept.times = {kept.times.start + shift, kept.times.end + shift};
    traced.bytes.push_back(kept.of_window ? kept.action.bytes
                                          : worker.executor().actions().bytes_of(kept.action));
  }
  for (Recorder::Sum& sum : traced.sums) {
    sum.start += shift;
    sum.end += shift;
  }
  for (const auto& unit : worker.stage().model().units()) traced.units.push_back(unit->name());
  return traced;
}

/// When the first action of all ranks began: time 0 of a supernet's trace.
std::int64_t first_of_all(const std::vector<KeptAction>& actions, const Worker& worker,
                          const SumOverGroup& sum) {
  std::vector<std::int64_t> firsts(static_cast<std::size_t>(worker.world().size), 0);
  for (const KeptAction& kept : actions) {
    std::int64_t& first = firsts[static_cast<std::size_t>(worker.world().rank)];
    if (first == 0 || kept.times.start < first) first = kept.times.start;
  }
  sum(firsts);
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t one : firsts)
    if (one != 0) first = std::min(first, one);
  return first;
}

void write_subnets(Worker& worker, const std::string& path) {
  const bool is_first = worker.world().rank == 0;
  const SumOverGroup sum = [&](std::vector<std::int64_t>& numbers) {
    worker.wiring().sum_over_grid(numbers, TrafficClass::files);
  };
  const TracedSubnets traced = traced_here(worker, clock_shift(is_first, sum));
  const std::int64_t zero = first_of_all(traced.actions, worker, sum);
  std::optional<NewFile> file;
  const auto write = [&](const std::string& text) {
    if (is_first) file->write(text.data(), text.size());
  };
  if (is_first) file.emplace(path);
  write(chrome_begin(worker.backend().description()));
  std::string own = subnet_events(traced, zero);
  if (!is_first) own.insert(0, ",\n");
  gather_texts(own, worker.world().rank, worker.world().size, sum, write);
  write(chrome_end);
  if (is_first) file->commit();
}

}  // namespace

void write_trace(Worker& worker, const std::string& path) {
  if (worker.subnets() != nullptr) return write_subnets(worker, path);
  const Layout& layout = worker.layout();
  const Recorder& recorder = worker.executor().recorder(worker.training());
  const Program& program = worker.plan().training.program;
  if (recorder.held() == 0) return;
  const bool is_first = worker.world().rank == 0;
  const SumOverGroup sum = [&](std::vector<std::int64_t>& numbers) {
    worker.wiring().sum_over_grid(numbers, TrafficClass::files);
  };
  const std::int64_t shift = clock_shift(is_first, sum);

  std::optional<NewFile> file;
  const auto write = [&](const std::string& text) { file->write(text.data(), text.size()); };
  if (is_first) {
    file.emplace(path);
    write(chrome_begin(worker.backend().description()));
  }
  // One pipeline at a time, so that no rank ever holds the times of all.
  for (int data = 0; data < layout.grid.data; ++data)
    for (int tensor = 0; tensor < layout.grid.tensor; ++tensor) {
      const bool here = layout.coord.data == data && layout.coord.tensor == tensor;
      std::vector<TracedRank> ranks = gather_spans(
          program, recorder, here ? layout.coord.pipeline : -1,
          [&](int action) { return worker.executor().actions().bytes_of(worker.training().list[action]); },
          shift, sum);
      if (!is_first) continue;
      for (int stage = 0; stage < layout.grid.pipeline; ++stage) {
        TracedRank& rank = ranks[stage];
        rank.rank = rank_at(layout.grid, {tensor, data, stage, 0});
        rank.name = name_of_rank(worker, rank.rank, {tensor, data, stage, 0});
      }
      if (data > 0 || tensor > 0) write(",\n");
      write(chrome_events(program, ranks, recorder.first_held_step() + 1, first_start(recorder)));
    }
  if (!is_first) return;
  write(chrome_end);
  file->commit();
}

}  // namespace mindpipe
