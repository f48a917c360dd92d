#include <filesystem>

#include "app/run/run_history.h"
#include "app/run/run_inputs.h"
#include "app/verbs/checkpoint_tools.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "comm/affinity.h"
#include "comm/mpi.h"
#include "core/text.h"
#include "io/checkpoint_directory.h"
#include "runtime/checkpoint_reader.h"

namespace mindpipe {
namespace {

std::string grid_of(const Manifest& manifest) {
  Coord grid{1, 1, 1, 1};
  for (const Axis axis : axes)
    if (const auto degree = manifest.grid.find(name_of(axis)); degree != manifest.grid.end())
      grid[axis] = static_cast<int>(degree->second);
  return to_string(grid);
}

std::string loss_of(const RunProgress& progress) {
  return progress.best_loss ? fmt::format("{:.4f} after step {}", *progress.best_loss, progress.best_step)
                            : "none";
}

/// Says that a checkpoint was marked as suspect, and why; empty: it was not.
std::string suspicion_line(const std::string& checkpoint) {
  const std::string suspicion = suspicion_of(checkpoint);
  return suspicion.empty() ? "" : fmt::format("  {}\n", suspicion);
}

/// A line for each checkpoint of a run, the newest first; a damaged manifest has its sentence there.
std::string list(const std::string& run_directory) {
  const std::vector<CheckpointPlace> places = checkpoints_in(run_directory);
  MP_REQUIRE(!places.empty(), Exit::input_missing, "{}: there is no checkpoint (name a run directory)",
             checkpoints_of(run_directory));
  std::string text;
  for (const CheckpointPlace& place : places) {
    text += std::filesystem::path(place.path).filename().string();
    try {
      const Manifest manifest = read_manifest(place.path);
      text +=
          fmt::format("  {:>10}  {}  best loss {}\n", human_bytes(static_cast<double>(manifest.file_bytes)),
                      grid_of(manifest), loss_of(manifest.progress));
      text += suspicion_line(place.path);
    } catch (const Error& error) {
      text += fmt::format("  damaged: {}\n", error.what());
    }
  }
  return text;
}

/// "up to step 40: arithmetic 0123456789abcdef", and what of it and of the course was another one then.
std::string before_that(const Manifest& manifest) {
  const RunHistory history(manifest);
  std::string text;
  for (std::size_t i = 0; i + 1 < history.eras().size(); ++i) {
    const RunHistory::Era &era = history.eras()[i], &next = history.eras()[i + 1];
    const std::string differs = first_difference(era.arithmetic, next.arithmetic, "there", "behind it"),
                      course = other_course(era.settings, next.settings, "there", "behind it");
    text += fmt::format("  up to step {}: arithmetic {}", era.end, era.arithmetic.name());
    for (const std::string& what : {differs, course})
      if (!what.empty()) text += "; " + what;
    text += "\n";
  }
  return text;
}

/// "arithmetic: 0123456789abcdef", and its parts that are no settings.
std::string name_and_parts(const RunArithmetic& arithmetic) {
  std::string text =
      fmt::format("arithmetic: {}", arithmetic.has_name() ? arithmetic.name() : "without a name");
  for (const auto& [part, value] : arithmetic.parts())
    if (part.find('.') == std::string::npos || part.starts_with(part_of_contents))
      text += fmt::format("\n    {}: {}", part, value);
  return text;
}

std::string info_of(const std::string& directory) {
  const Manifest m = read_manifest(directory);
  const RunProgress& p = m.progress;
  std::int64_t parameters = 0;
  for (const CheckpointTensor& tensor : m.tensors)
    if (tensor.path.starts_with("/model/"))
      parameters += tensor.bytes / static_cast<std::int64_t>(sizeof(float));
  std::string text = fmt::format(
      "{}\n  step {} ({} changed the weights), {} tokens, samples {} of {} planned\n  best loss {}; taken up "
      "again {} times\n  {} parameters, {} tensors, {}\n  saved by {} on {}\n  {}\n{}",
      directory, p.step, p.applied, p.tokens, p.samples, p.planned_samples, loss_of(p), m.restarts,
      parameters, m.tensors.size(), human_bytes(static_cast<double>(m.file_bytes)), m.created_by, grid_of(m),
      name_and_parts(RunArithmetic(m.arithmetic)), before_that(m));
  text += suspicion_line(directory);
  for (const auto& [key, value] : m.settings) text += fmt::format("  {}: {}\n", key, value);
  return text;
}

/// Ranks, where there are several, share the blocks.
int verify(const Arguments& arguments, const std::string& directory) {
  int argc = arguments.argc;
  char** argv = arguments.argv;
  const MpiSession session(argc, argv);
  const World world{session.world(), session.rank(), session.size()};
  const Manifest manifest = read_manifest(directory);
  const std::string damage = damage_of(
      world, manifest, directory, fair_threads(all_places(world.comm, place_of_this_rank(1)), world.rank));
  if (world.rank > 0) return damage.empty() ? 0 : static_cast<int>(Exit::checkpoint_corrupt);
  MP_REQUIRE(damage.empty(), Exit::checkpoint_corrupt, "{}", damage);
  print(fmt::format("{}: all {} in {} blocks are as they were written\n", directory,
                    human_bytes(static_cast<double>(manifest.file_bytes)), manifest.crcs.size()) +
        suspicion_line(directory));
  return 0;
}

}  // namespace

int ckpt(const Arguments& arguments, const Config&) {
  const CheckpointArguments& asked = arguments.checkpoint;
  if (asked.action == "list") print(list(asked.first));
  else if (asked.action == "info") print(info_of(checkpoint_at(asked.first)));
  else if (asked.action == "verify") return verify(arguments, checkpoint_at(asked.first));
  else if (asked.action == "export")
    print(export_weights(checkpoint_at(asked.first), asked.output, arguments.overrides));
  else return print_difference(checkpoint_at(asked.first), checkpoint_at(asked.second)) ? 1 : 0;
  return 0;
}

}  // namespace mindpipe
