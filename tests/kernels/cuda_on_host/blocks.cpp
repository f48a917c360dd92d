#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "cuda_runtime.h"

/// Kernels: blocks one after the other, the threads of a block as fibers that give way where they wait for
/// each other.
dim3 gridDim, blockDim, blockIdx, threadIdx;

namespace on_host {

void put(cudaStream_t stream, std::function<void()> work);
cudaError_t refuse();

namespace {

bool backwards = false;

/// A place where a number of threads meet, again and again.
struct Meeting {
  unsigned here = 0;
  std::uint64_t held = 0;
};
struct Warp {
  Meeting meeting;
  std::uint64_t values[2][32];  // in turn: whoever is ahead does not overwrite what others still read
};
struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  unsigned thread = 0;
  const Meeting* waits_at = nullptr;  ///< null: has no thread
  std::uint64_t meeting_number = 0;
};
constexpr std::size_t stack_bytes = 64 << 10;

struct Block {
  std::vector<std::unique_ptr<Fiber>> fibers;  ///< kept from kernel to kernel
  std::vector<Warp> warps;
  Meeting all;
  ucontext_t scheduler;
  Fiber* running = nullptr;
  const std::function<void()>* body = nullptr;
  unsigned threads = 0, begun = 0;
} block;

/// Takes threads until none is left to begin; a fiber that waits keeps its thread, and another begins the
/// next.
void run_threads() {
  while (true) {
    while (block.begun < block.threads) {
      Fiber* self = block.running;
      self->thread = backwards ? block.threads - 1 - block.begun : block.begun;
      ++block.begun;
      threadIdx.x = self->thread;
      (*block.body)();
    }
    block.running->waits_at = nullptr;
    swapcontext(&block.running->context, &block.scheduler);
  }
}

void resume(Fiber& fiber) {
  block.running = &fiber;
  threadIdx.x = fiber.thread;
  swapcontext(&block.scheduler, &fiber.context);
}

Fiber& idle_fiber() {
  for (auto& fiber : block.fibers)
    if (fiber->waits_at == nullptr) return *fiber;
  auto made = std::make_unique<Fiber>();
  made->stack = std::make_unique<char[]>(stack_bytes);
  getcontext(&made->context);
  made->context.uc_stack.ss_sp = made->stack.get();
  made->context.uc_stack.ss_size = stack_bytes;
  makecontext(&made->context, run_threads, 0);
  block.fibers.push_back(std::move(made));
  return *block.fibers.back();
}

/// Waits until `count` threads have come here as often as this one.
void meet(Meeting& meeting, unsigned count) {
  Fiber* self = block.running;
  const std::uint64_t number = meeting.held;
  if (++meeting.here == count) {
    meeting.here = 0;
    ++meeting.held;
    return;
  }
  self->waits_at = &meeting;
  self->meeting_number = number;
  swapcontext(&self->context, &block.scheduler);
}

void run_block(const std::function<void()>& body) {
  block.body = &body;
  block.threads = blockDim.x;
  block.begun = 0;
  block.warps.assign(blockDim.x / 32, Warp{});
  block.all = Meeting{};
  for (bool moved = true; moved;) {
    moved = false;
    while (block.begun < block.threads) {
      resume(idle_fiber());
      moved = true;
    }
    for (std::size_t i = 0; i < block.fibers.size(); ++i) {
      Fiber& fiber = *block.fibers[backwards ? block.fibers.size() - 1 - i : i];
      if (fiber.waits_at != nullptr && fiber.waits_at->held > fiber.meeting_number) {
        resume(fiber);
        moved = true;
      }
    }
  }
  for (const auto& fiber : block.fibers)
    if (fiber->waits_at != nullptr) {
      std::fputs("a thread waits for others of its block that do not come\n", stderr);
      std::abort();
    }
}

}  // namespace

void run_backwards(bool wanted) { backwards = wanted; }
void wait_for_block() { meet(block.all, block.threads); }
const std::uint64_t* exchange(std::uint64_t own) {
  Warp& warp = block.warps[threadIdx.x / 32];
  std::uint64_t* values = warp.values[warp.meeting.held % 2];
  values[threadIdx.x % 32] = own;
  meet(warp.meeting, 32);
  return values;
}

cudaError_t enqueue(const cudaLaunchConfig_t& config, std::function<void()> body) {
  const dim3 blocks = config.gridDim, threads = config.blockDim;
  const bool fits = blocks.x > 0 && blocks.x <= 0x7fffffffu && blocks.y > 0 && blocks.y <= 65535 &&
                    blocks.z > 0 && blocks.z <= 65535 && threads.x > 0 && threads.x <= 1024 &&
                    threads.x % 32 == 0 && threads.y == 1 && threads.z == 1;
  if (!fits) return refuse();
  put(config.stream, [=] {
    gridDim = blocks;
    blockDim = threads;
    const std::uint64_t count = std::uint64_t{blocks.x} * blocks.y * blocks.z;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t b = backwards ? count - 1 - i : i;
      blockIdx = dim3(static_cast<unsigned>(b % blocks.x), static_cast<unsigned>(b / blocks.x % blocks.y),
                      static_cast<unsigned>(b / blocks.x / blocks.y));
      run_block(body);
    }
  });
  return cudaSuccess;
}

}  // namespace on_host
