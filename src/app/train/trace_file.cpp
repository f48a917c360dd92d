#include "app/train/trace_file.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>

#include "app/run/version.h"
#include "app/train/subnet_rows.h"
#include "comm/text_of_rank_0.h"
#include "config/config.h"
#include "core/log.h"
#include "io/file.h"
#include "plan/network_on_paper.h"
#include "runtime/gather_texts.h"
#include "runtime/trace_writer.h"
#include "trace/chrome_trace.h"

namespace mindpipe {
namespace {

std::string name_of_rank(const Worker& worker) {
  const Coord& at = worker.layout().coord;
  return fmt::format("{}rank {}: {}stage {}, data {}, tensor {}",
                     row_of(worker.config().device.kind).computes ? "" : "emulated ", worker.world().rank,
                     worker.layout().grid.supernet > 1 ? fmt::format("lane {}, ", at.supernet) : "",
                     at.pipeline, at.data, at.tensor);
}

/// What a list's recorder holds of steps from `first` on.
void add_steps(TracedRank& traced, const std::vector<Action>& list, const Recorder& recorder,
               std::int64_t first) {
  for (std::size_t held = 0; held < recorder.held(); ++held) {
    const std::int64_t step = recorder.first_held_step() + static_cast<std::int64_t>(held) + 1;
    if (step < first) continue;
    for (int i = 0; i < std::ssize(list); ++i)
      traced.actions.push_back(
          {.action = list[i], .times = recorder.times(held, i), .step = step, .number = i});
    for (const Recorder::Sum& sum : recorder.sums(held)) traced.sums.push_back({sum, step});
  }
}

/// What recorders hold of the last steps that are shown, and the bytes that each action sends from here. Of a
/// list whose blocks have moved these are the average over the data ranks.
void add_steps(TracedRank& traced, Worker& worker) {
  const Recorder& recorder = worker.executor().recorder(worker.training());
  const std::vector<Action>& list = worker.training().list;
  const std::deque<Script>& past = worker.steps().past();
  const std::int64_t last =
      recorder.held() > 0 || past.empty() ? recorder.last_step() : past.back().recorder.last_step();
  const std::int64_t first = last + 2 - std::max(1, worker.config().trace.steps);
  for (const Script& script : past) add_steps(traced, script.list, script.recorder, first);
  for (KeptAction& kept : traced.actions) kept.bytes = kept.action.bytes;
  const std::size_t behind = traced.actions.size();
  add_steps(traced, list, recorder, first);
  for (std::size_t i = behind; i < traced.actions.size(); ++i)
    traced.actions[i].bytes = worker.executor().actions().bytes_of(traced.actions[i].action);
}

/// This rank's part of the trace. Its clock's `shift`, unless it is 0, moves all times.
TracedRank traced_here(Worker& worker, std::int64_t shift) {
  const Layout& layout = worker.layout();
  TracedRank traced{.rank = worker.world().rank,
                    .name = name_of_rank(worker),
                    .replica = layout.coord.data * layout.grid.tensor + layout.coord.tensor,
                    .place = layout.program_rank(),
                    .peers = layout.grid.supernet > 1 ? "place" : "stage",
                    .actions = {}};
  if (worker.subnets() != nullptr) {
    traced.actions = worker.subnets()->kept()->actions();
    traced.sums = worker.subnets()->kept()->sums();
    for (KeptAction& kept : traced.actions)
      kept.bytes = kept.action.owner.of == Owner::window ? kept.action.bytes
                                                         : worker.executor().actions().bytes_of(kept.action);
  } else {
    add_steps(traced, worker);
  }
  for (KeptAction& kept : traced.actions)
    if (kept.times.end != 0) kept.times = {kept.times.start + shift, kept.times.end + shift};
  for (KeptSum& kept : traced.sums) {
    kept.sum.start += shift;
    kept.sum.end += shift;
  }
  for (const auto& unit : worker.stage().model().units()) traced.units.push_back(unit->name());
  return traced;
}

/// When the first action of all ranks began: time 0 of the trace.
std::int64_t first_of_all(const std::vector<KeptAction>& actions, const World& world,
                          const SumOverGroup& sum) {
  std::vector<std::int64_t> firsts(static_cast<std::size_t>(world.size), 0);
  std::int64_t& own = firsts[static_cast<std::size_t>(world.rank)];
  for (const KeptAction& kept : actions)
    if (kept.times.end != 0 && (own == 0 || kept.times.start < own)) own = kept.times.start;
  sum(firsts);
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t one : firsts)
    if (one != 0) first = std::min(first, one);
  return first;
}

/// The first of the steps that are held which goes into the trace: the first two of a start, in which memory
/// and caches are new, do not where a dozen others are held.
std::size_t first_traced(Worker& worker) {
  constexpr std::int64_t warm_up = 2, enough = 12;
  const std::int64_t held = static_cast<std::int64_t>(worker.executor().recorder(worker.training()).held());
  const std::int64_t forgotten = worker.steps().since_taken().steps - held;
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>(warm_up - forgotten, 0, std::max<std::int64_t>(0, held - enough)));
}

/// This rank's times of the last steps. Tensor sums of an imitated device have no times of their own.
RankTimes times_here(Worker& worker, const TraceClock& clock, std::vector<std::string>& operations) {
  const Recorder& recorder = worker.executor().recorder(worker.training());
  const std::size_t actions = worker.training().list.size();
  const bool computes = row_of(worker.config().device.kind).computes;
  RankTimes times;
  for (std::size_t held = first_traced(worker); held < recorder.held(); ++held) {
    std::vector<Recorder::Times>& step = times.steps.emplace_back();
    for (std::size_t action = 0; action < actions; ++action) {
      const Recorder::Times& at = recorder.times(held, action);
      step.push_back({clock.shown(at.start), clock.shown(at.end)});
    }
    std::vector<TracedSum>& sums = times.sums.emplace_back();
    for (const Recorder::Sum& sum : recorder.sums(held)) {
      if (!computes || sum.action < 0) continue;
      auto name = std::find(operations.begin(), operations.end(), sum.operation);
      if (name == operations.end()) name = operations.insert(operations.end(), sum.operation);
      sums.push_back({sum.action, static_cast<int>(name - operations.begin()), clock.shown(sum.start),
                      clock.shown(sum.end)});
    }
    times.host.push_back(recorder.host(held));
  }
  times.pings = clock.pings();
  return times;
}

/// The last steps as this rank has them, and their program.
void add_steps(Worker& worker, const TraceClock& clock, StepTrace& trace) {
  trace.program = worker.plan().training.program;
  for (int list = 0; list < std::ssize(trace.program.ranks); ++list)
    trace.paper.push_back(times_on_paper(worker.plan().training, worker.plan().outline, list));
  const Recorder& recorder = worker.executor().recorder(worker.training());
  for (std::size_t held = first_traced(worker); held < recorder.held(); ++held)
    trace.steps.push_back(recorder.first_held_step() + static_cast<std::int64_t>(held) + 1);
  trace.ranks[worker.world().rank] = times_here(worker, clock, trace.operations);
}

/// The last subnets as this rank has them, in place of a step, and its list. Prices on paper are those of the
/// subnets' blocks, which whoever reads the trace can look up: the file has zeros there.
void add_subnets(Worker& worker, const TraceClock& clock, StepTrace& trace) {
  SubnetRows rows = subnet_rows(worker, clock);
  if (!rows.list.empty()) trace.steps = {1};
  const int own = worker.layout().program_rank();
  trace.program.ranks.resize(static_cast<std::size_t>(program_ranks(trace.grid)));
  trace.paper.resize(static_cast<std::size_t>(program_ranks(trace.grid)));
  trace.paper[own].assign(rows.list.size(), 0);
  trace.program.ranks[own] = std::move(rows.list);
  trace.ranks[worker.world().rank] = std::move(rows.times);
}

}  // namespace

std::string trace_of(const std::string& run) { return run + "/trace.json"; }
std::string replayable_trace_of(const std::string& run) { return run + "/replay/trace.safetensors"; }

void forget_traces(const std::string& run) {
  for (const std::string& path : {trace_of(run), replayable_trace_of(run)}) {
    std::error_code problem;
    std::filesystem::remove(path, problem);
    if (problem)
      warning("{}: cannot be removed ({}), though it is of an earlier start", path, problem.message());
  }
}

bool write_replayable_trace(Worker& worker, const std::string& injected, const std::string& path,
                            const TraceClock& clock) {
  const World& world = worker.world();
  const DeviceConfig& device = worker.config().device;
  const bool imitates = !row_of(device.kind).computes;
  StepTrace trace{.grid = worker.layout().grid,
                  .is_priced = imitates || !device.profile.empty(),
                  .of_subnets = worker.subnets() != nullptr,
                  .calls = worker.plan().network.calls,
                  .configuration = to_yaml(worker.config()),
                  .maker = version(),
                  .device = worker.backend().description(),
                  .injected = injected};
  trace.ranks.resize(static_cast<std::size_t>(world.size));
  trace.hosts.resize(static_cast<std::size_t>(world.size));
  trace.hosts[world.rank] = clock.host();
  if (imitates) trace.ranks_per_node = links_on_paper(worker.config()).ranks_per_node;
  if (trace.of_subnets) add_subnets(worker, clock, trace);
  else add_steps(worker, clock, trace);
  if (any_rank(world, trace.steps.empty())) return false;
  if (trace.of_subnets) exchange_lists(world, trace);
  const std::string problem = write_step_trace(world, std::move(trace), path);
  if (!problem.empty()) warning("{}; the run has no trace to replay", problem);
  return problem.empty();
}

void write_trace(Worker& worker, const std::string& path) {
  const bool is_first = worker.world().rank == 0;
  const SumOverGroup sum = [&](std::vector<std::int64_t>& numbers) {
    worker.wiring().sum_over_grid(numbers, TrafficClass::files);
  };
  const TracedRank traced = traced_here(worker, clock_shift(is_first, sum));
  const std::int64_t zero = first_of_all(traced.actions, worker.world(), sum);
  if (zero == std::numeric_limits<std::int64_t>::max()) return;  // nothing was trained
  std::optional<NewFile> file;
  const auto write = [&](const std::string& text) {
    if (is_first) file->write(text.data(), text.size());
  };
  if (is_first) file.emplace(path);
  write(chrome_begin(worker.backend().description()));
  std::string own = chrome_events(traced, zero);
  if (!is_first) own.insert(0, ",\n");
  gather_texts(own, worker.world().rank, worker.world().size, sum, write);
  write(chrome_end);
  if (is_first) file->commit();
}

}  // namespace mindpipe
