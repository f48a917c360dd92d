#include "cuda_runtime.h"

#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

/// Memory, streams and events. Work in a stream is left until somebody waits for it, so that what is used too
/// early is not there yet.
namespace {

cudaError_t last_error = cudaSuccess;
cudaError_t answer(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// Blocks that were given out: address and bytes.
std::map<std::uintptr_t, std::size_t>& blocks() {
  static std::map<std::uintptr_t, std::size_t> all;
  return all;
}
enum class Place { known, ordinary, beyond };
/// Whether bytes lie in a block that was given out, in none, or reach over its end.
Place place_of(const void* address, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto after = blocks().upper_bound(at);
  if (after == blocks().begin()) return Place::ordinary;
  const auto& [begin, size] = *--after;
  if (at >= begin + size) return Place::ordinary;
  return at + bytes <= begin + size ? Place::known : Place::beyond;
}

int halts = 0;

cudaError_t give(void** address, std::size_t bytes) {
  ++halts;
  *address = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*address, 0xff, bytes);  // not a number in any dtype
  blocks()[reinterpret_cast<std::uintptr_t>(*address)] = bytes;
  return cudaSuccess;
}
cudaError_t take(void* address) {
  if (blocks().erase(reinterpret_cast<std::uintptr_t>(address)) != 1) return answer(cudaErrorInvalidValue);
  std::free(address);
  return cudaSuccess;
}

}  // namespace

struct CUstream_st {
  struct Work {
    std::function<void()> run;
    cudaEvent_t wait_for = nullptr;
    std::uint64_t serial = 0;
  };
  std::deque<Work> work;
};
struct CUevent_st {
  cudaStream_t stream = nullptr;
  std::uint64_t recorded = 0, happened = 0;
  bool timed = false;
  std::chrono::steady_clock::time_point time;
};

namespace {

std::vector<cudaStream_t>& streams() {
  static std::vector<cudaStream_t> all;
  return all;
}

void happen(cudaEvent_t event, std::uint64_t serial);
void run_first(cudaStream_t stream) {
  const CUstream_st::Work first = std::move(stream->work.front());
  stream->work.pop_front();
  if (first.wait_for != nullptr) happen(first.wait_for, first.serial);
  else first.run();
}
/// Runs the stream that an event was recorded in, as far as that.
void happen(cudaEvent_t event, std::uint64_t serial) {
  while (event->happened < serial) run_first(event->stream);
}
void run_all(cudaStream_t stream) {
  while (!stream->work.empty()) run_first(stream);
}

}  // namespace

namespace on_host {
void put(cudaStream_t stream, std::function<void()> work) { stream->work.push_back({std::move(work)}); }
cudaError_t refuse(cudaError_t error) { return answer(error); }
int allocations_and_waits() { return halts; }
bool is_given_out(const void* address, std::size_t bytes) { return place_of(address, bytes) == Place::known; }
}  // namespace on_host

const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "an error of the runtime on the host";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "no GPU is here";
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return answer(device == 0 ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"fibers on the host", 1, std::size_t{1} << 30};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  constexpr int of_h200[] = {1024, 1024,     1024,     64,  2147483647, 65535,   65535,    48 << 10,
                             32,   64 << 10, 1980000,  132, 0,          3201000, 60 << 20, 2048,
                             9,    0,        64 << 10, 1,   227 << 10,  32,      1 << 10};
  return *value = of_h200[attribute], cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int) {
  return std::snprintf(text, static_cast<std::size_t>(bytes), "FFFF:FF:1F.7"), cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  ++halts;
  for (cudaStream_t stream : streams()) run_all(stream);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  if (bytes > std::size_t{1} << 30)
    return answer(cudaErrorMemoryAllocation);  // the size of the GPU that is played here
  return give(address, bytes);
}
cudaError_t cudaFree(void* address) {
  cudaDeviceSynchronize();
  return take(address);
}
cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) { return give(address, bytes); }
cudaError_t cudaFreeHost(void* address) { return cudaFree(address); }

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const Place source = place_of(from, bytes), target = place_of(to, bytes);
  if (source == Place::beyond || target == Place::beyond) return answer(cudaErrorInvalidValue);
  if (kind == cudaMemcpyDeviceToDevice && (source != Place::known || target != Place::known))
    return answer(cudaErrorInvalidValue);
  if (source == Place::ordinary) {  // is staged before the call returns
    auto staged = std::make_shared<std::vector<char>>(static_cast<const char*>(from),
                                                      static_cast<const char*>(from) + bytes);
    on_host::put(stream, [=] { std::memcpy(to, staged->data(), bytes); });
  } else {
    on_host::put(stream, [=] { std::memmove(to, from, bytes); });
  }
  if (target == Place::ordinary) {  // such a copy returns when it is over
    ++halts;
    run_all(stream);
  }
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (place_of(to, bytes) != Place::known) return answer(cudaErrorInvalidValue);
  on_host::put(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 0, *greatest = -5, cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  streams().push_back(*stream = new CUstream_st);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  run_all(stream);
  std::erase(streams(), stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  ++halts;
  run_all(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->recorded != 0) stream->work.push_back({{}, event, event->recorded});
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st;
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  happen(event, event->recorded);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  happen(event, event->recorded);  // one that is recorded again stands for the later place only
  event->stream = stream;
  const std::uint64_t serial = ++event->recorded;
  on_host::put(stream, [=] {
    event->happened = serial;
    event->time = std::chrono::steady_clock::now();
  });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->happened < event->recorded) ++halts;
  happen(event, event->recorded);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t then) {
  for (cudaEvent_t event : {first, then}) {
    if (!event->timed || event->recorded == 0) return answer(cudaErrorInvalidValue);
    if (event->happened < event->recorded) return answer(cudaErrorNotReady);
  }
  *milliseconds = std::chrono::duration<float, std::milli>(then->time - first->time).count();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return answer(event->happened < event->recorded ? cudaErrorNotReady : cudaSuccess);
}
