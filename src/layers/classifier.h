#pragma once
#include <optional>

#include "layers/norm.h"
#include "layers/softmax.h"

namespace mindpipe {

struct ClassifierSpec {
  std::int64_t vocabulary = 0, width = 0;
  double deviation = 0.02;
  int uses = 1, use = 0;  ///< uses of the table, when an embedding shares it
  std::string table = "embedding";
  NormKind norm = NormKind::layer;
  double epsilon = 1e-5;
  bool norm_offset = true;
  double label_smoothing = 0;  ///< probability spread over the other words
  bool bias = false;           ///< one number for each word
  bool constant_bias = false;  ///< which no optimizer moves
  bool normed = true;          ///< begins with a norm; without, what comes is classified as it is

  SoftmaxSpec softmax() const {
    return {vocabulary, width, deviation, uses, use, table, bias, label_smoothing, constant_bias};
  }
};

/// The end of a language model: final norm, product with the table, softmax and cross-entropy, in chunks of
/// tokens so that the logits of a micro-batch never exist at once. Forward only norms; backward computes
/// losses and gradients together, chunk by chunk, so that no product is done twice. When nothing is saved,
/// forward computes the losses (evaluate) or the last position's logits (generate).
class Classifier final : public Layer {
 public:
  Classifier(const LayerContext& context, Unit& table, Unit& unit, const ClassifierSpec& spec);
  Norm* opening_norm(const Tape&) override { return norm_ ? &*norm_ : nullptr; }
  std::vector<std::string_view> reads() const override { return {field::targets}; }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  void last_logits(const Tensor& normed, Tape& tape);

  LayerContext context_;
  std::int64_t width_;
  std::optional<Norm> norm_;
  Softmax softmax_;
};

}  // namespace mindpipe
