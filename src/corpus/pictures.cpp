#include "corpus/pictures.h"

#include <algorithm>

#include "config/sections/data.h"
#include "core/check.h"
#include "core/random.h"

namespace mindpipe {

PictureDataset::PictureDataset(std::unique_ptr<Pictures> pictures, const DataConfig& data,
                               std::int64_t classes, std::uint64_t seed, Subset subset)
    : pictures_(std::move(pictures)),
      size_(pictures_->size()),
      classes_(classes),
      seed_(seed),
      flips_(data.flip && subset == Subset::train),
      crop_(subset == Subset::train ? data.crop : 0),
      rounds_(pictures_->count(), subset == Subset::train ? std::optional(seed) : std::nullopt),
      original_(size_.bytes()) {
  for (std::int64_t i = 0; i < std::max<std::int64_t>(1, pictures_->count()); ++i)
    pictures_->label(i, classes);  // refused now, not in hours
}

void PictureDataset::sample(std::int64_t index, const FieldTensors& to) {
  const std::int64_t picture = rounds_.count() == 0 ? index : rounds_.at(index);
  const Tensor pixels = to.find(field::picture), targets = to.find(field::targets);
  if (targets) *targets.as<std::int32_t>() = pictures_->label(picture, classes_);
  if (!pixels) return;
  pictures_->read(picture, pixels.as<std::uint8_t>());
  if (flips_ || crop_ > 0) change(index, pixels.as<std::uint8_t>());
}

/// Mirrors and moves a picture.
void PictureDataset::change(std::int64_t index, std::uint8_t* pixels) {
  const RandomStream stream{seed_, purpose_of("corpus.pictures"), static_cast<std::uint32_t>(index >> 32),
                            static_cast<std::uint32_t>(index)};
  const auto words = stream.words(0);
  const auto moved = [&](int word) {
    return static_cast<std::int64_t>(words[word] * (2 * static_cast<std::uint64_t>(crop_) + 1) >> 32) - crop_;
  };
  const bool mirrored = flips_ && (words[0] & 1) != 0;
  const std::int64_t down = moved(1), right = moved(2);
  std::copy_n(pixels, size_.bytes(), original_.data());
  for (std::int64_t c = 0; c < size_.channels; ++c)
    for (std::int64_t y = 0; y < size_.height; ++y)
      for (std::int64_t x = 0; x < size_.width; ++x) {
        const std::int64_t from_y = y + down, across = x + right;
        const std::int64_t from_x = mirrored ? size_.width - 1 - across : across;
        const bool inside = from_y >= 0 && from_y < size_.height && from_x >= 0 && from_x < size_.width;
        *pixels++ = inside ? original_[(c * size_.height + from_y) * size_.width + from_x] : 0;
      }
}

std::string PictureDataset::describe() const {
  return fmt::format("{}: {} pictures of {} x {} x {}{}{}", pictures_->name(),
                     rounds_.count() == 0 ? "any number of" : std::to_string(rounds_.count()), size_.channels,
                     size_.height, size_.width, flips_ ? ", mirrored at random" : "",
                     crop_ > 0 ? fmt::format(", moved by up to {} pixels", crop_) : "");
}

}  // namespace mindpipe
