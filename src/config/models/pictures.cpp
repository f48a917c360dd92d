#include "config/models/pictures.h"

#include <algorithm>

#include "config/config.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe {

void add_picture_settings(std::vector<Setting>& settings, PictureSettings& m, Config& config) {
  constexpr Range extent{1, 1 << 14};
  settings.emplace_back("model.channels", &m.channels, "channels of a picture", Range{1, 4});
  settings.emplace_back("model.picture_height", &m.picture_height, "rows of pixels", extent);
  settings.emplace_back("model.picture_width", &m.picture_width, "pixels of a row", extent);
  settings.emplace_back("model.classes", &m.classes, "classes of pictures", Range{1, 1 << 24});
  settings.emplace_back(
      "model.mean", &m.mean,
      "mean of each channel, bytes counted from 0 to 1, which is subtracted; one number: for all channels",
      Range{0, 1});
  settings.emplace_back(
      "model.deviation", &m.deviation,
      "deviation of each channel, which the rest is divided by; one number: for all channels",
      Range{0, 1, true});
  settings.emplace_back("data.flip", &config.data.flip,
                        "mirror every second picture of the training, at random");
  settings.emplace_back("data.crop", &config.data.crop,
                        "move pictures of the training, at random, by up to this many pixels in each "
                        "direction; zeros fill the gap",
                        Range{0, 1 << 14});
}

void check_pictures(const PictureSettings& m, const Complaints& complain) {
  const auto fit_channels = [&](const char* key, const std::vector<double>& numbers) {
    const auto count = static_cast<int>(numbers.size());
    complain.require(count == 1 || count == m.channels, key,
                     "has {} numbers and model.channels is {} (one for each channel, or one for all)", count,
                     m.channels);
  };
  fit_channels("model.mean", m.mean);
  fit_channels("model.deviation", m.deviation);
}

void check_extent(const std::string& key, int extent, int step, const std::string& why,
                  const Complaints& complain) {
  complain.require(extent % step == 0, key, "is {}, which {} does not divide ({}; the nearest is {})", extent,
                   step, why, std::max(step, (extent + step / 2) / step * step));
}

}  // namespace mindpipe
