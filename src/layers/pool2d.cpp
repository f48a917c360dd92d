#include "layers/pool2d.h"

#include "layers/conv2d.h"

namespace mindpipe {

Pool2D::Pool2D(const LayerContext& context, PoolKind kind, const PixelWindow& window)
    : backend_(context.backend), kind_(kind), window_(window) {
  require_window(window, "pool");
}

void Pool2D::forward(const Tensor& x, const Tensor& y, Tape& tape) {
  const bool chooses = kind_ == PoolKind::maximum;
  const Tensor chosen = chooses ? tape.keep(y.shape, DType::u8) : Tensor{};
  backend_.pool({kind_, x, window_, y, chosen});
  if (chooses) tape.save(chosen);
}

void Pool2D::backward(const Tensor& dy, const Tensor& dx, Tape& tape) {
  const Tensor chosen = kind_ == PoolKind::maximum ? tape.restore() : Tensor{};
  backend_.pool_backward({kind_, dy, chosen, window_, dx});
}

}  // namespace mindpipe
