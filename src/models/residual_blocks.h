#pragma once
#include <functional>
#include <memory>
#include <string>

#include "layers/attention.h"
#include "layers/classifier.h"
#include "layers/norm.h"
#include "models/model.h"

namespace mindpipe {

/// Appends residual blocks to a model, each on a unit of its own, in the style that the configuration asks
/// for.
class ResidualBlocks {
 public:
  /// `output_deviation`: initial deviation of the products that end a residual branch.
  ResidualBlocks(Model& model, const Config& config, const LayerContext& context, double output_deviation)
      : model_(model), config_(config), context_(context), output_deviation_(output_deviation) {}

  void add_self_attention(const std::string& path, const AttentionSpec& spec);
  void add_cross_attention(const std::string& path, const AttentionSpec& spec);
  void add_mlp(const std::string& path);

  /// Norm of the model's width, its parameters in `unit`.
  Norm norm(Unit& unit) const;
  /// Attention without rotation in which every head has keys and values of its own.
  AttentionSpec attention() const;
  /// Classifier that is user number `use` of the `uses` of its table.
  ClassifierSpec classifier(int uses, int use) const;

 private:
  using MakeBranch = std::function<std::unique_ptr<Branch>(Unit&)>;
  void add(const std::string& path, const std::string& part, const MakeBranch& make_branch);
  NormKind norm_kind() const {
    return config_.model.norm == ModelNorm::rms ? NormKind::rms : NormKind::layer;
  }
  bool has_norm_offset() const { return norm_kind() == NormKind::layer && config_.model.bias; }

  Model& model_;
  const Config& config_;
  const LayerContext& context_;
  double output_deviation_;
};

}  // namespace mindpipe
