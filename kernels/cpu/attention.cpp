#include "cpu/attention.h"

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "cpu/cpu_backend.h"
#include "operations/attention.h"

namespace mindpipe {
namespace {

/// Enough to keep all threads busy until the end.
constexpr std::int64_t tasks_per_thread = 4;

int team_of(int threads, std::int64_t tasks) {
  return static_cast<int>(std::min<std::int64_t>(threads, tasks));
}

/// How the queries of every head are cut into runs of whole tiles, a task each.
struct Runs {
  std::int64_t queries, of_a_head, tasks;
};
Runs runs_of(const AttentionCall& call, std::int64_t tile, int threads) {
  const std::int64_t tiles = (call.queries + tile - 1) / tile, heads = call.samples * call.query_heads;
  const std::int64_t wanted =
      std::clamp<std::int64_t>((tasks_per_thread * threads + heads - 1) / heads, 1, tiles);
  const std::int64_t run = (tiles + wanted - 1) / wanted, runs = (tiles + run - 1) / run;
  return {run * tile, runs, heads * runs};
}

/// work(task, scratch) for each task; threads take the next one as they become free, since tasks differ in
/// size and results do not depend on who does which.
template <class Work>
void for_each_task(int threads, std::int64_t tasks, std::size_t scratch_bytes, AttentionScratch& scratch,
                   const Work& work) {
  const int team = team_of(threads, tasks);
  scratch.prepare(team, scratch_bytes);
  if (team <= 1) {
    for (std::int64_t task = 0; task < tasks; ++task) work(task, scratch.of_thread(0));
    return;
  }
#pragma omp parallel for num_threads(team) schedule(dynamic, 1)
  for (std::int64_t task = 0; task < tasks; ++task) work(task, scratch.of_thread(omp_get_thread_num()));
}

}  // namespace

void AttentionScratch::prepare(int threads, std::size_t task_bytes) {
  block_ = aligned(task_bytes);
  base_ = static_cast<std::byte*>(area_.take(memory_, bytes_for(threads, task_bytes)));
}

const AttentionKernels& choose_attention_kernels(Isa isa, DType type, bool few) {
  if (few) return MINDPIPE_PICK_KERNELS(isa, few_attention_kernels).of[dtype_index(type)];
  if (type == DType::bf16 && isa == Isa::avx512_amx) return avx512::amx_attention_kernels;
  if (type == DType::bf16 && isa == Isa::avx512_bf16) return avx512::pair_attention_kernels;
  return MINDPIPE_PICK_KERNELS(isa, attention_kernels).of[dtype_index(type)];
}

std::size_t attention_scratch(const AttentionKernels& kernels, int threads, const AttentionCall& call) {
  return AttentionScratch::bytes_for(team_of(threads, runs_of(call, kernels.tile_queries, threads).tasks),
                                     kernels.forward_scratch(call));
}
std::size_t attention_backward_scratch(const AttentionKernels& kernels, int threads,
                                       const AttentionCall& call) {
  return AttentionScratch::bytes_for(team_of(threads, call.samples * call.key_heads),
                                     kernels.backward_scratch(call));
}

void run_attention(const AttentionKernels& kernels, int threads, AttentionScratch& scratch,
                   const AttentionCall& call) {
  const Runs runs = runs_of(call, kernels.tile_queries, threads);
  for_each_task(threads, runs.tasks, kernels.forward_scratch(call), scratch,
                [&](std::int64_t task, void* memory) {
                  const std::int64_t head = task / runs.of_a_head;
                  const std::int64_t first = (runs.of_a_head - 1 - task % runs.of_a_head) *
                                             runs.queries;  // under a causal mask the last run is the longest
                  kernels.forward(call, head / call.query_heads, head % call.query_heads, first,
                                  std::min(first + runs.queries, call.queries), memory);
                });
}

void run_attention_backward(const AttentionKernels& kernels, int threads, AttentionScratch& scratch,
                            const AttentionCall& call) {
  for_each_task(threads, call.samples * call.key_heads, kernels.backward_scratch(call), scratch,
                [&](std::int64_t task, void* memory) {
                  kernels.backward(call, task / call.key_heads, task % call.key_heads, memory);
                });
}

void CpuBackend::run(const AttentionOperands& o) {
  const AttentionCall call = o.checked();
  run_attention(choose_attention_kernels(isa_, o.q.data.dtype, is_few(call)), threads_, attention_scratch_,
                call);
}

void CpuBackend::run(const AttentionBackwardOperands& o) {
  run_attention_backward(choose_attention_kernels(isa_, o.q.data.dtype), threads_, attention_scratch_,
                         o.checked());
}

}  // namespace mindpipe
