#include "app/trace_file.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "io/file.h"
#include "runtime/gather_spans.h"

namespace mindpipe {
namespace {

/// When the first action of the oldest step began: time 0 of the trace.
std::int64_t first_start(const Recorder& recorder) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < recorder.actions(0); ++i)
    if (const auto& times = recorder.times(0, i); times.end != 0) first = std::min(first, times.start);
  return first;
}

}  // namespace

void write_trace(Worker& worker, const std::string& path) {
  const Layout& layout = worker.layout();
  const Recorder& recorder = worker.executor().recorder(worker.training());
  const Program& program = worker.plan().training.program;
  if (recorder.held() == 0) return;
  const bool is_first = worker.world().rank == 0;
  const char* mark = row_of(worker.config().device.kind).computes ? "" : "emulated ";
  const SumOverGroup sum = [&](std::vector<std::int64_t>& numbers) {
    worker.sum_over_grid(numbers, TrafficClass::files);
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
        rank.name =
            fmt::format("{}rank {}: stage {}, data {}, tensor {}", mark, rank.rank, stage, data, tensor);
      }
      if (data > 0 || tensor > 0) write(",\n");
      write(chrome_events(program, ranks, recorder.first_held_step() + 1, first_start(recorder)));
    }
  if (!is_first) return;
  write(chrome_end);
  file->commit();
}

}  // namespace mindpipe
