#include "cuda/cuda_backend.h"

#include "cuda/error.h"

namespace mindpipe {

std::unique_ptr<Backend> make_cuda_backend(Memory& memory, int device) { return std::make_unique<CudaBackend>(memory, device); }

std::string gpu_devices() {
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
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess) return devices;
  cudaGetLastError();
  return 0;
}

}  // namespace mindpipe
