#include "cpu/attention.h"

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "attention_operands.h"
#include "cpu/cpu_backend.h"
#include "operands.h"
#include "cpu/simd/attention_kernels.h"

namespace mindpipe {
namespace {

/// Enough to keep all threads busy until the end.
constexpr std::int64_t tasks_per_thread = 4;

/// work(task, scratch) for each task; threads take the next one as they become free, since tasks differ in size and results
/// do not depend on who does which.
template <class Work>
void for_each_task(int threads, std::int64_t tasks, std::size_t scratch_bytes, AttentionScratch& scratch, const Work& work) {
  const int team = static_cast<int>(tasks < threads ? tasks : threads);
  scratch.prepare(team, scratch_bytes);
  if (team <= 1) {
    for (std::int64_t task = 0; task < tasks; ++task) work(task, scratch.of_thread(0));
    return;
  }
#pragma omp parallel for num_threads(team) schedule(dynamic, 1)
  for (std::int64_t task = 0; task < tasks; ++task) work(task, scratch.of_thread(omp_get_thread_num()));
}

}  // namespace

void AttentionScratch::prepare(int threads, std::size_t bytes) {
  if (blocks_.size() < static_cast<std::size_t>(threads)) blocks_.resize(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    auto& block = blocks_[static_cast<std::size_t>(i)];
    if (block.size() < bytes + 64) block.resize(bytes + 64);
  }
}

void* AttentionScratch::of_thread(int thread) {
  const auto address = reinterpret_cast<std::uintptr_t>(blocks_[static_cast<std::size_t>(thread)].data());
  return reinterpret_cast<void*>((address + 63) / 64 * 64);
}

void run_attention(Isa isa, int threads, AttentionScratch& scratch, const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                       const Tensor& log_sum, const Tensor& out) {
  const AttentionCall call = attention_call(question, q, k, v, log_sum, out);
  const AttentionKernels& kernels = MINDPIPE_PICK_KERNELS(isa, attention_kernels);
  const int type = slot(q.data.dtype);
  const std::int64_t tile = kernels.tile_queries[type], tiles = (call.queries + tile - 1) / tile, heads = call.samples * call.query_heads;
  const std::int64_t wanted = std::clamp<std::int64_t>((tasks_per_thread * threads + heads - 1) / heads, 1, tiles);
  const std::int64_t run = (tiles + wanted - 1) / wanted, runs = (tiles + run - 1) / run;
  for_each_task(threads, heads * runs, kernels.forward_scratch[type](call), scratch, [&](std::int64_t task, void* memory) {
    const std::int64_t head = task / runs, first = (runs - 1 - task % runs) * run * tile;  // under a causal mask the last run is the longest
    kernels.forward[type](call, head / call.query_heads, head % call.query_heads, first, std::min(first + run * tile, call.queries), memory);
  });
}

void run_attention_backward(Isa isa, int threads, AttentionScratch& scratch, const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                        const Tensor& log_sum, const Tensor& out, const Tensor& dout, const Heads& dq, const Heads& dk, const Heads& dv) {
  const AttentionCall call = attention_backward_call(question, q, k, v, log_sum, out, dout, dq, dk, dv);
  const AttentionKernels& kernels = MINDPIPE_PICK_KERNELS(isa, attention_kernels);
  const int type = slot(q.data.dtype);
  for_each_task(threads, call.samples * call.key_heads, kernels.backward_scratch[type](call), scratch, [&](std::int64_t task, void* memory) {
    kernels.backward[type](call, task / call.key_heads, task % call.key_heads, memory);
  });
}

void CpuBackend::attention(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v, const Tensor& log_sum, const Tensor& out) {
  run_attention(isa_, threads_, attention_scratch_, question, q, k, v, log_sum, out);
  progress();
}

void CpuBackend::attention_backward(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v, const Tensor& log_sum, const Tensor& out,
                                    const Tensor& dout, const Heads& dq, const Heads& dk, const Heads& dv) {
  run_attention_backward(isa_, threads_, attention_scratch_, question, q, k, v, log_sum, out, dout, dq, dk, dv);
  progress();
}

}  // namespace mindpipe
