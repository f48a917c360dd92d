#pragma once
// The part of the CUDA runtime that kernels/cuda uses, on the host: memory is memory between guards, a stream
// is a list of work that is done when somebody waits for it, and a kernel's threads are fibers of one thread.
// With it the very sources of the CUDA backend are tested where there is no GPU.
#include <math.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static  // blocks run one after the other

// -- errors
// ----------------------------------------------------------------------------------------------------
enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorMemoryAllocation,
  cudaErrorInvalidConfiguration,
  cudaErrorNoDevice,
  cudaErrorInsufficientDriver,
  cudaErrorDevicesUnavailable,
  cudaErrorInvalidDevice,
  cudaErrorSystemDriverMismatch,
  cudaErrorNoKernelImageForDevice,
  cudaErrorUnsupportedPtxVersion,
  cudaErrorECCUncorrectable,
  cudaErrorHardwareStackError,
  cudaErrorNotReady,
};
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();

/// A store of a whole piece.
template <class Piece>
void __stwb(Piece* to, Piece piece) {
  *to = piece;
}

// -- devices, memory, streams, events
// ----------------------------------------------------------------------------------------------------
struct cudaDeviceProp {
  char name[256];
  int multiProcessorCount;
  std::size_t totalGlobalMem;
};
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaDeviceSynchronize();

enum {
  cudaHostAllocPortable = 1,
  cudaStreamNonBlocking = 1,
  cudaEventDefault = 0,
  cudaEventDisableTiming = 2
};
enum cudaMemcpyKind {
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
cudaError_t cudaMalloc(void** address, std::size_t bytes);
cudaError_t cudaFree(void* address);
cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* address);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t then);

// -- kernels
// ----------------------------------------------------------------------------------------------------
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};
extern dim3 gridDim, blockDim, blockIdx, threadIdx;
namespace on_host {
/// Puts a kernel into a stream: `body` is run once for each thread of each block.
cudaError_t enqueue(const cudaLaunchConfig_t& config, std::function<void()> body);
/// Whether blocks, warps and lanes run from the last to the first: what depends on the order, as a missing
/// barrier does, then shows.
void run_backwards(bool backwards);
/// How often memory was asked for, and how often the host waited for work that was not done: neither belongs
/// into a step.
int allocations_and_waits();
void wait_for_block();
/// This lane's number, and those of all lanes of its warp once every one has come here.
const std::uint64_t* exchange(std::uint64_t own);
template <class T>
T from_lane(T own, unsigned lane) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &own, sizeof own);
  std::memcpy(&own, &exchange(bits)[lane % 32], sizeof own);
  return own;
}
}  // namespace on_host

template <class... Wanted, class... Given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Wanted...),
                               Given&&... arguments) {
  return on_host::enqueue(*config, [=] { kernel(arguments...); });
}

inline void __syncthreads() { on_host::wait_for_block(); }
inline void __syncwarp(unsigned = ~0u) { on_host::exchange(0); }
template <class T>
T __shfl_xor_sync(unsigned, T x, int distance) {
  return on_host::from_lane(x, threadIdx.x % 32 ^ static_cast<unsigned>(distance));
}
template <class T>
T __shfl_up_sync(unsigned, T x, unsigned distance) {
  const unsigned lane = threadIdx.x % 32;
  return on_host::from_lane(x, lane >= distance ? lane - distance : lane);
}
inline unsigned __match_any_sync(unsigned, int x) {
  const std::uint64_t* all = on_host::exchange(static_cast<std::uint64_t>(static_cast<std::int64_t>(x)));
  unsigned same = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    same |= (static_cast<std::int64_t>(all[lane]) == x ? 1u : 0u) << lane;
  return same;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(std::uint64_t{a} * b >> 32); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline long long __float2ll_rn(float x) { return llrintf(x); }
inline unsigned long long atomicAdd(unsigned long long* to, unsigned long long x) {
  return std::exchange(*to, *to + x);
}
