#pragma once
#include <optional>

#include "layers/linear.h"
#include "layers/norm.h"
#include "layers/softmax.h"

namespace mindpipe {

/// What happens to picked rows before they are classified: a product with an activation, a norm, either or
/// none.
struct TransformSpec {
  bool picks = false;  ///< the batch names the rows (`picked`, of masked words); else it is the first one
  Activation activation = Activation::none;  ///< none: no product
  std::optional<NormSpec> norm = {};
};

/// A classifier of some rows of each sample, named by the batch, or of the first one (the token of a class
/// alone). They are picked before anything is computed; all tensor ranks transform them alike. Targets and
/// losses are [samples, picked].
class PickedClassifier final : public Layer {
 public:
  PickedClassifier(const LayerContext& context, Unit& table, Unit& unit, const SoftmaxSpec& spec,
                   const TransformSpec& transform);
  std::vector<std::string_view> reads() const override {
    return picks_ ? std::vector<std::string_view>{field::targets, field::picked}
                  : std::vector<std::string_view>{field::targets};
  }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  /// The picked rows of each sample, i32 [samples, picked].
  Tensor picked_rows(Tape& tape) const;
  Tensor transformed(const Tensor& picked, Tape& tape);
  /// From the gradient of what is classified to that of the picked rows.
  Tensor transform_gradient(const Tensor& dnormed, Tape& tape);

  LayerContext context_;
  std::int64_t width_;
  bool picks_;
  Activation activation_;
  std::optional<Linear> transform_;
  std::optional<Norm> norm_;
  Softmax softmax_;
};

}  // namespace mindpipe
