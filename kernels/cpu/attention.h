#pragma once
#include <cstddef>

#include "core/memory.h"
#include "cpu/simd/attention_kernels.h"
#include "operations/attention.h"

namespace mindpipe {

/// Working memory of attention, one block for each thread; it grows to the largest call and stays.
class AttentionScratch {
 public:
  explicit AttentionScratch(Memory& memory) : memory_(memory) {}
  static std::size_t bytes_for(int threads, std::size_t task_bytes) {
    return static_cast<std::size_t>(threads) * aligned(task_bytes);
  }
  void reserve(std::size_t bytes) { area_.reserve(memory_, bytes); }
  void prepare(int threads, std::size_t task_bytes);
  void* of_thread(int thread) const { return base_ + static_cast<std::size_t>(thread) * block_; }

 private:
  Memory& memory_;
  WorkArea area_;
  std::byte* base_ = nullptr;
  std::size_t block_ = 0;
};

/// The kernels that serve operands of this type; of a forward, whether it is one of few queries.
const AttentionKernels& choose_attention_kernels(Isa isa, DType type, bool few = false);

/// What the threads that run a forward or a backward work in, in bytes; nothing is read but shapes.
std::size_t attention_scratch(const AttentionKernels& kernels, int threads, const AttentionCall& call);
std::size_t attention_backward_scratch(const AttentionKernels& kernels, int threads,
                                       const AttentionCall& call);

/// What CpuBackend::attention does, by given kernels and on a number of threads. Rows of padding and of
/// sight are never read beyond: keys from the sample's length on may hold anything. log_sum is f32, or f64
/// beside f64 operands; a row that sees no key has 0 there.
void run_attention(const AttentionKernels& kernels, int threads, AttentionScratch& scratch,
                   const AttentionCall& call);
/// What CpuBackend::attention_backward does: dk and dv of rows [0, keys) and dq of rows [0, queries) are
/// written; rows beyond stay as they are.
void run_attention_backward(const AttentionKernels& kernels, int threads, AttentionScratch& scratch,
                            const AttentionCall& call);

}  // namespace mindpipe
