#pragma once
#include <memory>
#include <string>

#include "config/models/space.h"
#include "layers/attention.h"
#include "models/model.h"

namespace mindpipe {

/// Makes the layers that blocks of a space may be: x + dropout(candidate(norm(x))), each with a norm of its
/// own. Candidates of the encoder see no padding; those of the decoder are causal, and rows of padding stand
/// behind all that count. What sees its own row alone is left to compute padding too, which nobody reads.
class Candidates {
 public:
  Candidates(const SpaceSettings& settings, const LayerContext& context)
      : settings_(settings), context_(context) {}

  /// The layer of candidate `number` of a block. Its parameters live in `unit`, whose name is the layer's in
  /// all that is random; nullptr where the candidate has none.
  std::unique_ptr<Layer> make(int block, int number, Unit* unit) const;
  /// Appends a block that is one of its candidates, with its unit: "blocks.7.3".
  void append(Model& model, int block, int number) const;
  /// Appends a block that may be any of its candidates, each with a unit of its own.
  void append_choice(Model& model, int block) const;

  /// What a candidate's layer is besides its word.
  struct Use {
    bool encodes = false;
    std::int64_t inputs = 0, outputs = 0;      ///< the latter of a convolution; others give what they read
    Activation activation = Activation::none;  ///< behind a convolution; inside an MLP
    double inner_dropout = 0;                  ///< inside an MLP
  };
  /// The layer of a candidate, which is no identity, alone: without a norm, and without its last bias where
  /// `leaves_bias`.
  std::unique_ptr<Branch> branch(const Candidate& candidate, const Use& use, Unit& unit) const;
  static bool leaves_bias(const Candidate& candidate) {
    return candidate.kind == CandidateKind::mlp || candidate.kind == CandidateKind::normed_mlp;
  }

 private:
  std::unique_ptr<Branch> convolution(const Candidate& candidate, const Use& use, Unit& unit) const;
  std::unique_ptr<Branch> mlp(const Candidate& candidate, const Use& use, Unit& unit) const;
  AttentionSpec attention(int heads, std::int64_t width) const;

  const SpaceSettings& settings_;
  LayerContext context_;
};

}  // namespace mindpipe
