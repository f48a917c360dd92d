#pragma once
#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <utility>

#include "backend_over.h"
#include "config/config.h"
#include "plan/run_plan.h"

namespace mindpipe {

/// Computes as the device below does and is asked as a GPU is: few passes over memory, and products of many
/// rows. What a step's first product for a weight writes is no number before.
class AskedAsGpu final : public BackendOver {
 public:
  /// `workspace`: what the device below needs.
  AskedAsGpu(std::unique_ptr<Backend> device, const Workspace& workspace, bool adds = false)
      : BackendOver(std::move(device)), workspace_(workspace), adds_(adds) {}
  bool wants_many_rows() const override { return true; }
  void reserve(const Workspace&) override { device_->reserve(workspace_); }
  void linear_backward_weight(const LinearBackwardWeightOperands& operands) override {
    LinearBackwardWeightOperands asked = operands;
    ++products;
    if (operands.is_first) {
      ++first;
      std::fill_n(operands.dw.as<float>(), operands.dw.count(), std::numeric_limits<float>::quiet_NaN());
      asked.is_first = !adds_;
    }
    device_->linear_backward_weight(asked);
  }
  static inline std::int64_t products = 0, first = 0;

 private:
  Workspace workspace_;
  bool adds_;  ///< a mistake: what is there is added to
};

/// Plan of a run whose device is asked as a GPU is.
inline RunPlan plan_as_gpu(const Config& config) {
  Config gpu = config;
  gpu.device.kind = DeviceKind::cuda;
  return make_run_plan(resolve(gpu));
}

}  // namespace mindpipe
