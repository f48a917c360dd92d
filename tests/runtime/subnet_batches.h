#pragma once
#include "optim/rate.h"
#include "runtime/parity.h"

namespace mindpipe {

inline Layout of_one_rank(Layout layout) {
  layout.grid = {1, 1, 1, 1};
  layout.coord = {};
  return layout;
}

/// Brings subnets the samples of a test.
class SubnetBatches : public SubnetCalls {
 public:
  explicit SubnetBatches(Worker& worker)
      : worker_(worker),
        feed_(worker.config(), worker.layout()),
        whole_(worker.config(), of_one_rank(worker.layout())) {
    worker.subnets()->answer_to(*this);
  }
  void load(const Subnet& subnet, StepInput& input) override {
    const StepInput& drawn = feed_.at(static_cast<int>(subnet.id));
    for (const FieldTensors::Entry& entry : input.fields.entries())
      worker_.backend().upload(drawn.fields.at(entry.name).data, entry.tensor);
    input.valid = count(subnet.id);
    const Config& config = worker_.config();
    input.rate = rate_at(config.optimizer.rate, subnet.id, config.train.steps);
  }
  std::int64_t count(std::int64_t id) override { return whole_.at(static_cast<int>(id)).valid; }

 protected:
  Worker& worker_;
  BatchFeed feed_, whole_;
};

}  // namespace mindpipe
