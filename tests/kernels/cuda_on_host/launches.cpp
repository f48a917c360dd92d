#include <functional>
#include <map>

#include "blocks.h"
#include "cuda_runtime.h"
#include "shadow.h"

/// What a launch may ask for, and a kernel's launch bounds, which stand in the program as instructions before
/// it.
namespace {

using Code = const unsigned char*;
extern "C" const Code __start___patchable_function_entries[];
extern "C" const Code __stop___patchable_function_entries[];

/// The threads that a kernel was compiled for: those of its __launch_bounds__, else those of any block.
unsigned threads_allowed(const void* kernel) {
  constexpr std::ptrdiff_t most = 1024;
  constexpr unsigned char nothing = 0x90;
  const auto at = static_cast<Code>(kernel);
  Code begin = nullptr;
  for (const Code* entry = __start___patchable_function_entries; entry != __stop___patchable_function_entries;
       ++entry)
    if (*entry<at&& * entry> begin) begin = *entry;
  if (begin == nullptr || at - begin > most) return most;
  for (Code code = begin; code < at; ++code)
    if (*code != nothing) return most;
  return static_cast<unsigned>(at - begin);
}

std::map<const void*, std::size_t>& dynamic_bytes_allowed() {
  static std::map<const void*, std::size_t> all;
  return all;
}

}  // namespace

namespace on_host {
namespace {
int kernels = 0;
}  // namespace

int kernels_started() { return kernels; }

void put(cudaStream_t stream, std::function<void()> work);
cudaError_t refuse(cudaError_t error);

cudaError_t allow_dynamic_bytes(const void* kernel, int bytes) {
  if (bytes < 0 || static_cast<std::size_t>(bytes) > most_dynamic_bytes) return refuse(cudaErrorInvalidValue);
  dynamic_bytes_allowed()[kernel] = static_cast<std::size_t>(bytes);
  return cudaSuccess;
}

cudaError_t enqueue(const cudaLaunchConfig_t& config, const void* kernel,
                    std::shared_ptr<const Thread> thread) {
  const dim3 blocks = config.gridDim, threads = config.blockDim;
  constexpr std::size_t dynamic_bytes_unasked = 48 << 10;
  const auto asked = dynamic_bytes_allowed().find(kernel);
  const std::size_t dynamic = asked == dynamic_bytes_allowed().end() ? dynamic_bytes_unasked : asked->second;
  const bool fits = blocks.x > 0 && blocks.x <= 0x7fffffffu && blocks.y > 0 && blocks.y <= 65535 &&
                    blocks.z > 0 && blocks.z <= 65535 && threads.x > 0 &&
                    threads.x <= threads_allowed(kernel) && threads.x % 32 == 0 && threads.y == 1 &&
                    threads.z == 1 && config.dynamicSmemBytes <= dynamic;
  if (!fits) return refuse(cudaErrorInvalidConfiguration);
  ++kernels;
  put(config.stream, [config, thread = std::move(thread)] { run_grid(config, *thread); });
  return cudaSuccess;
}

}  // namespace on_host
