#include "layers/gated_unit.h"

namespace mindpipe {

GatedUnit::GatedUnit(const LayerContext& context, Unit& unit, const std::string& name, std::int64_t width)
    : context_(context),
      both_(context, unit,
            {{{name + ".value", width}, {name + ".gate", width}},
             width,
             Split::none,
             true,
             even_deviation(width, width)}) {}

Tensor GatedUnit::forward(const Tensor& x, const Boundary&, Tape& tape) {
  const Tensor both = both_.forward(enter(context_, x, tape), tape).at(0);
  const Tensor y = tape.scratch({both.shape[0], both.shape[1], both.shape[2] / 2}, both.dtype);
  context_.backend.gate({both, y});
  tape.save(both);
  return own_rows(context_, y, tape);
}

Tensor GatedUnit::backward(const Tensor& dy, const Boundary&, Tape& tape) {
  const Tensor whole = enter_gradient(context_, dy, tape), both = tape.restore(),
               dboth = tape.scratch(both.shape, both.dtype);
  context_.backend.gate_backward({whole, both, dboth});
  return own_rows(context_, both_.backward(dboth, tape).at(0), tape);
}

}  // namespace mindpipe
