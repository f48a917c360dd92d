#pragma once
#include "config/models/space.h"
#include "config/section.h"

namespace mindpipe {

constexpr int most_blocks = 4096;  ///< of an encoder, a decoder, or a space of pictures

/// A whole number of a description of a space.
int read_number(const Node& node, const std::string& key, int least, int most,
                const std::string& or_else = "");
/// A list of candidates, each of them `repeat` times.
std::vector<Candidate> read_candidates(const Node& node, const std::string& key, int repeat,
                                       bool of_pictures);

/// Reads the section `pictures` of a space's description; false where it has none.
bool read_pictures(const Section& whole, int repeat, Space& space);
/// The description of cv.c3 and its kin.
std::string text_of_pictures(const std::string& name, int repeat);

/// What a block of a space of pictures leads from and to.
struct PicturePlace {
  int inputs = 0, outputs = 0;  ///< channels
  bool halves = false;
};
PicturePlace picture_place(const Space& space, int block);
/// How many times smaller the sides of a picture are at the end.
int shrinks_by(const Space& space);

std::vector<Setting> picture_space_settings(SpaceSettings& m, Config& config);
/// Refuses pictures that the groups cannot halve, or whose batch norms have one value.
void check_picture_space(const SpaceSettings& m, const Config& config, const Complaints& complain);
std::vector<Extent> pixels_of_space(const SpaceSettings& m);

}  // namespace mindpipe
