#include "app/trace_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>

#include "io/file.h"
#include "trace/chrome_trace.h"

namespace mindpipe {
namespace {

/// Every node has a clock of its own. All ranks leave the same collective at about the same time: what their
/// clocks say then, against rank 0's, is the shift. Of several such moments the middle one counts. Below a
/// tenth of a second it is taken for the collective's own spread: ranks of one node share their clock, and
/// clocks of different nodes began to count at different boots.
std::int64_t shift_to_rank_0(Worker& worker) {
  constexpr std::size_t moments = 5;
  constexpr std::int64_t least = 100'000'000;
  std::vector<std::int64_t> mine, first;
  for (std::size_t k = 0; k < moments; ++k) {
    std::vector<std::int64_t> one{1};
    worker.sum_over_grid(one, TrafficClass::files);
    mine.push_back(now_ns());
  }
  first = worker.world().rank == 0 ? mine : std::vector<std::int64_t>(moments, 0);
  worker.sum_over_grid(first, TrafficClass::files);
  std::vector<std::int64_t> shifts;
  for (std::size_t k = 0; k < moments; ++k) shifts.push_back(first[k] - mine[k]);
  std::nth_element(shifts.begin(), shifts.begin() + moments / 2, shifts.end());
  const std::int64_t shift = shifts[moments / 2];
  return std::abs(shift) < least ? 0 : shift;
}

constexpr std::array<std::string_view, 4> operations{"sum", "sum_scatter", "gather", "maximum"};

/// The tensor sums of one pipeline's stages, [stage][step]: how many they are, then each as four numbers,
/// brought together by sums with zeros.
std::vector<std::vector<std::vector<Recorder::Sum>>> sums_of(Worker& worker, bool here, std::int64_t shift) {
  const Layout& layout = worker.layout();
  const Recorder& recorder = worker.executor().recorder();
  const std::size_t steps = recorder.held(), stages = layout.grid.pipeline, own = layout.coord.pipeline;
  std::vector<std::int64_t> counts(stages * steps, 0);
  for (std::size_t step = 0; here && step < steps; ++step)
    counts[own * steps + step] = static_cast<std::int64_t>(recorder.sums(step).size());
  worker.sum_over_grid(counts, TrafficClass::files);
  std::vector<std::int64_t> rows(4 * std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), 0);
  std::int64_t* row =
      rows.data() + 4 * std::accumulate(counts.begin(), counts.begin() + own * steps, std::int64_t{0});
  for (std::size_t step = 0; here && step < steps; ++step)
    for (const Recorder::Sum& sum : recorder.sums(step)) {
      *row++ = std::find(operations.begin(), operations.end(), std::string_view(sum.operation)) -
               operations.begin();
      *row++ = sum.start + shift, *row++ = sum.end + shift, *row++ = sum.bytes;
    }
  if (!rows.empty()) worker.sum_over_grid(rows, TrafficClass::files);
  std::vector<std::vector<std::vector<Recorder::Sum>>> all(stages,
                                                           std::vector<std::vector<Recorder::Sum>>(steps));
  row = rows.data();
  for (std::size_t at = 0; at < counts.size(); ++at)
    for (std::int64_t i = 0; i < counts[at]; ++i, row += 4)
      all[at / steps][at % steps].push_back({operations.at(row[0]).data(), row[1], row[2], row[3]});
  return all;
}

/// What the actions of one pipeline's stages really sent, [stage][action].
std::vector<std::vector<std::int64_t>> bytes_of(Worker& worker, bool here) {
  const Layout& layout = worker.layout();
  std::vector<std::vector<std::int64_t>> all;
  for (int stage = 0; stage < layout.grid.pipeline; ++stage) {
    std::vector<std::int64_t>& bytes = all.emplace_back(worker.plan().step.program.ranks[stage].size(), 0);
    for (std::size_t i = 0; here && stage == layout.coord.pipeline && i < bytes.size(); ++i)
      bytes[i] = worker.executor().bytes_of(static_cast<int>(i));
    worker.sum_over_grid(bytes, TrafficClass::files);
  }
  return all;
}

}  // namespace

void write_trace(Worker& worker, const std::string& path) {
  const Layout& layout = worker.layout();
  Recorder& recorder = worker.executor().recorder();
  const Program& program = worker.plan().step.program;
  const std::size_t steps = recorder.held();
  if (steps == 0) return;
  const std::int64_t shift = shift_to_rank_0(worker);
  const bool emulated = worker.config().device.kind == DeviceKind::emulated;

  // Rank 0's first action of the oldest step is time 0 for all.
  std::vector<std::int64_t> zero{0};
  if (worker.world().rank == 0) {
    zero[0] = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < recorder.actions(); ++i)
      if (const auto& times = recorder.times(0, i); times.end != 0) zero[0] = std::min(zero[0], times.start);
  }
  worker.sum_over_grid(zero, TrafficClass::files);

  std::vector<std::size_t> first(program.ranks.size() + 1, 0);  // of each stage's rows
  for (std::size_t stage = 0; stage < program.ranks.size(); ++stage)
    first[stage + 1] = first[stage] + program.ranks[stage].size() * steps * 2;
  std::optional<NewFile> file;
  const auto write = [&](const std::string& text) { file->write(text.data(), text.size()); };
  if (worker.world().rank == 0) {
    file.emplace(path);
    write(chrome_begin(worker.backend().description()));
  }
  // One pipeline at a time, so that no rank ever holds the times of all.
  for (int data = 0; data < layout.grid.data; ++data)
    for (int tensor = 0; tensor < layout.grid.tensor; ++tensor) {
      const bool here = layout.coord.data == data && layout.coord.tensor == tensor;
      std::vector<std::int64_t> rows(first.back(), 0);
      if (here) {
        std::int64_t* row = &rows[first[layout.coord.pipeline]];
        for (std::size_t step = 0; step < steps; ++step)
          for (std::size_t i = 0; i < recorder.actions(); ++i) {
            const Recorder::Times& times = recorder.times(step, i);
            *row++ = times.start == 0 ? 0 : times.start + shift;
            *row++ = times.end == 0 ? 0 : times.end + shift;
          }
      }
      worker.sum_over_grid(rows, TrafficClass::files);
      const auto sums = sums_of(worker, here, shift);
      const auto bytes = bytes_of(worker, here);
      if (worker.world().rank != 0) continue;
      std::vector<TracedRank> ranks;
      for (int stage = 0; stage < layout.grid.pipeline; ++stage) {
        TracedRank& rank = ranks.emplace_back();
        rank.rank = rank_at(layout.grid, {tensor, data, stage, 0});
        rank.name = fmt::format("{}rank {}: stage {}, data {}, tensor {}", emulated ? "emulated " : "",
                                rank.rank, stage, data, tensor);
        rank.sums = sums[stage], rank.bytes = bytes[stage];
        const std::int64_t* row = &rows[first[stage]];
        for (std::size_t step = 0; step < steps; ++step) {
          auto& times = rank.steps.emplace_back();
          for (std::size_t i = 0; i < program.ranks[stage].size(); ++i, row += 2)
            times.push_back({row[0], row[1]});
        }
      }
      if (data > 0 || tensor > 0) write(",\n");
      write(chrome_events(program, ranks, recorder.first_held_step() + 1, zero[0]));
    }
  if (worker.world().rank != 0) return;
  write(chrome_end);
  file->commit();
}

}  // namespace mindpipe
