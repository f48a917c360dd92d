#pragma once
#include <string>

#include "comm/mpi.h"

namespace mindpipe {

/// What rank 0 has for `text`. Collective over the world.
std::string text_of_rank_0(const World& world, const std::string& text);
/// Returns once every rank has called it: none goes on while another fails. Collective over the world.
void wait_for_all(const World& world);

}  // namespace mindpipe
