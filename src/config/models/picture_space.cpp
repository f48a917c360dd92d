#include "config/models/picture_space.h"

#include "config/models/read_space.h"

#include "config/config.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe {
namespace {

constexpr int most_groups = 10, most_width = 1 << 20;

PictureGroup read_group(const Node& node, const std::string& key) {
  if (node.kind != Node::Kind::mapping) refuse(node, key, "blocks and width, like {blocks: 8, width: 64}");
  const Section group(node, key, {"blocks", "width"}, "a group");
  const auto number = [&](const char* name, int most, const char* meaning) {
    return read_number(group.at(name, meaning), group.key_of(name), 1, most);
  };
  return {number("blocks", most_blocks, "how many there are"),
          number("width", most_width, "channels behind each of them")};
}

}  // namespace

bool read_pictures(const Section& whole, int repeat, Space& space) {
  const Node* written = whole.find("pictures");
  if (written == nullptr) return false;
  for (const char* other : {"encoder", "decoder"})
    MP_REQUIRE(whole.find(other) == nullptr, Exit::bad_configuration,
               "{}: {} conflicts with {}, which makes a space of pictures; remove one of them",
               whole.find(other)->where, whole.key_of(other), whole.key_of("pictures"));
  const std::string path = whole.key_of("pictures");
  if (written->kind != Node::Kind::mapping) refuse(*written, path, "a section with groups, candidates");
  const Section pictures(*written, path, {"groups", "candidates"}, "a space of pictures");
  const Node& groups = pictures.at("groups", "blocks and width of each");
  const std::string key = pictures.key_of("groups");
  if (groups.kind != Node::Kind::list)
    refuse(groups, key, "a list of groups, like [{blocks: 8, width: 64}, {blocks: 8, width: 128}]");
  MP_REQUIRE(!groups.items.empty() && groups.items.size() <= most_groups, Exit::bad_configuration,
             "{}: {} lists {} groups (from 1 to {}; each halves the sides of a picture)", groups.where, key,
             groups.items.size(), most_groups);
  const Node& listed = pictures.at("candidates", "the layers that a block may be");
  std::vector<Candidate> all = read_candidates(listed, pictures.key_of("candidates"), repeat,
                                               WordUse::pictures),
                         first = all;
  for (Candidate& candidate : first) candidate.halves = true;
  for (std::size_t i = 0; i < groups.items.size(); ++i) {
    const PictureGroup group = read_group(groups.items[i], fmt::format("{}[{}]", key, i));
    MP_REQUIRE(static_cast<int>(space.pictures.size()) + group.blocks <= most_blocks, Exit::bad_configuration,
               "{}: {} have {} blocks together (at most {})", groups.where, key,
               static_cast<int>(space.pictures.size()) + group.blocks, most_blocks);
    space.groups.push_back(group);
    space.pictures.push_back(first);
    space.pictures.insert(space.pictures.end(), static_cast<std::size_t>(group.blocks) - 1, all);
  }
  return true;
}

std::string text_of_pictures(const std::string& name, int repeat) {
  return fmt::format(
      "{{name: {}, repeat: {}, pictures: {{groups: [{{blocks: 8, width: 64}}, {{blocks: 8, width: 128}}, "
      "{{blocks: 8, width: 256}}, {{blocks: 8, width: 512}}], candidates: [conv-3, conv-5, conv-7, conv-9, "
      "separable-3, separable-5, separable-7, dilated-3, dilated-5, max-3, average-3, identity]}}}}",
      name, repeat);
}

PicturePlace picture_place(const Space& space, int block) {
  PicturePlace place{space.groups.front().width, space.groups.front().width, true};
  for (std::size_t group = 0; group < space.groups.size(); ++group) {
    const auto [blocks, width] = space.groups[group];
    place.outputs = width;
    if (block < blocks) {
      if (block > 0) place = {width, width, false};
      return place;
    }
    block -= blocks;
    place.inputs = width;
  }
  fail(Exit::internal, "{} has no block {} blocks behind its last", space.name, block);
}

int shrinks_by(const Space& space) { return 1 << space.groups.size(); }

std::vector<Setting> picture_space_settings(SpaceSettings& m, Config& config) {
  std::vector<Setting> all;
  add_picture_settings(all, m, config);
  return all;
}

void check_picture_space(const SpaceSettings& m, const Config& config, const Complaints& complain) {
  check_pictures(m, complain);
  const int shrinks = shrinks_by(m.space);
  const std::string why =
      fmt::format("each of the {} groups of model.space, {}, halves it", m.space.groups.size(), m.space.name);
  check_extent("model.picture_height", m.picture_height, shrinks, why, complain);
  check_extent("model.picture_width", m.picture_width, shrinks, why, complain);
  complain.require(
      config.train.micro_batch > 1 || m.picture_height > shrinks || m.picture_width > shrinks,
      "train.micro_batch",
      "is 1 and pictures end as one pixel (batch norm needs more than one value of each channel)");
}

std::vector<Extent> pixels_of_space(const SpaceSettings& m) {
  const int shrinks = shrinks_by(m.space);
  return {{"the last group's pixels, of pictures whose sides each group of model.space halves,",
           (m.picture_height / shrinks) * (m.picture_width / shrinks)}};
}

}  // namespace mindpipe
