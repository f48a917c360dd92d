#pragma once
// The part of the CUDA runtime that kernels/cuda uses, on the host: memory is memory between guards, a stream
// is a list of work that is done when somebody waits for it, and a kernel's threads are fibers of one thread.
// With it the very sources of the CUDA backend are tested where there is no GPU.
#include <math.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __grid_constant__
// A launch bound puts as many instructions that do nothing before the kernel as a block may have threads, and
// launches.cpp counts them.
#define __launch_bounds__(threads, ...) __attribute__((patchable_function_entry(int(threads), int(threads))))
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
cudaError_t cudaGetDevice(int* device);
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock,
  cudaDevAttrMaxBlockDimX,
  cudaDevAttrMaxBlockDimY,
  cudaDevAttrMaxBlockDimZ,
  cudaDevAttrMaxGridDimX,
  cudaDevAttrMaxGridDimY,
  cudaDevAttrMaxGridDimZ,
  cudaDevAttrMaxSharedMemoryPerBlock,
  cudaDevAttrWarpSize,
  cudaDevAttrMaxRegistersPerBlock,
  cudaDevAttrClockRate,
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrTccDriver,
  cudaDevAttrMemoryClockRate,
  cudaDevAttrL2CacheSize,
  cudaDevAttrMaxThreadsPerMultiProcessor,
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrComputeCapabilityMinor,
  cudaDevAttrMaxRegistersPerMultiprocessor,
  cudaDevAttrCooperativeLaunch,
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaDevAttrMaxBlocksPerMultiprocessor,
  cudaDevAttrReservedSharedMemoryPerBlock,
};
/// What an H200 answers.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device);
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
struct alignas(16) float4 {
  float x, y, z, w;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
extern dim3 gridDim, blockDim, blockIdx, threadIdx;
/// The memory that the block's launch has asked for, beside what the kernel declares.
unsigned char* dynamic_shared_memory();

namespace on_host {
/// A kernel with its arguments, as one thread runs it. What hands them over is not the kernel's own and is
/// compiled as such.
struct Thread {
  virtual ~Thread() = default;
  virtual void run() const = 0;
};
template <class Call>
struct ThreadOf final : Thread {
  Call call;
  explicit ThreadOf(Call given) : call(std::move(given)) {}
  __attribute__((no_sanitize("thread"))) void run() const override { call(); }
};
/// Puts a kernel into a stream, to be run once for each thread of each block.
cudaError_t enqueue(const cudaLaunchConfig_t& config, const void* kernel,
                    std::shared_ptr<const Thread> thread);
cudaError_t allow_dynamic_bytes(const void* kernel, int bytes);
/// In which order threads begin and go on: from the first or from the last, or at random, warp by warp, with
/// this seed. What depends on the order, as a missing barrier does, then shows.
struct Order {
  bool backwards = false;
  std::uint64_t seed = 0;  ///< 0: not at random
};
void run_in(Order order);
/// Whether only blocks at the ends of a grid run, this many at each end of each direction; 0: all.
void run_ends(unsigned blocks);
/// How often memory was asked for, and how often the host waited for work that was not done: neither belongs
/// into a step.
int allocations_and_waits();
/// Collects what kernels do that a GPU would not bear: shared memory that is read before it is written,
/// or that two threads touch with no barrier between them; threads that wait for others that do not
/// come; addresses that are not aligned. Without it the program ends.
struct Complaints {
  std::vector<std::string> all;
  Complaints();
  ~Complaints();
  Complaints(const Complaints&) = delete;
};
/// Memory that a kernel may touch, and the part of it that kernels have touched: bytes [low, high).
struct Extent {
  const void* begin;
  std::size_t bytes, low = bytes, high = 0;
  /// How often kernels read and wrote each byte; empty: nobody counts.
  std::vector<std::uint8_t> reads = {}, writes = {};
};
/// Lets kernels touch these operands and the runtime's memory only, and says of each operand what was
/// touched.
struct Within {
  std::vector<Extent>& operands;
  std::size_t read_beside = 0, written_beside = 0;  ///< bytes of the runtime's memory
  explicit Within(std::vector<Extent>& operands);
  ~Within();
  Within(const Within&) = delete;
};
/// Whether it is the stack of the thread that runs, or the program's own.
bool is_of_running_thread(const void* address);
/// Whether the runtime has given these bytes out.
bool is_given_out(const void* address, std::size_t bytes);

/// How many kernels have been put into streams.
int kernels_started();
void wait_for_block();
void wait_for_warp();
/// What the lanes of a warp bring to an instruction that all take part in.
struct Lanes {
  alignas(16) unsigned char of[32][32];
  template <class T>
  __attribute__((no_sanitize("thread"))) T get(unsigned lane) const {
    T brought;
    std::memcpy(&brought, of[lane % 32], sizeof brought);
    return brought;
  }
};
const Lanes& exchange(const void* own, std::size_t bytes, const char* instruction);
template <class T>
const Lanes& exchange(const T& own, const char* instruction) {
  static_assert(sizeof own <= 32);
  return exchange(&own, sizeof own, instruction);
}
}  // namespace on_host

template <class... Wanted, class... Given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Wanted...),
                               Given&&... arguments) {
  auto call = [=]() __attribute__((no_sanitize("thread"))) { kernel(arguments...); };
  return on_host::enqueue(*config, reinterpret_cast<const void*>(kernel),
                          std::make_shared<on_host::ThreadOf<decltype(call)>>(call));
}
template <class... Wanted>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Wanted...), cudaFuncAttribute, int value) {
  return on_host::allow_dynamic_bytes(reinterpret_cast<const void*>(kernel), value);
}

inline void __syncthreads() { on_host::wait_for_block(); }
inline void __syncwarp(unsigned = ~0u) { on_host::wait_for_warp(); }
template <class T>
T __shfl_xor_sync(unsigned, T x, int distance) {
  return on_host::exchange(x, "__shfl_xor_sync")
      .template get<T>(threadIdx.x ^ static_cast<unsigned>(distance));
}
template <class T>
T __shfl_up_sync(unsigned, T x, unsigned distance) {
  const unsigned lane = threadIdx.x % 32;
  return on_host::exchange(x, "__shfl_up_sync").template get<T>(lane >= distance ? lane - distance : lane);
}
inline unsigned __match_any_sync(unsigned, int x) {
  const on_host::Lanes& all = on_host::exchange(x, "__match_any_sync");
  unsigned same = 0;
  for (unsigned lane = 0; lane < 32; ++lane) same |= (all.get<int>(lane) == x ? 1u : 0u) << lane;
  return same;
}
/// c[16][8] += a[16][16] b[16][8] of a warp, and two matrices of 8 x 8 numbers in columns: tensor_core.cpp.
void mma_m16n8k16(float* c, const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);
void ldmatrix_x2_trans(const std::uint16_t* row, std::uint32_t& b0, std::uint32_t& b1);
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(std::uint64_t{a} * b >> 32); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline long long __float2ll_rn(float x) { return llrintf(x); }
inline unsigned long long atomicAdd(unsigned long long* to, unsigned long long x) {
  return std::exchange(*to, *to + x);
}
