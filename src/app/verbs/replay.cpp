#include <filesystem>

#include "app/report/replay_files.h"
#include "app/report/replay_page.h"
#include "app/train/measured_prices.h"
#include "app/train/trace_file.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "config/config.h"
#include "core/input_file.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/text.h"
#include "io/file.h"
#include "plan/other_program.h"
#include "runtime/trace_reader.h"
#include "trace/clocks.h"
#include "trace/partial_report.h"
#include "trace/run_changes.h"
#include "trace/subnet_report.h"

namespace mindpipe {

namespace {

/// The file of a run's trace, which is there.
std::string trace_file_of(const std::string& run) {
  const std::string path = replayable_trace_of(run);
  MP_REQUIRE(
      file_is_there(path), Exit::input_missing,
      "{}: there is no such file; a training writes it at its end (one that was killed has none), with "
      "trace.steps of 1 or more (of a supernet one without lanes)",
      path);
  return path;
}

/// Splits what stands behind the run: settings of another program, and another run; at most one of these.
std::string other_run(const ReplayArguments& asked, std::vector<std::string>& settings) {
  std::string other;
  for (const std::string& word : asked.words) {
    if (word.find('=') != std::string::npos) settings.push_back(word);
    else {
      MP_REQUIRE(other.empty(), Exit::usage, "replay: compares two runs, and {} is a third", word);
      other = word;
    }
  }
  MP_REQUIRE(other.empty() || (settings.empty() && asked.changes.empty()), Exit::usage,
             "replay: either compares two runs, or says what if of one ({} is another run)", other);
  return other;
}

/// What the passes of a trace of subnets say of its prices; empty: there are too few.
std::string prices_in(const StepTrace& trace, const Config& config) {
  std::vector<PassTimes::Rows> ranks;
  for (int stage = 0; stage < trace.grid.pipeline; ++stage) {
    PassTimes times;
    const int rank = rank_at(trace.grid, {0, 0, stage, 0});
    for (std::size_t index = 0; index < trace.list(rank).size(); ++index)
      times.add(trace.list(rank)[index], trace.ranks[rank].steps.front()[index]);
    ranks.push_back(times.rows());
  }
  const auto prices = prices_of_passes(config, make_run_plan(config).outline, ranks);
  return prices ? text_of_prices(*prices) : "";
}

/// Replays a supernet's last subnets, in the order in which they ran.
int replay_subnets(const StepTrace& trace, const ReplayArguments& asked,
                   const std::vector<std::string>& settings, const std::string& path) {
  MP_REQUIRE(
      settings.empty(), Exit::usage,
      "replay {}: what if {}: subnets are replayed in the order in which they ran, and other settings make "
      "another (plan --simulate with supernet.prices={}/prices.yaml says what they take)",
      asked.run, join(settings, " "), asked.run);
  const ReplayGraph graph(trace.grid, trace.program);
  const Diagnosis diagnosis = diagnose(trace, graph, asked.changes, path);
  const Config config = config_of_yaml(trace.configuration, path);
  print(fmt::format("{}: {}", asked.run, text_of_subnets(diagnosis, trace, graph, prices_in(trace, config))));
  const std::string figures = std::filesystem::path(path).replace_filename("replay.json");
  replace_file(figures, replay_json(diagnosis, trace, graph));
  info("figures: {}", figures);
  return 0;
}

}  // namespace

int replay_run(const Arguments& arguments, const Config&) {
  if (launch().rank != 0) return 0;
  const ReplayArguments& asked = arguments.replay;
  std::vector<std::string> settings;
  const std::string other = other_run(asked, settings), path = trace_file_of(asked.run);
  if (!other.empty()) {
    const StepTrace before = read_aligned_trace(path), after = read_aligned_trace(trace_file_of(other));
    MP_REQUIRE(!before.of_subnets && !after.of_subnets, Exit::usage,
               "replay {} {}: compares steps, not subnets", asked.run, other);
    print(text_of_changes(before, after, asked.run, other));
    return 0;
  }
  const bool may_lack = settings.empty() && asked.changes.empty();
  StepTrace trace = may_lack ? read_partial_trace(path) : read_step_trace(path);
  if (!missing_ranks(trace).empty()) {
    if (trace.of_subnets) read_step_trace(path);  // refuses it
    print(fmt::format("{}: {}", asked.run, partial_report(trace, ReplayGraph(trace.grid, trace.program))));
    return static_cast<int>(Exit::bad_data);
  }
  align_clocks(trace);
  if (trace.of_subnets) return replay_subnets(trace, asked, settings, path);
  const ReplayGraph graph(trace.grid, trace.program);
  Diagnosis diagnosis = diagnose(trace, graph, asked.changes, path);
  if (!settings.empty())
    diagnosis.changes.push_back(OtherPrograms(trace, graph, diagnosis.expected, path).expect(settings));
  else if (asked.changes.empty()) diagnosis.changes = suggestions_for(trace, graph, diagnosis.expected, path);
  const std::string text = fmt::format("{}: {}", asked.run, text_of(diagnosis, trace, graph));
  print(text);
  const std::string figures = std::filesystem::path(path).replace_filename("replay.json"),
                    page = std::filesystem::path(path).replace_filename("replay.html");
  replace_file(figures, replay_json(diagnosis, trace, graph));
  replace_file(page, replay_page(diagnosis, trace, graph, asked.run, text));
  info("figures: {}; pictures: {}", figures, page);
  return 0;
}

}  // namespace mindpipe
