#pragma once
#include "config/models/space.h"
#include "config/section.h"

namespace mindpipe {

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
