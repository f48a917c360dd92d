#pragma once
#include <functional>

#include "cuda_runtime.h"

namespace on_host {

/// Runs `body` for every thread of a grid, block after block.
void run_grid(const cudaLaunchConfig_t& config, const std::function<void()>& body);

}  // namespace on_host
