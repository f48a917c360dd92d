#pragma once
#include <string>

namespace mindpipe::cuda {

/// A GPU as the CUDA runtime describes it, in the form of data/devices and in one line. No library of
/// NVIDIA's is opened for it.
std::string gpu_description(int gpu);

}  // namespace mindpipe::cuda
