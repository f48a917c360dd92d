#include "cuda/gpu_operations.h"

#include "cuda/error.h"

namespace mindpipe {
namespace {

/// Makes a GPU the one that this thread's calls go to.
int choose(int device) {
  int devices = 0;
  const cudaError_t answer = cudaGetDeviceCount(&devices);
  MP_REQUIRE(answer == cudaSuccess && devices > 0, Exit::bad_configuration,
             "device.kind is cuda, but CUDA finds no GPU that this process may use ({}); look with "
             "nvidia-smi at GPUs and driver, or set "
             "device.kind=cpu",
             cudaGetErrorString(answer));
  MP_REQUIRE(device >= 0 && device < devices, Exit::bad_configuration,
             "cuda: GPU {} of {}; start as many ranks on a node as it has GPUs, or set CUDA_VISIBLE_DEVICES",
             device, devices);
  MP_CUDA(cudaSetDevice(device));
  return device;
}

std::size_t shared_memory_of_block(int device) {
  int bytes = 0;
  MP_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return static_cast<std::size_t>(bytes - beside_held_row);
}

}  // namespace

GpuOperations::GpuOperations(Memory& memory, int device)
    : memory_(memory),
      device_(choose(device)),
      workspace_(memory, MemoryClass::workspace, gpu_workspace_bytes),
      shared_of_block_(shared_memory_of_block(device_)) {}

GpuOperations::~GpuOperations() { cudaDeviceSynchronize(); }

std::string GpuOperations::describe_with(const std::string& libraries) const {
  const cudaDeviceProp gpu = properties();
  return fmt::format("cuda: {} of {} multiprocessors; {}, GPU {} ({:.0f} GiB)", gpu.name,
                     gpu.multiProcessorCount, libraries, device_,
                     static_cast<double>(gpu.totalGlobalMem) / 1073741824.0);
}

cudaDeviceProp GpuOperations::properties() const {
  cudaDeviceProp properties;
  MP_CUDA(cudaGetDeviceProperties(&properties, device_));
  return properties;
}

void* GpuOperations::workspace(std::size_t bytes, const char* operation) {
  MP_CHECK(queue_ == Queue::compute, "{}: queue {} has no workspace (the compute queue has)", operation,
           name_of(queue_));
  MP_CHECK(bytes <= workspace_.size(), "{}: a workspace of {} bytes is wanted, {} are there", operation,
           bytes, workspace_.size());
  return workspace_.address_of(0);
}

void GpuOperations::done(const char* operation) {
  cuda::require(cudaGetLastError(), operation);
  if (queue_ == Queue::compute) progress();
}

void GpuOperations::copy(const Tensor& from, const Tensor& to) {
  require(to, from.count(), from.dtype, "copy", "to");
  if (from.count() != 0)
    MP_CUDA(cudaMemcpyAsync(to.data, from.data, from.bytes(), cudaMemcpyDefault, stream()));
  if (queue_ == Queue::compute) progress();
}

void GpuOperations::upload(const void* host, const Tensor& to) {
  staging_.upload(host, to.data, to.bytes(), stream());
  if (queue_ == Queue::compute) progress();
}

void GpuOperations::download(const Tensor& from, void* host) {
  staging_.download(from.data, host, from.bytes(), stream());
  if (queue_ == Queue::compute) progress();
}

void GpuOperations::synchronize() {
  queues_.synchronize();
  if (queue_ == Queue::compute) progress();
}

}  // namespace mindpipe
