#pragma once
#include <string>

#include "comm/mpi.h"

namespace mindpipe {

/// What rank 0 has for `text`. Collective over the world.
std::string text_of_rank_0(const World& world, const std::string& text);
/// Whether `problem` holds on this rank and on none before it: this rank is the one to fail. Where it holds
/// on another, this call does not return, for that one ends the job. Collective over the world.
bool is_first_with(const World& world, bool problem);

}  // namespace mindpipe
