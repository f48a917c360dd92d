#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/models/space.h"
#include "layers/picture_candidate.h"
#include "models/model.h"

namespace mindpipe {

struct TrainConfig;

/// Makes the layers that blocks of a space of pictures may be, each convolution with a batch norm.
class PictureCandidates {
 public:
  /// `norm`: what all batch norms have but their channels.
  PictureCandidates(const SpaceSettings& settings, const LayerContext& context, const BatchNormSpec& norm)
      : settings_(settings), context_(context), norm_(norm) {}

  /// The layer of candidate `number` of a block. `unit`: nullptr where it has no parameters.
  std::unique_ptr<Layer> make(int block, int number, Unit* unit) const;
  /// Appends a block that is one of its candidates, with its unit: "blocks.7.3".
  void append(Model& model, int block, int number) const;
  /// Appends a block that may be any of its candidates, each with a unit of its own.
  void append_choice(Model& model, int block) const;
  /// Operations of a candidate's convolutions for a picture, forward and backward.
  double operations(int block, int number) const;
  /// How the weights of a candidate's convolutions stand in files, by their names: [outputs, inputs, rows,
  /// columns].
  std::map<std::string, std::vector<std::int64_t>> shapes(int block, int number) const;

 private:
  PictureCandidateSpec spec(int block, int number) const;
  /// Says what leaves a block.
  void stream(Model& model, int block) const;

  const SpaceSettings& settings_;
  LayerContext context_;
  BatchNormSpec norm_;
};

/// Makes the model of a space of pictures: each block is the candidate of `choice`, or, without one, may be
/// all.
std::unique_ptr<Model> make_of_picture_space(const TrainConfig& train, const SpaceSettings& settings,
                                             const LayerContext& context, const std::vector<int>* choice);

}  // namespace mindpipe
