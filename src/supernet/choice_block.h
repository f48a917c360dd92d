#pragma once
#include <memory>
#include <vector>

#include "layers/layer.h"

namespace mindpipe {

/// A block of a supernet: one of its candidates, that which the micro-batch's subnet takes (Tape::batch).
/// Each candidate has parameters and a norm of its own.
class ChoiceBlock final : public Layer {
 public:
  /// `place`: of the block in a subnet's choice.
  ChoiceBlock(int place, std::vector<std::unique_ptr<Layer>> candidates)
      : place_(place), candidates_(std::move(candidates)) {}

  Norm* opening_norm(const Tape& tape) override { return chosen(tape).opening_norm(tape); }
  /// The fields that any candidate reads.
  std::vector<std::string_view> reads() const override;
  /// Bytes of collected statistics: those of the candidate that has most.
  std::size_t statistics_bytes() const override;
  void recompute_candidates() override;
  Boundary forward(Boundary in, Tape& tape) override { return chosen(tape).forward(in, tape); }
  Boundary backward(Boundary dout, Tape& tape) override { return chosen(tape).backward(dout, tape); }

 private:
  Layer& chosen(const Tape& tape) const;

  int place_;
  std::vector<std::unique_ptr<Layer>> candidates_;
};

}  // namespace mindpipe
