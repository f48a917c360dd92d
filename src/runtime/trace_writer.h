#pragma once
#include <string>

#include "comm/mpi.h"
#include "trace/step_trace.h"

namespace mindpipe {

/// Gives all ranks the lists of all stages, with their times on paper, where each has its own stage's alone.
/// Collective over the world.
void exchange_lists(const World& world, StepTrace& trace);

/// Writes the trace of a run. Every rank brings the same description with the times of its own alone, and
/// writes its own rows, at offsets that follow from the lists and from the number of its sums; rank 0 writes
/// the header and the program, and gives the file its name once it is whole. Collective over the world.
/// Returns the complaint of a rank that could not write, for then there is no file.
std::string write_step_trace(const World& world, StepTrace trace, const std::string& path);

}  // namespace mindpipe
