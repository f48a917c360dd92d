#pragma once
#include "layers/branch.h"

namespace mindpipe {

/// Two branches that read one norm: h = norm(x); y = x + dropout(first(h)) + dropout(second(h)), rounded at
/// each sum. Neither has a bias behind it.
class ParallelBlock final : public NormedBlock {
 public:
  ParallelBlock(const LayerContext& context, Norm norm, std::unique_ptr<Branch> first,
                std::unique_ptr<Branch> second, double dropout, const std::string& path)
      : NormedBlock(context, std::move(norm), std::move(first), {}, dropout, path),
        second_(std::move(second)),
        second_dropout_(dropout),
        second_purpose_(purpose_of(path + ".second.dropout")) {}
  Norm* opening_norm(const Tape&) override { return &norm_; }
  std::vector<std::string_view> reads() const override;
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  std::unique_ptr<Branch> second_;
  double second_dropout_;
  std::uint64_t second_purpose_;
};

}  // namespace mindpipe
