#pragma once
#include <memory>

#include "layers/branch.h"
#include "layers/linear.h"

namespace mindpipe {

/// What the convolutions over rows are made of.
struct ConvolutionSpec {
  std::int64_t inputs = 0, outputs = 0;
  Reach reach;
  std::string_view lengths = {};  ///< the field that says how many rows of each sample are seen; empty: all
  Activation activation = Activation::none;  ///< behind the convolution
};

/// A convolution over all rows of samples, [samples, rows, inputs] to [samples, rows, outputs]. Undivided:
/// every tensor rank computes it, and its gradients, alike.
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual Tensor forward(const Tensor& x, Tape& tape) = 0;
  virtual Tensor backward(const Tensor& dy, Tape& tape) = 0;
};

/// A convolution that sees one row: a product with a bias. Saves x, and what went into the activation.
class Dense final : public Convolution {
 public:
  Dense(const LayerContext& context, Unit& unit, const std::string& name, std::int64_t inputs,
        std::int64_t outputs, Activation activation);
  Tensor forward(const Tensor& x, Tape& tape) override;
  Tensor backward(const Tensor& dy, Tape& tape) override;

 private:
  LayerContext context_;
  std::int64_t outputs_;
  Activation activation_;
  Linear product_;
};

/// Every output is a sum over all inputs of `taps` rows: a product with rows and their neighbours, some
/// samples at a time. Its weight is [outputs, taps x inputs], tap by tap; saves x, and what went into the
/// activation.
class StandardConvolution final : public Convolution {
 public:
  StandardConvolution(const LayerContext& context, Unit& unit, const std::string& name,
                      const ConvolutionSpec& spec);
  Tensor forward(const Tensor& x, Tape& tape) override;
  Tensor backward(const Tensor& dy, Tape& tape) override;

 private:
  /// Rows beside each other for a product of samples [first, first + count).
  Tensor neighbours(const Tensor& x, std::int64_t first, std::int64_t count, Tape& tape) const;
  std::int64_t columns() const { return spec_.reach.taps * spec_.inputs; }

  LayerContext context_;
  ConvolutionSpec spec_;
  Param weight_, bias_;
};

/// A sum over rows for each channel, then a product over channels with one bias; nothing in between. Its
/// weights are [taps, inputs] and [outputs, inputs]; saves x, the sums, and what went into the activation.
class SeparableConvolution final : public Convolution {
 public:
  SeparableConvolution(const LayerContext& context, Unit& unit, const std::string& name,
                       const ConvolutionSpec& spec);
  Tensor forward(const Tensor& x, Tape& tape) override;
  Tensor backward(const Tensor& dy, Tape& tape) override;

 private:
  LayerContext context_;
  ConvolutionSpec spec_;
  Param taps_;
  Dense channels_;
};

/// A sum over rows for each channel, whose weights are a softmax over the taps: `shared` channels share a
/// column of [taps, inputs / shared], channel i has column i mod (inputs / shared). No bias; saves x.
class LightweightConvolution final : public Convolution {
 public:
  LightweightConvolution(const LayerContext& context, Unit& unit, const std::string& name,
                         const ConvolutionSpec& spec, std::int64_t shared);
  Tensor forward(const Tensor& x, Tape& tape) override;
  Tensor backward(const Tensor& dy, Tape& tape) override;

 private:
  /// The softmax, a column for each channel.
  Tensor shared_taps(Tape& tape) const;

  LayerContext context_;
  ConvolutionSpec spec_;
  Param taps_;
};

/// A residual branch that is one convolution, of rows without padding where the convolution knows lengths.
/// Where texts are continued it keeps the rows that the next ones see: `earlier` of them, as wide as the
/// model.
class ConvolutionBranch final : public Branch {
 public:
  ConvolutionBranch(const LayerContext& context, std::unique_ptr<Convolution> convolution,
                    std::string_view lengths, const Shape& earlier = {0, 0})
      : context_(context), convolution_(std::move(convolution)), lengths_(lengths), earlier_(earlier) {}
  std::vector<std::string_view> reads() const override {
    return lengths_.empty() ? std::vector<std::string_view>{} : std::vector<std::string_view>{lengths_};
  }
  std::size_t cache_bytes(std::int64_t samples) const override {
    return earlier_[0] > 0 ? bytes_for(cache_shape(samples), context_.dtype) : 0;
  }
  Tensor forward(const Tensor& x, const Boundary&, Tape& tape) override {
    const Tensor whole = enter(context_, x, tape);
    const bool continues = tape.mode == Tape::Mode::generate && earlier_[0] > 0;
    return own_rows(context_, continues ? behind_earlier(whole, tape) : convolution_->forward(whole, tape),
                    tape);
  }
  Tensor backward(const Tensor& dy, const Boundary&, Tape& tape) override {
    return own_rows(context_, convolution_->backward(enter_gradient(context_, dy, tape), tape), tape);
  }

 private:
  Shape cache_shape(std::int64_t samples) const { return {samples, earlier_[0], earlier_[1]}; }
  /// Convolves rows behind those before them, of which it keeps the last for the next ones.
  Tensor behind_earlier(const Tensor& x, Tape& tape);

  LayerContext context_;
  std::unique_ptr<Convolution> convolution_;
  std::string_view lengths_;
  Shape earlier_;  ///< [rows, width] of what it keeps
};

}  // namespace mindpipe
