#include <filesystem>

#include "app/report/replay_files.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "core/launcher.h"
#include "core/log.h"
#include "io/file.h"
#include "runtime/trace_reader.h"

namespace mindpipe {

int replay_run(const Arguments& arguments, const Config&) {
  if (launch().rank != 0) return 0;
  const ReplayArguments& asked = arguments.replay;
  const std::string folder = asked.run + "/replay", path = folder + "/trace.safetensors";
  MP_REQUIRE(
      std::filesystem::exists(path), Exit::input_missing,
      "{}: there is no such file; a training writes it at its end, with trace.steps of 1 or more and steps, "
      "not subnets",
      path);
  const StepTrace trace = read_step_trace(path);
  const ReplayGraph graph(trace.grid, trace.program);
  const Diagnosis diagnosis = diagnose(trace, graph, asked.changes, path);
  print(fmt::format("{}: {}", asked.run, text_of(diagnosis, trace, graph)));
  replace_file(folder + "/replay.json", replay_json(diagnosis, trace, graph));
  info("figures: {}/replay.json", folder);
  return 0;
}

}  // namespace mindpipe
