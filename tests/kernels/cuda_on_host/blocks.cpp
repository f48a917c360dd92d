#include "blocks.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "shadow.h"

/// Kernels: blocks one after the other, the threads of a block as fibers that give way where they wait for
/// each other.
dim3 gridDim, blockDim, blockIdx, threadIdx;

extern "C" char __executable_start[], _end[];  // the program's own memory

/// Leaves one stack, whose lowest address is kept, and goes on with another, as a call that returns later.
/// swapcontext does the same with two calls of the system.
extern "C" void on_host_go_on(void** left, void* next);
asm(R"(
.text
.type on_host_go_on, @function
on_host_go_on:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size on_host_go_on, .-on_host_go_on
)");

namespace on_host {
namespace {

Order order;
unsigned ends = 0;
std::mt19937_64 chance;

/// A place where a number of threads meet, again and again.
struct Meeting {
  unsigned here = 0;
  std::uint64_t held = 0;
  const char* instruction = nullptr;  ///< what those who are here came for
};
struct Warp {
  Meeting meeting;
  Lanes values[2];  // in turn: whoever is ahead does not overwrite what others still read
};
struct Fiber {
  std::unique_ptr<char[]> stack;
  void* at = nullptr;  ///< the lowest address in use of a stack that waits
  unsigned thread = 0;
  const Meeting* waits_at = nullptr;  ///< null: has no thread
  std::uint64_t meeting_number = 0;
};
constexpr std::size_t stack_bytes = 64 << 10;

struct Block {
  std::vector<std::unique_ptr<Fiber>> fibers;  ///< kept from kernel to kernel
  std::vector<Warp> warps;
  Meeting all;
  void* scheduler = nullptr;  ///< the stack that starts fibers
  Fiber* running = nullptr;
  const Thread* body = nullptr;
  unsigned threads = 0, begun = 0;
  std::vector<unsigned> begins;  ///< threads in the order in which they begin
} block;

/// Takes threads until none is left to begin; a fiber that waits keeps its thread, and another begins the
/// next.
void run_threads() {
  while (true) {
    while (block.begun < block.threads) {
      Fiber* self = block.running;
      self->thread = block.begins[block.begun++];
      threadIdx.x = self->thread;
      block.body->run();
    }
    block.running->waits_at = nullptr;
    on_host_go_on(&block.running->at, block.scheduler);
  }
}

void resume(Fiber& fiber) {
  block.running = &fiber;
  threadIdx.x = fiber.thread;
  on_host_go_on(&block.scheduler, fiber.at);
}

Fiber& idle_fiber() {
  for (auto& fiber : block.fibers)
    if (fiber->waits_at == nullptr) return *fiber;
  auto made = std::make_unique<Fiber>();
  made->stack = std::make_unique<char[]>(stack_bytes);
  auto* top = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(made->stack.get() + stack_bytes) &
                                       ~std::uintptr_t{15});
  top[-2] = reinterpret_cast<void*>(run_threads);  // returned to, behind six registers that mean nothing yet
  made->at = top - 8;
  block.fibers.push_back(std::move(made));
  return *block.fibers.back();
}

/// Waits until `count` threads have come here as often as this one, all for the same instruction; the last of
/// them calls passed().
template <class Passed>
void meet(Meeting& meeting, unsigned count, const char* instruction, const Passed& passed) {
  Fiber* self = block.running;
  const std::uint64_t number = meeting.held;
  if (meeting.here == 0) meeting.instruction = instruction;
  if (std::strcmp(meeting.instruction, instruction) != 0)
    complain(std::string("lanes of a warp meet for ") + meeting.instruction + " and for " + instruction);
  if (++meeting.here == count) {
    meeting.here = 0;
    ++meeting.held;
    passed();
    return;
  }
  self->waits_at = &meeting;
  self->meeting_number = number;
  on_host_go_on(&self->at, block.scheduler);
}

/// 0 to count - 1 in the order that was asked for: at random, warps in any order, and the lanes of each.
std::vector<unsigned> in_order(unsigned count) {
  std::vector<unsigned> all(count), warps((count + 31) / 32), lanes(32);
  std::iota(all.begin(), all.end(), 0u);
  if (order.backwards) std::reverse(all.begin(), all.end());
  if (order.seed == 0) return all;
  std::iota(warps.begin(), warps.end(), 0u);
  std::shuffle(warps.begin(), warps.end(), chance);
  all.clear();
  for (unsigned warp : warps) {
    std::iota(lanes.begin(), lanes.end(), 0u);
    std::shuffle(lanes.begin(), lanes.end(), chance);
    for (unsigned lane : lanes)
      if (warp * 32 + lane < count) all.push_back(warp * 32 + lane);
  }
  return all;
}

/// Whether a thread went on or began.
bool run_on() {
  bool moved = false;
  while (block.begun < block.threads) {
    resume(idle_fiber());
    moved = true;
  }
  for (unsigned i : in_order(static_cast<unsigned>(block.fibers.size()))) {
    Fiber& fiber = *block.fibers[i];
    if (fiber.waits_at != nullptr && fiber.waits_at->held > fiber.meeting_number) {
      resume(fiber);
      moved = true;
    }
  }
  return moved;
}

void run_block(const Thread& body, std::size_t dynamic_bytes) {
  block.body = &body;
  block.threads = blockDim.x;
  block.begun = 0;
  block.begins = in_order(block.threads);
  block.warps.assign(blockDim.x / 32, Warp{});
  block.all = Meeting{};
  begin_block(dynamic_bytes);
  while (run_on()) {
  }
  end_block();
  const auto waits = [](const auto& fiber) { return fiber->waits_at != nullptr; };
  if (std::any_of(block.fibers.begin(), block.fibers.end(), waits)) {
    complain("a thread waits for others of its block that do not come");
    std::erase_if(block.fibers, waits);
  }
}

/// The block indices of one direction that run.
std::vector<unsigned> indices(unsigned count) {
  std::vector<unsigned> all;
  for (unsigned i = 0; i < count; ++i)
    if (ends == 0 || i < ends || i >= count - ends) all.push_back(i);
    else i = count - ends - 1;
  if (order.backwards) std::reverse(all.begin(), all.end());
  return all;
}

}  // namespace

void run_in(Order wanted) {
  order = wanted;
  chance.seed(order.seed);
}
void run_ends(unsigned blocks) { ends = blocks; }

bool is_of_running_thread(const void* address) {
  const auto* at = static_cast<const char*>(address);
  const char* stack = block.running->stack.get();
  return (at >= stack && at < stack + stack_bytes) || (at >= __executable_start && at < _end);
}

void wait_for_block() { meet(block.all, block.threads, "__syncthreads", pass_barrier); }
void wait_for_warp() {
  const unsigned warp = threadIdx.x / 32;
  meet(block.warps[warp].meeting, 32, "__syncwarp", [warp] { pass_barrier_of_warp(warp); });
}
const Lanes& exchange(const void* own, std::size_t bytes, const char* instruction) {
  Warp& warp = block.warps[threadIdx.x / 32];
  Lanes& values = warp.values[warp.meeting.held % 2];
  std::memcpy(values.of[threadIdx.x % 32], own, bytes);
  meet(warp.meeting, 32, instruction, [] {});
  return values;
}

void run_grid(const cudaLaunchConfig_t& config, const Thread& body) {
  gridDim = config.gridDim;
  blockDim = config.blockDim;
  for (unsigned z : indices(gridDim.z))
    for (unsigned y : indices(gridDim.y))
      for (unsigned x : indices(gridDim.x)) {
        blockIdx = dim3(x, y, z);
        run_block(body, config.dynamicSmemBytes);
      }
}

}  // namespace on_host
