#pragma once
#include <cstddef>
#include <vector>

#include "backend.h"
#include "cpu/isa.h"

namespace mindpipe {

/// Working memory of attention, one block for each thread; it grows to the largest question that was asked and stays.
class AttentionScratch {
 public:
  void prepare(int threads, std::size_t bytes);
  void* of_thread(int thread);  ///< begins at a multiple of 64 bytes

 private:
  std::vector<std::vector<std::byte>> blocks_;
};

/// What CpuBackend::attention and attention_backward do, on a given instruction set and number of threads.
/// Rows of padding and of sight are never read beyond: keys from the sample's length on may hold anything.
/// log_sum is f32, or f64 beside f64 operands; a row that sees no key has 0 there.
void run_attention(Isa isa, int threads, AttentionScratch& scratch, const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                       const Tensor& log_sum, const Tensor& out);
/// dk and dv of rows [0, keys) and dq of rows [0, queries) are written; rows beyond stay as they are.
void run_attention_backward(Isa isa, int threads, AttentionScratch& scratch, const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                        const Tensor& log_sum, const Tensor& out, const Tensor& dout, const Heads& dq, const Heads& dk, const Heads& dv);

}  // namespace mindpipe
