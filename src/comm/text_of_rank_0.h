#pragma once
#include <string>

#include "comm/mpi.h"

namespace mindpipe {

/// The `text` that rank 0 passes, on every rank. Collective over the world.
std::string text_of_rank_0(const World& world, const std::string& text);
/// Whether `problem` holds on this rank and on none before it: this rank is the one to fail. Where it holds
/// on another rank, this call does not return, because that rank ends the job. Collective over the world.
bool is_first_with(const World& world, bool problem);

/// Whether something holds on any rank. Collective over the world.
bool any_rank(const World& world, bool holds);

}  // namespace mindpipe
