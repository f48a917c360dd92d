#include <algorithm>

#include "program/schedules/order.h"

namespace mindpipe {
namespace {

/// The passes of one stage, by the chunk on the way down and the one on the way up.
class Loops {
 public:
  Loops(int stage, const OrderRequest& request)
      : chunks_{stage, 2 * request.stages - 1 - stage}, micro_batches_(request.micro_batches) {}

  enum Turn : std::uint8_t { forward_down, forward_up, backward_up, backward_down };
  void add(int times, std::initializer_list<Turn> turns) {
    for (int k = 0; k < times; ++k)
      for (const Turn turn : turns) {
        const int micro_batch = next_[turn]++;
        if (micro_batch >= micro_batches_) continue;
        const bool up = turn == forward_up || turn == backward_up;
        passes_.push_back({turn <= forward_up ? ActionKind::forward : ActionKind::backward,
                           chunks_[up ? 1 : 0], micro_batch});
      }
  }
  std::vector<Pass> take() { return std::move(passes_); }

 private:
  std::array<int, 2> chunks_;
  int micro_batches_;
  std::array<int, 4> next_{};
  std::vector<Pass> passes_;
};

}  // namespace

/// DualPipe cut in half (DeepSeek's DualPipeV), a fixed rule of eight loops, of which the last is of weight
/// gradients alone. It wants two micro-batches for each stage: fewer take that order, and the missing work is
/// left out.
Order dual_pipe_v_order(const OrderRequest& request) {
  const int stages = request.stages, full = std::max(request.micro_batches, 2 * stages);
  Order order(stages);
  for (int stage = 0; stage < stages; ++stage) {
    const int below = stages - 1 - stage;
    Loops loops(stage, request);
    loops.add(2 * below, {Loops::forward_down});
    loops.add(stage + 1, {Loops::forward_down, Loops::forward_up});
    loops.add(below, {Loops::backward_up, Loops::forward_up});
    loops.add(full - 2 * stages + stage + 1,
              {Loops::forward_down, Loops::backward_up, Loops::forward_up, Loops::backward_down});
    loops.add(below, {Loops::backward_up, Loops::forward_up, Loops::backward_down});
    loops.add(stage + 1, {Loops::backward_up, Loops::backward_down});
    loops.add(below, {Loops::backward_down});
    order[stage] = loops.take();
  }
  return order;
}

}  // namespace mindpipe
