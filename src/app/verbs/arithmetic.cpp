#include "app/run/run_arithmetic.h"
#include "app/run/run_inputs.h"
#include "config/config.h"

#include "app/plan/grid_choice.h"
#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "core/launcher.h"
#include "make_backend.h"

namespace mindpipe {
namespace {

/// What this machine's kernels would be, as a backend says; a GPU is opened for it.
std::string kernels_here(const Config& config) {
  if (!row_of(config.device.kind).computes) return "emulated: computes nothing";
  const Memory::Kind kind = row_of(config.device.kind).memory;
  Memory memory(kind);
  return kind == Memory::Kind::device
             ? make_cuda_backend(memory, 0)->description()
             : make_cpu_backend(memory, 1, config.device.instructions)->description();
}

}  // namespace

int arithmetic(const Arguments& arguments, const Config& given) {
  if (launch().rank != 0) return 0;
  const int ranks = arguments.ranks > 0 ? arguments.ranks : ranks_of_grid(given);
  const Config config = on_paper(given, ranks, arguments.open);
  const RunArithmetic all(config, kernels_here(config), inputs_of(config));
  print(fmt::format("{}name: {}\n", all.text(), all.name()));
  return 0;
}

}  // namespace mindpipe
