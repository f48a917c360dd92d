#pragma once
#include <memory>
#include <optional>

#include "layers/norm.h"

namespace mindpipe {

/// From encoder to decoder: the activation, behind a norm if there is one, becomes the encoder's output, the
/// embedding the activation.
class Bridge final : public Layer {
 public:
  Bridge(const LayerContext& context, std::optional<Norm> norm, std::unique_ptr<Layer> embedding)
      : context_(context), norm_(std::move(norm)), embedding_(std::move(embedding)) {}
  std::vector<std::string_view> reads() const override { return embedding_->reads(); }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  LayerContext context_;
  std::optional<Norm> norm_;
  std::unique_ptr<Layer> embedding_;
};

}  // namespace mindpipe
