#include <filesystem>

#include "app/report/replay_files.h"
#include "app/report/replay_page.h"
#include "app/report/subnet_page.h"
#include "app/train/measured_prices.h"
#include "app/train/subnet_causes.h"
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
#include "plan/other_subnets.h"
#include "runtime/trace_reader.h"
#include "trace/clocks.h"
#include "trace/partial_report.h"
#include "trace/pauses.h"
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
      "trace.steps of 1 or more",
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

/// Whether a change asks for the time of like work, which subnets have on other replicas alone.
bool has_no_peers(const std::string& change, const Coord& grid) {
  return change.ends_with("=ideal") &&
         (grid.data * grid.tensor == 1 || change.starts_with("stage:") || change.starts_with("link:"));
}

/// Lets all periods begin with the first pass, as `lasts` does: a replay begins with receives, which are
/// posted long before.
void count_from_first_pass(Diagnosis& diagnosis, std::int64_t lasts) {
  const std::int64_t before = diagnosis.identity.measured - lasts;
  const auto shift = [before](Expected& expected) {
    for (std::int64_t* time : {&expected.period, &expected.least, &expected.most}) *time -= before;
  };
  shift(diagnosis.expected);
  for (WhatIfResult& change : diagnosis.changes) shift(change.expected);
}

/// Replays a supernet's last subnets in the order in which they ran, and says what other plans of them take.
int replay_subnets(const StepTrace& trace, const ReplayArguments& asked,
                   const std::vector<std::string>& settings, const std::string& path) {
  const auto beside = [&](const char* name) {
    return std::filesystem::path(path).replace_filename(name).string();
  };
  for (const std::string& change : asked.changes)
    MP_REQUIRE(!has_no_peers(change, trace.grid), Exit::usage,
               "--scale {}: no other pass of a subnet does the same work (give a factor, or free)", change);
  const ReplayGraph graph(trace.grid, trace.program);
  Diagnosis diagnosis = diagnose(trace, graph, asked.changes, path);
  count_from_first_pass(diagnosis, computed_for(trace));
  const SubnetCauses found =
      subnet_causes(trace, graph, measured_times(trace, graph, trace.clock_bound), path);
  diagnosis.causes = found.causes;
  const std::optional<FittedPrices>& prices = found.prices;
  if (!settings.empty()) {
    MP_REQUIRE(prices, Exit::bad_data, "{}: says nothing of what others take: {}", path, found.unknown);
    replace_file(beside("prices.yaml"), text_of(*prices, asked.run));
    diagnosis.changes.push_back(
        OtherSubnets(trace, beside("prices.yaml"), computed_for(trace), path).expect(settings));
  }
  const std::string text = in_short_lines(fmt::format(
      "{}: {}", asked.run, text_of_subnets(diagnosis, trace, graph, prices ? text_of_prices(*prices) : "")));
  print(text);
  replace_file(beside("replay.json"), replay_json(diagnosis, trace, graph));
  replace_file(beside("replay.html"), subnet_page(diagnosis, trace, graph, asked.run, text));
  info("figures: {}; pictures: {}", beside("replay.json"), beside("replay.html"));
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
    print(in_short_lines(text_of_changes(before, after, asked.run, other)));
    return 0;
  }
  const bool may_lack = settings.empty() && asked.changes.empty();
  StepTrace trace = may_lack ? read_partial_trace(path) : read_step_trace(path);
  if (!missing_ranks(trace).empty()) {
    if (trace.of_subnets) read_step_trace(path);  // refuses it
    print(in_short_lines(
        fmt::format("{}: {}", asked.run, partial_report(trace, ReplayGraph(trace.grid, trace.program)))));
    return static_cast<int>(Exit::bad_data);
  }
  align_clocks(trace);
  leave_out_pauses(trace);
  if (trace.of_subnets) return replay_subnets(trace, asked, settings, path);
  const ReplayGraph graph(trace.grid, trace.program);
  Diagnosis diagnosis = diagnose(trace, graph, asked.changes, path);
  if (!settings.empty())
    diagnosis.changes.push_back(OtherPrograms(trace, graph, diagnosis.expected, path).expect(settings));
  else if (asked.changes.empty()) diagnosis.changes = suggestions_for(trace, graph, diagnosis.expected, path);
  const std::string text = in_short_lines(fmt::format("{}: {}", asked.run, text_of(diagnosis, trace, graph)));
  print(text);
  const std::string figures = std::filesystem::path(path).replace_filename("replay.json"),
                    page = std::filesystem::path(path).replace_filename("replay.html");
  replace_file(figures, replay_json(diagnosis, trace, graph));
  replace_file(page, replay_page(diagnosis, trace, graph, asked.run, text));
  info("figures: {}; pictures: {}", figures, page);
  return 0;
}

}  // namespace mindpipe
