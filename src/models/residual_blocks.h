#pragma once
#include <memory>
#include <string>

#include "config/models/blocks.h"
#include "layers/attention.h"
#include "layers/classifier.h"
#include "layers/norm.h"
#include "models/model.h"

namespace mindpipe {

struct TrainConfig;

/// Appends residual blocks to a model, each on a unit of its own, in the style of its settings.
class ResidualBlocks {
 public:
  /// Pre-norm blocks. Products that end one of the `branches` start smaller: the variance of the stream
  /// stays.
  ResidualBlocks(Model& model, const TrainConfig& train, const BlockSettings& settings,
                 const LayerContext& context, int branches);
  /// Post-norm blocks: each norms what it leaves.
  ResidualBlocks(Model& model, const TrainConfig& train, const BlockSettings& settings,
                 const LayerContext& context);

  void add_self_attention(const std::string& path, const AttentionSpec& spec);
  void add_cross_attention(const std::string& path, const AttentionSpec& spec);
  void add_mlp(const std::string& path);
  /// So many layers of an attention to itself and an MLP: "layers.0.attention", "layers.0.mlp", ...
  void add_layers(const std::string& path, int layers, const AttentionSpec& spec);
  /// The classifier over `vocabulary`, user number `use` of the `uses` of `table`; nullptr: it has a table of
  /// its own. It begins with a norm where the blocks do.
  /// `with_constant`: with a constant for each word, which no optimizer moves.
  void add_head(std::int64_t vocabulary, Unit* table, int uses, int use, bool with_constant = false);

  /// Norm of the model's width, its parameters in `unit`.
  Norm norm(Unit& unit) const;
  NormSpec norm_spec() const { return {norm_kind(), settings_.norm_epsilon, has_norm_offset()}; }
  Activation activation() const;
  /// Attention without rotation in which every head has keys and values of its own.
  AttentionSpec attention() const;

 private:
  template <class AnyBranch, class... Parts>
  void add(const std::string& path, const std::string& part, const Parts&... parts);
  ResidualBlocks(Model& model, const TrainConfig& train, const BlockSettings& settings,
                 const LayerContext& context, BlockOrder order, double output_deviation);
  NormKind norm_kind() const { return settings_.norm == ModelNorm::rms ? NormKind::rms : NormKind::layer; }
  bool has_norm_offset() const { return norm_kind() == NormKind::layer && settings_.bias; }

  Model& model_;
  const TrainConfig& train_;
  const BlockSettings& settings_;
  const LayerContext& context_;
  BlockOrder order_;
  double output_deviation_;
};

}  // namespace mindpipe
