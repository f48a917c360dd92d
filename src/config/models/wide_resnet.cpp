#include "config/models/wide_resnet.h"

#include <algorithm>

#include "config/config.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe::wide_resnet {
namespace {

constexpr int shrinks = 4;  ///< how much smaller a picture's sides are at the end

}  // namespace

std::vector<Setting> settings(Config& config) {
  Settings& m = config.model.wide_resnet;
  std::vector<Setting> all{
      {"model.depth", &m.depth, "convolutions: 6n + 4, for three groups of n blocks", Range{10, 100000}},
      {"model.width", &m.width, "how many times 16, 32 and 64 channels the groups have", Range{1, 1 << 10}},
      {"model.norm_epsilon", &m.norm_epsilon, "added to the variance", Range{0, 1, true}},
      {"model.norm_momentum", &m.norm_momentum,
       "how far running means and variances follow those of a step; evaluations use them",
       Range{0, 1, true}}};
  add_picture_settings(all, m, config);
  return all;
}

void fill_in(Config&) {}

void check(const Config& config, const Complaints& complain) {
  const Settings& m = config.model.wide_resnet;
  check_pictures(m, complain);
  complain.require((m.depth - 4) % 6 == 0, "model.depth", "is {}, but must be 6n + 4 (the nearest is {})",
                   m.depth, std::max(1, (m.depth - 4 + 3) / 6) * 6 + 4);
  const char* why = "two groups halve it";
  check_extent("model.picture_height", m.picture_height, shrinks, why, complain);
  check_extent("model.picture_width", m.picture_width, shrinks, why, complain);
  const int pixels = (m.picture_height / shrinks) * (m.picture_width / shrinks);
  complain.require(
      config.train.micro_batch * pixels > 1, "train.micro_batch",
      "is 1 and pictures end as one pixel (batch norm needs more than one value of each channel)");
}

std::vector<Extent> split_by_shards(const Config& config) {
  const Settings& m = config.model.wide_resnet;
  return {{"16 x model.width", 16 * m.width},
          {"the last group's pixels, model.picture_height / 4 x model.picture_width / 4,",
           (m.picture_height / shrinks) * (m.picture_width / shrinks)}};
}

}  // namespace mindpipe::wide_resnet
