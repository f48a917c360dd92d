#include "shadow.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda_runtime.h"

/// What a kernel declares as shared is static memory that begins as zeros, and device code has none beside
/// it: all of it has a shadow. The linker says where it lies.
extern "C" char __bss_start[], _end[];

namespace on_host {
namespace {

/// Who touched a byte last. Epochs count barriers: of the block, and of the thread's warp.
struct Byte {
  std::uint32_t written_in = 0, written_in_warp = 0, read_in = 0, read_in_warp = 0;
  std::uint16_t writer = 0, reader = 0;
  bool other_lanes = false;  ///< other lanes of the reader's warp read the byte in the same epoch of the warp
  bool other_warps = false;  ///< other warps read the byte in the same epoch of the block
};
/// Four bytes. Most are touched together only: then the first stands for all.
struct Word {
  Byte of[4];
  bool apart = false;
};

std::size_t declared_bytes() { return static_cast<std::size_t>(_end - __bss_start); }

struct Shadow {
  std::vector<Word> declared{declared_bytes() / 4 + 1};
  std::vector<Word> dynamic{most_dynamic_bytes / 4};
  std::vector<std::pair<char*, std::size_t>> written;  ///< what this block wrote of what kernels declare
  std::size_t dynamic_bytes = 0;
  bool watches = false;
  std::uint32_t epoch = 0, first_of_block = 1;
  std::array<std::uint32_t, 32> epoch_of_warp{};
} shadow;

alignas(256) unsigned char dynamic_memory[most_dynamic_bytes];
std::vector<std::string>* collected = nullptr;
Within* within = nullptr;

std::string where() {
  char text[96];
  std::snprintf(text, sizeof text, "thread %u of block (%u, %u, %u) ", threadIdx.x, blockIdx.x, blockIdx.y,
                blockIdx.z);
  return text;
}

/// Whether a barrier lies between what `thread` did and what the running thread does.
inline bool is_ordered(unsigned thread, std::uint32_t epoch, std::uint32_t epoch_of_warp) {
  const unsigned own = threadIdx.x, warp = own / 32;
  return thread == own || epoch < shadow.epoch ||
         (thread / 32 == warp && epoch_of_warp < shadow.epoch_of_warp[warp]);
}

std::string beside(const char* does, unsigned thread) {
  return where() + does + " thread " + std::to_string(thread) + ", and no barrier is between them";
}

void read_byte(Byte& byte) {
  const unsigned own = threadIdx.x, warp = own / 32;
  const std::uint32_t epoch_of_warp = shadow.epoch_of_warp[warp];
  if (byte.written_in < shadow.first_of_block)
    complain(where() + "reads shared memory that no thread of its block has written");
  else if (!is_ordered(byte.writer, byte.written_in, byte.written_in_warp))
    complain(beside("reads shared memory that is written by", byte.writer));
  if (byte.read_in == shadow.epoch && byte.other_warps) return;  // says all that can be said
  if (byte.read_in != shadow.epoch) {
    byte.other_lanes = byte.other_warps = false;
  } else if (byte.reader / 32u != warp) {
    byte.other_warps = true;
  } else if (byte.read_in_warp == epoch_of_warp) {
    byte.other_lanes |= byte.reader != own;
  } else {
    byte.other_lanes = false;
  }
  byte.read_in = shadow.epoch;
  byte.read_in_warp = epoch_of_warp;
  byte.reader = static_cast<std::uint16_t>(own);
}

void write_byte(Byte& byte) {
  if (byte.written_in >= shadow.first_of_block &&
      !is_ordered(byte.writer, byte.written_in, byte.written_in_warp))
    complain(beside("writes shared memory that is written by", byte.writer));
  const bool was_read = byte.read_in == shadow.epoch;
  if (was_read && (byte.other_warps || !is_ordered(byte.reader, byte.read_in, byte.read_in_warp) ||
                   (byte.other_lanes && byte.read_in_warp == shadow.epoch_of_warp[threadIdx.x / 32])))
    complain(beside("writes shared memory that is read by others, the last of them", byte.reader));
  byte.written_in = shadow.epoch;
  byte.written_in_warp = shadow.epoch_of_warp[threadIdx.x / 32];
  byte.writer = static_cast<std::uint16_t>(threadIdx.x);
}

/// Calls byte(state) for what stands for these bytes of a memory.
template <class Touch>
void touch_words(Word* words, std::size_t offset, std::size_t bytes, const Touch& byte) {
  const std::size_t end = offset + bytes;
  while (offset < end) {
    Word& word = words[offset / 4];
    const bool all = offset % 4 == 0 && end - offset >= 4;
    if (!all && !word.apart) {
      for (int i = 1; i < 4; ++i) word.of[i] = word.of[0];
      word.apart = true;
    }
    const std::size_t first = offset % 4, count = all ? 4 : std::min(4 - first, end - offset);
    for (std::size_t i = 0; i < (word.apart ? count : 1); ++i) byte(word.of[first + i]);
    offset += count;
  }
}

/// How far behind the begin of some memory an address lies.
std::size_t offset_in(const void* memory, const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(memory);
}

/// Counts as far as it can say.
void count(std::vector<std::uint8_t>& times, std::size_t offset, std::size_t bytes) {
  if (times.empty()) return;
  for (std::size_t i = offset; i < offset + bytes; ++i)
    if (times[i] != 0xff) ++times[i];
}

template <bool writes>
bool is_inside(const void* address, std::size_t bytes) {
  for (Extent& extent : within->operands) {
    const std::size_t offset = offset_in(extent.begin, address);
    if (offset >= extent.bytes || offset + bytes > extent.bytes) continue;
    extent.low = std::min(extent.low, offset);
    extent.high = std::max(extent.high, offset + bytes);
    count(writes ? extent.writes : extent.reads, offset, bytes);
    return true;
  }
  if (is_of_running_thread(address)) return true;
  (writes ? within->written_beside : within->read_beside) += bytes;
  return is_given_out(address, bytes);
}

template <bool writes>
void touch(const void* address, std::size_t bytes, bool whole) {
  if (!shadow.watches) return;
  if (whole && reinterpret_cast<std::uintptr_t>(address) % bytes != 0)
    complain(where() + "moves " + std::to_string(bytes) + " bytes at an address that is no multiple of it");
  const std::size_t dynamic = offset_in(dynamic_memory, address), declared = offset_in(__bss_start, address);
  const auto byte = [](Byte& at) { writes ? write_byte(at) : read_byte(at); };
  if (dynamic < most_dynamic_bytes) {
    if (dynamic + bytes > shadow.dynamic_bytes) return complain(where() + "reaches beyond its shared memory");
    touch_words(shadow.dynamic.data(), dynamic, bytes, byte);
  } else if (declared < declared_bytes()) {
    if (writes && shadow.declared[declared / 4].of[0].written_in < shadow.first_of_block)
      shadow.written.push_back({__bss_start + declared, bytes});
    touch_words(shadow.declared.data(), declared, bytes, byte);
  } else if (within != nullptr && !is_inside<writes>(address, bytes)) {
    complain(where() + "reaches beyond every operand");
  }
}
}  // namespace

void begin_block(std::size_t dynamic_bytes) {
  shadow.first_of_block = ++shadow.epoch;
  shadow.dynamic_bytes = dynamic_bytes;
  for (const auto& [at, bytes] : shadow.written) std::memset(at, 0xff, bytes);  // NaN in every type
  shadow.written.clear();
  std::memset(dynamic_memory, 0xff, dynamic_bytes);
  shadow.watches = true;
}
void end_block() { shadow.watches = false; }
void pass_barrier() { ++shadow.epoch; }
void pass_barrier_of_warp(unsigned warp) { ++shadow.epoch_of_warp[warp]; }
void note_read(const void* address, std::size_t bytes) { touch<false>(address, bytes, true); }

void complain(const std::string& what) {
  if (collected == nullptr) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::abort();
  }
  constexpr std::size_t enough = 100;
  if (collected->size() < enough) collected->push_back(what);
}

Complaints::Complaints() { collected = &all; }
Complaints::~Complaints() { collected = nullptr; }

Within::Within(std::vector<Extent>& operands) : operands(operands) { within = this; }
Within::~Within() { within = nullptr; }

}  // namespace on_host

unsigned char* dynamic_shared_memory() { return on_host::dynamic_memory; }

#ifndef MINDPIPE_UNWATCHED  // a sanitizer has these functions itself
#define MINDPIPE_TOUCHES(bytes)                                                                       \
  extern "C" void __tsan_read##bytes(void* at) { on_host::touch<false>(at, bytes, true); }            \
  extern "C" void __tsan_write##bytes(void* at) { on_host::touch<true>(at, bytes, true); }            \
  extern "C" void __tsan_unaligned_read##bytes(void* at) { on_host::touch<false>(at, bytes, false); } \
  extern "C" void __tsan_unaligned_write##bytes(void* at) { on_host::touch<true>(at, bytes, false); }
MINDPIPE_TOUCHES(1)
MINDPIPE_TOUCHES(2)
MINDPIPE_TOUCHES(4)
MINDPIPE_TOUCHES(8)
MINDPIPE_TOUCHES(16)
#undef MINDPIPE_TOUCHES
extern "C" void __tsan_read_range(void* at, std::size_t bytes) { on_host::touch<false>(at, bytes, false); }
extern "C" void __tsan_write_range(void* at, std::size_t bytes) { on_host::touch<true>(at, bytes, false); }
extern "C" int __tsan_atomic32_fetch_add(volatile int* to, int x, int) {
  return __atomic_fetch_add(to, x, __ATOMIC_SEQ_CST);
}
extern "C" void __tsan_vptr_update(void**, void*) {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_init() {}
#endif
