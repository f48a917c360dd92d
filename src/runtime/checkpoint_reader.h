#pragma once
#include <string>

#include "io/manifest.h"
#include "runtime/worker.h"

namespace mindpipe {

/// Why a checkpoint's file is not what its manifest says, of all ranks the first that finds it; empty: every
/// byte is. The ranks share the blocks. Collective over the world.
std::string damage_of(const World& world, const Manifest& manifest, const std::string& directory,
                      int threads);

/// Fails, naming the first that differ, unless the checkpoint has the tensors of this model and rule.
void require_same_tensors(Worker& worker, const Manifest& manifest, const std::string& directory);

/// Sets the whole state of the run from a checkpoint in which nothing is damaged. Every rank reads for itself
/// what it keeps.
void load_checkpoint(Worker& worker, const Manifest& manifest, const std::string& directory);

}  // namespace mindpipe
