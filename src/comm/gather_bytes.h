#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "comm/mpi.h"

namespace mindpipe {

/// What every rank brings, in the order of ranks, on rank 0; nothing on the others. Collective over the
/// world.
std::vector<std::vector<std::byte>> gather_bytes(const World& world, const std::vector<std::byte>& mine);
/// What every rank says, likewise.
std::vector<std::string> gather_texts(const World& world, const std::string& mine);
/// What every rank says, in the order of ranks, on all ranks. Collective over the world.
std::vector<std::string> exchange_texts(const World& world, const std::string& mine);

}  // namespace mindpipe
