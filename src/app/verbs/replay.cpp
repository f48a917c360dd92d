#include <filesystem>

#include "app/report/replay_files.h"
#include "app/report/replay_page.h"
#include "app/train/trace_file.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "core/launcher.h"
#include "core/log.h"
#include "io/file.h"
#include "plan/other_program.h"
#include "runtime/trace_reader.h"
#include "trace/partial_report.h"
#include "trace/run_changes.h"

namespace mindpipe {

namespace {

/// The file of a run's trace, which is there.
std::string trace_file_of(const std::string& run) {
  const std::string path = replayable_trace_of(run);
  MP_REQUIRE(
      std::filesystem::exists(path), Exit::input_missing,
      "{}: there is no such file; a training writes it at its end (one that was killed has none), with "
      "trace.steps of 1 or more and steps, not subnets",
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

}  // namespace

int replay_run(const Arguments& arguments, const Config&) {
  if (launch().rank != 0) return 0;
  const ReplayArguments& asked = arguments.replay;
  std::vector<std::string> settings;
  const std::string other = other_run(asked, settings), path = trace_file_of(asked.run);
  if (!other.empty()) {
    print(text_of_changes(read_aligned_trace(path), read_aligned_trace(trace_file_of(other)), asked.run,
                          other));
    return 0;
  }
  if (settings.empty() && asked.changes.empty())
    if (const StepTrace trace = read_partial_trace(path); !missing_ranks(trace).empty()) {
      print(fmt::format("{}: {}", asked.run, partial_report(trace, ReplayGraph(trace.grid, trace.program))));
      return static_cast<int>(Exit::bad_data);
    }
  const StepTrace trace = read_aligned_trace(path);
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
