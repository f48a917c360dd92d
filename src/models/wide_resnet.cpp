#include "config/sections/train.h"
#include "layers/pictures.h"
#include "models/make.h"
#include "models/names.h"
#include "models/pictures.h"

namespace mindpipe::wide_resnet {
namespace {

// A wide residual network's usual names: block1 to block3 are its groups.
const NameTable names{{"stem.conv", "conv1"},
                      {"head.final_norm", "bn1"},
                      {"head.classifier", "fc"},
                      {"group.N.norm1", "block.layer.N.bn1"},
                      {"group.N.norm2", "block.layer.N.bn2"},
                      {"group.N.conv1", "block.layer.N.conv1"},
                      {"group.N.conv2", "block.layer.N.conv2"},
                      {"group.N.shortcut", "block.layer.N.convShortcut"}};

/// Groups are counted in their names: "group2.0.conv1" is block2.layer.0.conv1.
Model::ExportName name_of_part(const Model& model, const std::string& unit, const std::string& part) {
  const bool in_group = unit.starts_with("group");
  const std::string number = in_group ? unit.substr(5, 1) : "";
  std::string name = name_from(names, in_group ? "group" + unit.substr(6) : unit, part);
  if (in_group) name.insert(5, number);
  Model::ExportName found{name};
  if (part.find("conv") == std::string::npos && part.find("shortcut") == std::string::npos) return found;
  for (const auto& of : model.units())
    for (const ParamSpec& spec : of->params()) {
      if (of->name() != unit || spec.pieces[0].name != part) continue;
      const std::int64_t side = part.find("shortcut") == std::string::npos ? 3 : 1;
      found.shape = {spec.rows(), spec.columns / (side * side), side, side};
    }
  return found;
}

/// Two operations a weight and window, and twice that on the way back.
class Operations {
 public:
  void add(const Conv2DSpec& spec) {
    sum_ +=
        6.0 * static_cast<double>(spec.window.windows() * spec.window.taps() * spec.inputs * spec.outputs);
  }
  void add(const PictureBlockSpec& spec) {
    PixelWindow second{spec.window.down(), spec.window.across(), spec.window.side, 1, 1},
        corner = spec.window;
    corner.side = 1;
    add({"", spec.inputs, spec.outputs, spec.window});
    add({"", spec.outputs, spec.outputs, second});
    if (spec.inputs != spec.outputs || spec.window.stride > 1) add({"", spec.inputs, spec.outputs, corner});
  }
  double sum() const { return sum_; }

 private:
  double sum_ = 0;
};

}  // namespace

/// Makes a wide residual network, pre-activation: a convolution, three groups of blocks, of which the second
/// and third halve the picture, and a classifier of the mean over what is left.
std::unique_ptr<Model> make(const Settings& m, const DataConfig&, const TrainConfig& train,
                            const LayerContext& context) {
  require_divisible(16 * std::int64_t{m.width}, context.tensor.logical(), "16 x model.width");
  auto model = std::make_unique<Model>();
  see_pictures(*model, m);
  model->export_as([model = model.get()](const std::string& unit, const std::string& part) {
    return name_of_part(*model, unit, part);
  });

  PixelWindow window{m.picture_height, m.picture_width, 3, 1, 1};
  std::int64_t channels = 16;
  Operations operations;
  const Conv2DSpec first = conv_spec("conv", m.channels, channels, window, Split::none);
  operations.add(first);
  Unit& stem = model->add_unit("stem");
  model->stream({window.windows(), channels});
  model->add_block("stem", std::make_unique<PictureStem>(context, stem, picture_of(m, 1), first), {&stem});
  for (int group = 1; group <= 3; ++group)
    for (int i = 0; i < m.blocks_of_group(); ++i) {
      const std::string path = fmt::format("group{}.{}", group, i);
      const std::int64_t outputs = (std::int64_t{8} << group) * m.width;
      window.stride = group > 1 && i == 0 ? 2 : 1;
      const PictureBlockSpec spec{channels, outputs, window, m.norm_epsilon, m.norm_momentum};
      operations.add(spec);
      Unit& unit = model->add_unit(path);
      model->stream({window.windows(), outputs});
      model->add_block(path, std::make_unique<PictureBlock>(context, unit, spec), {&unit});
      window = {window.down(), window.across(), window.side, 1, 1};
      channels = outputs;
    }

  Unit& head = model->add_unit("head");
  const SoftmaxSpec softmax{.vocabulary = m.classes,
                            .width = channels,
                            .deviation = 0.02,
                            .table = "classifier",
                            .bias = true,
                            .label_smoothing = train.label_smoothing};
  model->add_block(
      "head",
      std::make_unique<PooledClassifier>(
          context, head, BatchNormSpec{channels, true, m.norm_epsilon, m.norm_momentum}, softmax),
      {&head});
  model->estimate({"6 windows x weights", operations.sum()});
  return model;
}

}  // namespace mindpipe::wide_resnet
