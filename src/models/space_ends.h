#pragma once
#include <string_view>

#include "config/models/space.h"
#include "layers/embedding.h"
#include "models/model.h"

namespace mindpipe {

struct DataConfig;
struct TrainConfig;

/// Appends what every network of a space has, whatever its blocks are: embeddings with learned positions, the
/// bridge behind an encoder, with its final norm, and the final norm with the classifier. The blocks of the
/// space are appended in between.
class SpaceEnds {
 public:
  SpaceEnds(Model& model, const DataConfig& data, const TrainConfig& train, const SpaceSettings& settings,
            const LayerContext& context)
      : model_(model), data_(data), train_(train), settings_(settings), context_(context) {}

  /// The fields of a sample, and the first embedding: of the source, where there is an encoder.
  void add_beginning();
  /// What stands between encoder and decoder; nothing in a language model.
  void add_bridge();
  /// The end, and how far the encoder's output travels: to the last block, of those behind the bridge, that
  /// may read it. Where none does it still enters the first one, whose gradient for it is zero.
  void add_end(int last_reader);

  /// Where a layer of the space's list stands in the model, whose first block is the embedding.
  static int place_of(const Space& space, int layer) {
    const bool encodes = space.encodes(layer * space.places_of_layer());
    return layer + (space.has_encoder() && !encodes ? 2 : 1);
  }

 private:
  /// The table of one of its users: of the source, of the target or of the softmax.
  Unit& table(const char* name, int use);
  int uses() const { return !settings_.tied ? 1 : settings_.space.has_encoder() ? 3 : 2; }
  /// What tables begin with. Embeddings are multiplied by its inverse, so that they are as large as what the
  /// first blocks add to them.
  double deviation() const;
  EmbeddingSpec embedding(std::string_view field, int use) const;

  Model& model_;
  const DataConfig& data_;
  const TrainConfig& train_;
  const SpaceSettings& settings_;
  LayerContext context_;
  Unit* shared_ = nullptr;  ///< the table, where there is one for all
};

}  // namespace mindpipe
