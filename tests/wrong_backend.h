#pragma once
#include <functional>
#include <memory>
#include <string>

#include "backend_over.h"

namespace mindpipe {

/// Operations that a device gets wrong on purpose, so that a test can show that it would be noticed.
struct Mistakes {
  /// Changes what is asked for; what is refused does not happen.
  std::function<bool(AttentionParameters&)> attention = [](AttentionParameters&) { return true; };
  std::function<bool(AccumulateOperands&)> accumulate = [](AccumulateOperands&) { return true; };
  std::function<bool(ClearPaddingOperands&)> clear_padding = [](ClearPaddingOperands&) { return true; };
  std::function<bool(PutRowsOperands&)> put_rows = [](PutRowsOperands&) { return true; };
  /// Told what a convolution over rows reads on the way forward: how far, and the lengths of samples.
  std::function<void(Reach&, Tensor&)> convolution = [](Reach&, Tensor&) {};
  std::function<bool(BatchStatisticsOperands&)> batch_statistics = [](BatchStatisticsOperands&) {
    return true;
  };
};

/// A device below, with mistakes.
class WrongBackend final : public BackendOver {
 public:
  WrongBackend(std::unique_ptr<Backend> device, Mistakes mistakes)
      : BackendOver(std::move(device)), mistakes_(std::move(mistakes)) {}

  std::string description() const override { return "wrong " + device_->description(); }
#define MINDPIPE_MAYBE_WRONG(name, Operands)     \
  void name(const Operands& operands) override { \
    Operands changed = operands;                 \
    if (change(changed)) device_->name(changed); \
  }
  MINDPIPE_OPERATIONS(MINDPIPE_MAYBE_WRONG)
#undef MINDPIPE_MAYBE_WRONG

 private:
  template <class Operands>
  bool change(Operands&) const {
    return true;
  }
  bool change(AttentionOperands& operands) const { return mistakes_.attention(operands.parameters); }
  bool change(AttentionBackwardOperands& operands) const { return mistakes_.attention(operands.parameters); }
  bool change(AccumulateOperands& operands) const { return mistakes_.accumulate(operands); }
  bool change(PutRowsOperands& operands) const { return mistakes_.put_rows(operands); }
  bool change(DepthwiseOperands& operands) const {
    mistakes_.convolution(operands.reach, operands.lengths);
    return true;
  }
  bool change(RowNeighboursOperands& operands) const {
    mistakes_.convolution(operands.reach, operands.lengths);
    return true;
  }
  bool change(ClearPaddingOperands& operands) const { return mistakes_.clear_padding(operands); }
  bool change(BatchStatisticsOperands& operands) const { return mistakes_.batch_statistics(operands); }

  Mistakes mistakes_;
};

}  // namespace mindpipe
