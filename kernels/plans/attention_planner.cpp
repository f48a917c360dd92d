#include "plans/attention_planner.h"

namespace mindpipe {

const GpuDescription* find_gpu(const std::string& name) {
  for (const GpuDescription& gpu : described_gpus())
    if (gpu.name == name) return &gpu;
  return nullptr;
}

}  // namespace mindpipe
