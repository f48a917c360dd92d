#include "config/models/vit.h"

#include "config/config.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe::vit {

std::vector<Setting> settings(Config& config) {
  Settings& m = config.model.vit;
  std::vector<Setting> all = block_settings(m);
  all.emplace_back("model.patch", &m.patch, "side of a patch; divides height and width of a picture",
                   Range{1, 1 << 14});
  add_picture_settings(all, m, config);
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
  check_pictures(m, complain);
}

std::vector<Extent> split_by_shards(const Config& config) {
  const Settings& m = config.model.vit;
  return {{"model.heads", m.heads}, {"model.mlp_width", m.mlp_width}};
}

}  // namespace mindpipe::vit
