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

/// Sets the whole state of the run from a checkpoint, while its blocks are checked. Every rank reads for
/// itself what it keeps. The checkpoint's damage, as damage_of tells it; then the state is not to be used.
std::string load_checkpoint(Worker& worker, const Manifest& manifest, const std::string& directory);

}  // namespace mindpipe
