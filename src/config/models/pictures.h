#pragma once
#include <string>
#include <vector>

#include "config/kinds.h"

namespace mindpipe {

class Setting;
struct Complaints;
struct Config;

/// Settings of models that say what a picture shows.
struct PictureSettings {
  int channels = 3, picture_height = 224, picture_width = 224, classes = 1000;
  std::vector<double> mean{0.5}, deviation{0.5};  ///< a pixel's (0 to 1): by channel, or one
  bool operator==(const PictureSettings&) const = default;
};

/// Adds the settings of pictures, and those of how they are moved in training.
void add_picture_settings(std::vector<Setting>& settings, PictureSettings& m, Config& config);
/// Refuses means and deviations that are neither one nor one for each channel.
void check_pictures(const PictureSettings& m, const Complaints& complain);
/// Refuses a height or width, the setting `key`, that `step` does not divide, with the nearest that it does.
void check_extent(const std::string& key, int extent, int step, const std::string& why,
                  const Complaints& complain);

}  // namespace mindpipe
