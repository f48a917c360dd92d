#pragma once
#include "harness.h"
#include "layers/attention.h"
#include "layers/branch.h"
#include "layers/linear.h"

/// Parts of blocks as layers of their own, so that the harness can run them alone.
namespace mindpipe::testing {

class NormLayer final : public Layer {
 public:
  explicit NormLayer(Norm norm) : norm_(std::move(norm)) {}
  Boundary forward(Boundary in, Tape& tape) override { return {norm_.forward(in.activation, tape), {}}; }
  Boundary backward(Boundary dout, Tape& tape) override {
    const Tensor dx = tape.scratch(dout.activation.shape, dout.activation.dtype);
    norm_.backward(dout.activation, {}, dx, tape);
    return {dx, {}};
  }

 private:
  Norm norm_;
};

class BranchLayer final : public Layer {
 public:
  BranchLayer(const LayerContext& context, std::unique_ptr<Branch> branch)
      : context_(context), branch_(std::move(branch)) {}
  Boundary forward(Boundary in, Tape& tape) override {
    const Tensor y = tape.output(in.activation.shape, in.activation.dtype);
    Tape::Scope scope(tape);
    context_.backend.copy(branch_->forward(in.activation, in, tape), y);
    return {y, in.encoder_output};
  }
  Boundary backward(Boundary dout, Tape& tape) override {
    return {branch_->backward(dout.activation, dout, tape), dout.encoder_output};
  }

 private:
  LayerContext context_;
  std::unique_ptr<Branch> branch_;
};

/// [samples, rows, columns] as shards [shard][samples, rows, columns / shards], and back; a copy either way.
inline void cut(const LayerContext& context, const Tensor& whole, const Tensor& shards) {
  const std::int64_t n = whole.rows(), count = shards.shape[0], columns = shards.cols();
  for (std::int64_t s = 0; s < count; ++s)
    for (std::int64_t r = 0; r < n; ++r)
      context.backend.copy(whole.row_range(r, 1).reshaped({count * columns}).range(s * columns, columns),
                           shards.at(s).row_range(r, 1).reshaped({columns}));
}
inline void join(const LayerContext& context, const Tensor& shards, const Tensor& whole) {
  const std::int64_t n = whole.rows(), count = shards.shape[0], columns = shards.cols();
  for (std::int64_t s = 0; s < count; ++s)
    for (std::int64_t r = 0; r < n; ++r)
      context.backend.copy(shards.at(s).row_range(r, 1).reshaped({columns}),
                           whole.row_range(r, 1).reshaped({count * columns}).range(s * columns, columns));
}

/// A linear map from whole to whole activations, whatever its split.
class LinearLayer final : public Layer {
 public:
  LinearLayer(const LayerContext& context, Unit& unit, const LinearSpec& spec)
      : context_(context), spec_(spec), linear_(context, unit, spec) {}
  Boundary forward(Boundary in, Tape& tape) override {
    const Tensor x = in.activation;
    const Shape& shape = x.shape;
    const Tensor y = tape.output({shape[0], shape[1], outputs()}, x.dtype);
    Tape::Scope scope(tape);
    if (spec_.split == Split::in) {
      const Tensor shards =
          tape.keep({linear_.local_shards(), shape[0], shape[1], shape[2] / linear_.local_shards()}, x.dtype);
      cut(context_, x, shards);
      context_.backend.copy(leave(context_, linear_.forward(shards, tape), tape), y);
    } else {
      join(context_, linear_.forward(x, tape), y);
    }
    return {y, {}};
  }
  Boundary backward(Boundary dout, Tape& tape) override {
    const Tensor dy = dout.activation;
    const Shape& shape = dy.shape;
    const Tensor dx = tape.scratch({shape[0], shape[1], spec_.inputs}, dy.dtype);
    if (spec_.split == Split::in) {
      join(context_, linear_.backward(dy, tape), dx);
    } else {
      const Tensor shards = tape.scratch(
          {linear_.local_shards(), shape[0], shape[1], shape[2] / linear_.local_shards()}, dy.dtype);
      cut(context_, dy, shards);
      const Tensor found = linear_.backward(shards, tape);
      // A split map's shards are parts of a sum, an undivided one's single shard is all of it.
      context_.backend.copy(spec_.split == Split::out ? leave(context_, found, tape) : found.at(0), dx);
    }
    return {dx, {}};
  }

 private:
  std::int64_t outputs() const {
    std::int64_t n = 0;
    for (const Piece& piece : spec_.outputs) n += piece.rows;
    return n;
  }
  LayerContext context_;
  LinearSpec spec_;
  Linear linear_;
};

/// Two undivided linear maps with an activation between them, fused into the first one's forward and the
/// second one's backward.
class ActivatedPair final : public Layer {
 public:
  ActivatedPair(const LayerContext& context, Unit& unit, std::int64_t width, std::int64_t inner,
                Activation activation)
      : context_(context),
        inner_(inner),
        activation_(activation),
        first_(context, unit, {{{"first", inner}}, width, Split::none, true}),
        second_(context, unit, {{{"second", width}}, inner, Split::none, true}) {}
  Boundary forward(Boundary in, Tape& tape) override {
    const Shape& shape = in.activation.shape;
    const Tensor before = tape.keep({1, shape[0], shape[1], inner_}, in.activation.dtype);
    const Tensor h = first_.forward(in.activation, tape, activation_, before);
    tape.save(before);
    return {second_.multiply(h.at(0), tape).at(0), {}};
  }
  Boundary backward(Boundary dout, Tape& tape) override {
    const Tensor before = tape.restore(), h = tape.made_again(before.shape, before.dtype);
    context_.backend.activation({before, activation_, h});
    const Tensor dbefore = second_.backward(dout.activation, h.at(0), tape, activation_, before);
    return {first_.backward(dbefore.at(0), tape).at(0), {}};
  }

 private:
  LayerContext context_;
  std::int64_t inner_;
  Activation activation_;
  Linear first_, second_;
};

inline AttentionSpec four_heads() {
  AttentionSpec spec;
  spec.width = 16;
  spec.heads = spec.key_value_heads = 4;
  spec.head_width = 4;
  return spec;
}

}  // namespace mindpipe::testing
