#pragma once
#include "config/models/pictures.h"
#include "layers/layer.h"
#include "models/model.h"

namespace mindpipe {

/// How the settings' pictures are cut into patches of `side`, and how numbers are made of their bytes.
PictureShape picture_of(const PictureSettings& m, int side);
/// Says that a model's samples are pictures with what each shows, and counts its speed in them.
void see_pictures(Model& model, const PictureSettings& m);

}  // namespace mindpipe
