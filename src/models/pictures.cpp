#include "models/pictures.h"

namespace mindpipe {

PictureShape picture_of(const PictureSettings& m, int side) {
  PictureShape picture{m.channels, m.picture_height, m.picture_width, side};
  const auto of_channel = [](const std::vector<double>& numbers, int channel) {
    return static_cast<float>(numbers[numbers.size() == 1 ? 0 : channel]);
  };
  for (int channel = 0; channel < m.channels; ++channel) {
    picture.mean[channel] = of_channel(m.mean, channel);
    picture.deviation[channel] = of_channel(m.deviation, channel);
  }
  return picture;
}

void see_pictures(Model& model, const PictureSettings& m) {
  model.add_field({.name = field::picture,
                   .type = DType::u8,
                   .shape = {std::int64_t{m.channels} * m.picture_height, m.picture_width},
                   .planes = m.channels});
  model.add_field({field::targets, DType::i32, {1}, m.classes});
  model.count_in({"picture", 1});
}

}  // namespace mindpipe
