#include <map>
#include <numeric>

#include "config/sections/train.h"
#include "layers/pictures.h"
#include "models/picture_candidates.h"
#include "models/pictures.h"

namespace mindpipe {
namespace {

/// The numbers of the candidates that a block of the model has.
std::vector<int> numbers_of(const Space& space, const std::vector<int>* choice, int block) {
  if (choice != nullptr) return {(*choice)[block]};
  std::vector<int> all(space.candidates(block).size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

std::unique_ptr<Model> make_of_picture_space(const TrainConfig& train, const SpaceSettings& m,
                                             const LayerContext& context, const std::vector<int>* choice) {
  auto model = std::make_unique<Model>();
  see_pictures(*model, m);
  // What runs would mix the networks of a space.
  const BatchNormSpec norm{0, false, m.norm_epsilon, m.norm_momentum, choice != nullptr};
  const PictureCandidates candidates(m, context, norm);
  const PixelWindow window{m.picture_height, m.picture_width, 3, 1, 1};
  const std::int64_t first = m.space.groups.front().width, last = m.space.groups.back().width;
  const auto of_channels = [&](std::int64_t channels, bool relu) {
    BatchNormSpec made = norm;
    made.channels = channels;
    made.relu = relu;
    return made;
  };

  Unit& stem = model->add_unit("stem");
  model->stream({window.windows(), first});
  model->add_block("stem",
                   std::make_unique<PictureStem>(context, stem, picture_of(m, 1),
                                                 conv_spec("conv", m.channels, first, window, Split::none),
                                                 of_channels(first, false)),
                   {&stem});
  double operations = 6.0 * static_cast<double>(window.windows() * 9 * m.channels * first);
  std::map<std::string, std::vector<std::int64_t>> shapes{{"stem.conv.weight", {first, m.channels, 3, 3}}};
  for (int block = 0; block < m.space.blocks(); ++block) {
    if (choice != nullptr) candidates.append(*model, block, (*choice)[block]);
    else candidates.append_choice(*model, block);
    const std::vector<int> numbers = numbers_of(m.space, choice, block);
    for (const int number : numbers) {
      operations += candidates.operations(block, number) / static_cast<double>(numbers.size());
      shapes.merge(candidates.shapes(block, number));
    }
  }
  Unit& head = model->add_unit("head");
  const SoftmaxSpec softmax{.vocabulary = m.classes,
                            .width = last,
                            .deviation = 0.02,
                            .table = "classifier",
                            .bias = true,
                            .label_smoothing = train.label_smoothing};
  model->add_block(
      "head", std::make_unique<PooledClassifier>(context, head, of_channels(last, true), softmax), {&head});
  model->estimate({"6 windows x weights", operations});
  model->export_as([shapes](const std::string& unit, const std::string& part) {
    Model::ExportName found{unit + "." + part};
    if (const auto shape = shapes.find(found.name); shape != shapes.end()) found.shape = shape->second;
    return found;
  });
  return model;
}

}  // namespace mindpipe
