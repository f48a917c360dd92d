#include "core/launcher.h"

#include <cstdlib>
#include <initializer_list>
#include <optional>

namespace mindpipe {
namespace {

std::optional<int> first_of(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return std::nullopt;
}

}  // namespace

Launch launch() {
  if (const auto rank = first_of({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}))
    return {true, *rank, first_of({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}).value_or(0)};
  // A batch script has SLURM_PROCID and SLURM_NTASKS too; only srun counts the tasks of a step.
  if (const auto ranks = first_of({"SLURM_STEP_NUM_TASKS"}))
    return {true, first_of({"SLURM_PROCID"}).value_or(0), *ranks};
  return {};
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace mindpipe
