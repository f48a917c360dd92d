#include "config/models/vit.h"

#include "config/config.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe::vit {

std::vector<Setting> settings(Config& config) {
  constexpr Range extent{1, 1 << 14};
  Settings& m = config.model.vit;
  std::vector<Setting> all = block_settings(m);
  all.emplace_back("model.channels", &m.channels, "of a picture", Range{1, 4});
  all.emplace_back("model.picture_height", &m.picture_height, "rows of pixels", extent);
  all.emplace_back("model.picture_width", &m.picture_width, "pixels of a row", extent);
  all.emplace_back("model.patch", &m.patch, "side of a patch; divides height and width of a picture", extent);
  all.emplace_back("model.classes", &m.classes, "what a picture may show", Range{1, 1 << 24});
  all.emplace_back("model.mean", &m.mean,
                   "of a channel, whose bytes are numbers from 0 to 1: taken away; one number counts for all",
                   Range{0, 1});
  all.emplace_back("model.deviation", &m.deviation, "of a channel: what is left is divided by it, as mean",
                   Range{0, 1, true});
  all.emplace_back("data.flip", &config.data.flip, "every second picture that is trained on is mirrored");
  all.emplace_back("data.crop", &config.data.crop,
                   "pixels by which pictures that are trained on are moved at most, down or up and sideways",
                   Range{0, 1 << 14});
  return all;
}

void fill_in(Config& config) { mindpipe::fill_in(config.model.vit); }

void check(const Config& config, const Complaints& complain) {
  const Settings& m = config.model.vit;
  mindpipe::check(m, complain);
  const auto cut = [&](const char* key, int extent) {
    complain.require(extent % m.patch == 0, key, "is {} and model.patch {} (patches tile a picture)", extent,
                     m.patch);
  };
  cut("model.picture_height", m.picture_height);
  cut("model.picture_width", m.picture_width);
  const auto fit_channels = [&](const char* key, const std::vector<double>& numbers) {
    const auto count = static_cast<int>(numbers.size());
    complain.require(count == 1 || count == m.channels, key,
                     "has {} numbers and model.channels is {} (one for each channel, or one for all)", count,
                     m.channels);
  };
  fit_channels("model.mean", m.mean);
  fit_channels("model.deviation", m.deviation);
}

std::vector<Extent> cut_by_shards(const Config& config) {
  const Settings& m = config.model.vit;
  return {{"model.heads", m.heads}, {"model.mlp_width", m.mlp_width}};
}

}  // namespace mindpipe::vit
