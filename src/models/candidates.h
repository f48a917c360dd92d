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
  Candidates(const Config& config, const SpaceSettings& settings, const LayerContext& context)
      : config_(config), settings_(settings), context_(context) {}

  /// The layer of candidate `number` of a block. Its parameters live in `unit`, whose name is the layer's in
  /// all that is random; nullptr where the candidate has none.
  std::unique_ptr<Layer> make(int block, int number, Unit* unit) const;
  /// Appends a block that is one of its candidates, with its unit: "blocks.7.3".
  void append(Model& model, int block, int number) const;
  /// Appends a block that may be any of its candidates, each with a unit of its own.
  void append_choice(Model& model, int block) const;

 private:
  /// Whose blocks they are.
  struct Place {
    bool encodes;
    std::string_view lengths;  ///< the field that says which rows are no padding; empty: they all count
  };
  std::unique_ptr<Branch> branch(const Candidate& candidate, const Place& place, Unit& unit) const;
  std::unique_ptr<Branch> convolution(const Candidate& candidate, const Place& place, Unit& unit) const;
  std::unique_ptr<Branch> mlp(std::int64_t inner, Unit& unit) const;
  AttentionSpec attention(int heads) const;

  const Config& config_;
  const SpaceSettings& settings_;
  LayerContext context_;
};

}  // namespace mindpipe
