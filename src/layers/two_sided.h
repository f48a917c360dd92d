#pragma once
#include <memory>

#include "layers/convolution.h"

namespace mindpipe {

/// What a two-sided branch is made of.
struct TwoSidedSpec {
  std::unique_ptr<Convolution> left, right;  ///< the right one's outputs may be fewer
  std::int64_t left_width = 0, right_width = 0;
  Norm norm;                             ///< norm of left_width numbers; its form is `whole`
  std::unique_ptr<Convolution> closing;  ///< outputs may be fewer than the stream's width
  std::int64_t closing_width = 0, width = 0;
  std::string_view lengths = {};  ///< the field that says which rows are padding, if they are not to be seen
  double dropout = 0;             ///< rate of either side
};

/// closing(norm(drop(left(x)) + drop(right(x)))), fewer columns padded with zeros; where there are lengths,
/// padding is cleared before the sides and before the end. Undivided, since a row is normed as a whole.
class TwoSidedBranch final : public Branch {
 public:
  TwoSidedBranch(const LayerContext& context, const std::string& path, TwoSidedSpec spec)
      : context_(context),
        spec_(std::move(spec)),
        left_purpose_(purpose_of(path + ".left.dropout")),
        right_purpose_(purpose_of(path + ".right.dropout")) {}
  std::vector<std::string_view> reads() const override {
    return spec_.lengths.empty() ? std::vector<std::string_view>{}
                                 : std::vector<std::string_view>{spec_.lengths};
  }
  Tensor forward(const Tensor& x, const Boundary& in, Tape& tape) override;
  Tensor backward(const Tensor& dy, const Boundary& dout, Tape& tape) override;

 private:
  void clear(const Tensor& x, const Tensor& y, const Tape& tape) const;
  void drop(const Tensor& x, std::uint64_t purpose, const Tape& tape) const;
  Tensor cut(const Tensor& x, std::int64_t width, Tape& tape) const;

  LayerContext context_;
  TwoSidedSpec spec_;
  std::uint64_t left_purpose_, right_purpose_;
};

}  // namespace mindpipe
