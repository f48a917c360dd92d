#include "cuda/cuda_backend.h"

#include <cstdlib>
#include <optional>
#include <string>

#include "core/input_file.h"
#include "cuda/error.h"
#include "hardware.h"
#include "make_backend.h"
#include "plans/reserved_processors.h"

namespace mindpipe {
namespace {

std::string text_of(const std::string& file) {
  constexpr std::int64_t most = std::int64_t{16} << 20;
  std::optional<std::string> text = read_text_if_there(file, most);
  MP_REQUIRE(
      text, Exit::input_missing,
      "device.kernels: {} is not there; write it with mindpipe-train doctor --tune, or leave the setting out",
      file);
  return *std::move(text);
}

/// Called before CUDA looks at its environment: queues that share a connection wait for one another, and
/// those of messages must never wait for those of computing.
void give_each_queue_a_connection() {
  const char* wish = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  if (wish == nullptr || std::atoi(wish) < 8) setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
}

}  // namespace

CudaBackend::CudaBackend(Memory& memory, int device, const std::string& kernels, const AttentionLimit& limit,
                         int reserved)
    : GpuOperations(memory, device),
      processors_(processors_left(properties().multiProcessorCount, reserved)),
      fused_attention_(cuda::make_fused_attention(memory, limit)) {
  if (kernels.empty()) return;
  cuda::TunedTable table = cuda::read_tuned_table(text_of(kernels), kernels);
  cuda::require_fit(table, kernels, gpu(), products_.version(), processors_);
  products_.use(std::move(table));
}

std::string CudaBackend::gpu() const { return properties().name; }

std::string CudaBackend::description() const {
  int driver = 0;
  MP_CUDA(cudaDriverGetVersion(&driver));
  const std::string attention =
      fused_attention_ ? fmt::format("cuDNN {}", fused_attention_->version()) : "attention of our own";
  return describe_with(fmt::format("driver for CUDA {}.{}; cuBLASLt {} and {}", driver / 1000,
                                   driver % 1000 / 10, products_.version(), attention));
}

void CudaBackend::reserve(const Workspace& workspace) {
  if (fused_attention_) fused_attention_->plan(workspace.planned);
}

std::unique_ptr<Backend> make_cuda_backend(Memory& memory, int device, const std::string& kernels,
                                           const AttentionLimit& limit, int reserved) {
  give_each_queue_a_connection();
  return std::make_unique<CudaBackend>(memory, device, kernels, limit, reserved);
}

std::string gpu_devices() {
  give_each_queue_a_connection();
  int devices = 0, driver = 0, runtime = 0;
  const cudaError_t answer = cudaGetDeviceCount(&devices);
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  std::string text = fmt::format("CUDA {}.{}", runtime / 1000, runtime % 1000 / 10);
  if (answer != cudaSuccess) {
    cudaGetLastError();  // asking is no failure of a later call
    return text + fmt::format(", no GPU: {}", cudaGetErrorString(answer));
  }
  text += fmt::format(" on a driver for {}.{}", driver / 1000, driver % 1000 / 10);
  for (int device = 0; device < devices; ++device) {
    cudaDeviceProp properties;
    MP_CUDA(cudaGetDeviceProperties(&properties, device));
    text += fmt::format(", {}", properties.name);
  }
  return text;
}

int gpu_count() {
  give_each_queue_a_connection();
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess) return devices;
  cudaGetLastError();
  return 0;
}

}  // namespace mindpipe
