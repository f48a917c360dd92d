#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "layers/branch.h"

namespace mindpipe {

/// What a branch of a cell's block is made of.
struct CellBranchSpec {
  int input = 1;                             ///< the state that it reads: 1 the newest, 2 the one before
  std::int64_t width = 0;                    ///< width of the output; 0: there is no branch
  std::optional<Norm> norm = {};             ///< the branch's own norm of its input
  std::unique_ptr<Branch> layer;             ///< none: identity
  Param bias = {};                           ///< bias of a layer that leaves its bias to the block
  Activation activation = Activation::none;  ///< behind the layer, if it has none of its own
  double dropout = 0;                        ///< rate for the output, unless that is a state itself
  std::uint64_t purpose = 0;                 ///< key of that dropout
  bool whole = false;  ///< the state is of another width than the model's: every tensor rank has all rows
};

enum class Combiner : std::uint8_t { add, multiply, concat };

/// What a block of a cell is made of; several lefts, rights and combiners: a supernet's, of which a
/// micro-batch's subnet takes one each.
struct CellBlockSpec {
  /// The left branch's place in a subnet's choice; the others follow. -1: there is one of each.
  int place = -1;
  std::vector<CellBranchSpec> left, right;
  std::vector<Combiner> combine;
  std::optional<Norm> shared = {};                ///< the norm that both branches read, in place of their own
  bool shared_whole = false;                      ///< CellBranchSpec::whole for the shared norm
  std::int64_t newest = 0, older = 0, width = 0;  ///< widths of the states that enter, and of the output
  int residual = 0;                               ///< the state that is added to it; 0: none
  bool keeps = false;                             ///< the newest state goes on beside it
};

/// A block of a cell: y = [state +] combine(left, right), fewer columns padded with the combiner's neutral
/// number. An activation holds the states that go on, one after the other: [samples, rows, width] of the
/// newest, then of the one before it. What leaves is y and, if somebody reads it still, the newest that
/// entered.
class CellBlock final : public Layer {
 public:
  CellBlock(const LayerContext& context, CellBlockSpec spec) : context_(context), spec_(std::move(spec)) {}
  std::vector<std::string_view> reads() const override;
  std::size_t cache_bytes(std::int64_t samples) const override;
  bool can_be_recomputed() const override { return true; }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  class GradientSum;
  struct Taken;
  struct States;
  struct Sums;
  Taken taken(const Tape& tape);
  Tensor run(CellBranchSpec& branch, const Tensor& x, const Boundary& in, Tape& tape);
  Tensor settled(const CellBranchSpec& branch, const Tensor& y, Tape& tape) const;
  void add_state(const Tensor& state, Tensor& sum, const Tensor& y) const;
  void add_branch(const CellBranchSpec& branch, const Tensor& part, Tensor& sum, const Tensor& y,
                  Tape& tape) const;
  void add(const Taken& block, const States& inputs, const States& states, const Boundary& in,
           const Tensor& y, Tape& tape);
  void multiply(const Taken& block, const States& inputs, const Boundary& in, const Tensor& y, Tape& tape);
  void concat(const Taken& block, const States& inputs, const Boundary& in, const Tensor& y, Tape& tape);
  std::pair<Tensor, Tensor> divide(const Taken& block, const Tensor& dy, Sums& sums, Tape& tape);
  void run_both_back(const Taken& block, const std::pair<Tensor, Tensor>& parts, const Boundary& dout,
                     Sums& sums, Tape& tape);
  void back_through(std::optional<Norm>& norm, bool whole, const Tensor& dy, GradientSum& state,
                    Tape& tape) const;
  void run_back(CellBranchSpec& branch, const Tensor& dy, const Boundary& dout, Sums& sums, Tape& tape);
  Dropout dropout(const CellBranchSpec& branch, const Tape& tape) const {
    return dropout_at(context_, branch.dropout, branch.purpose, tape);
  }

  LayerContext context_;
  CellBlockSpec spec_;
};

}  // namespace mindpipe
