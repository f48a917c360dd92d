#include "cuda/error.h"

namespace mindpipe::cuda {
namespace {

struct Advice {
  Exit code;
  const char* text;
};

Advice advice_for(cudaError_t result) {
  switch (result) {
    case cudaErrorMemoryAllocation:
      return {Exit::out_of_memory,
              "take a smaller train.micro_batch, train.recompute: block, or more stages, and see with "
              "nvidia-smi who else uses this GPU"};
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
    case cudaErrorInvalidDevice:
    case cudaErrorSystemDriverMismatch:
      return {Exit::bad_configuration,
              "look with nvidia-smi whether this process may use a GPU and its driver is new enough, or "
              "compute with device.kind: cpu"};
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return {Exit::bad_configuration,
              "this build has no code for this GPU: build with `make cuda`, or with "
              "-DMINDPIPE_CUDA_ARCHITECTURES for it"};
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
      return {Exit::internal,
              "the GPU is damaged or in a bad state: leave this node out, and tell its administrators"};
    default:
      return {Exit::internal,
              "an earlier kernel may be the culprit, since kernels run later than they are started: run once "
              "more with "
              "CUDA_LAUNCH_BLOCKING=1 or under "
              "compute-sanitizer, and report what it says"};
  }
}

}  // namespace

void require(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  const Advice advice = advice_for(result);
  fail(advice.code, "cuda: {} answered {} ({}); {}", call, cudaGetErrorName(result),
       cudaGetErrorString(result), advice.text);
}

}  // namespace mindpipe::cuda
