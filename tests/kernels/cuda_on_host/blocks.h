#pragma once
#include "cuda_runtime.h"

namespace on_host {

/// Runs the threads of a grid, block after block.
void run_grid(const cudaLaunchConfig_t& config, const Thread& thread);

}  // namespace on_host
