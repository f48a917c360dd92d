#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "corpus/dataset.h"
#include "corpus/rounds.h"
#include "corpus/text_file.h"

namespace mindpipe {

struct DataConfig;

struct PictureSize {
  std::int64_t channels = 0, height = 0, width = 0;
  std::int64_t bytes() const { return channels * height * width; }
};

/// Pictures with a label each; a byte a channel and pixel, channel by channel, row by row.
class Pictures {
 public:
  virtual ~Pictures() = default;
  /// How many there are; 0: they have no end.
  virtual std::int64_t count() const = 0;
  virtual PictureSize size() const = 0;
  virtual void read(std::int64_t index, std::uint8_t* pixels) const = 0;
  /// What picture `index` shows; refused where it is not below `classes`.
  virtual std::int32_t label(std::int64_t index, std::int64_t classes) const = 0;
  virtual std::string name() const = 0;
};

/// Samples of pictures. In training they may be mirrored and moved, as Philox says for each sample; what
/// comes in from beyond the edge is black.
class PictureDataset final : public Dataset {
 public:
  PictureDataset(std::unique_ptr<Pictures> pictures, const DataConfig& data, std::int64_t classes,
                 std::uint64_t seed, Subset subset);
  std::vector<std::string_view> gives() const override { return {field::picture, field::targets}; }
  std::int64_t count() const override { return rounds_.count(); }
  void sample(std::int64_t index, const FieldTensors& to) override;
  std::string describe() const override;

 private:
  void change(std::int64_t index, std::uint8_t* pixels);

  std::unique_ptr<Pictures> pictures_;
  PictureSize size_;
  std::int64_t classes_;
  std::uint64_t seed_;
  bool flips_;
  int crop_;
  Rounds rounds_;
  std::vector<std::uint8_t> original_;
};

/// Circles, squares, triangles, crosses, rings and bars on 32 x 32 pixels; moved, turned, of any size and
/// colour, and noisy. Picture `index` shows shape index modulo six.
class Shapes final : public Pictures {
 public:
  Shapes(std::uint64_t seed, Subset subset, std::int64_t channels);
  std::int64_t count() const override { return 0; }
  PictureSize size() const override { return {channels_, 32, 32}; }
  void read(std::int64_t index, std::uint8_t* pixels) const override;
  std::int32_t label(std::int64_t index, std::int64_t classes) const override;
  std::string name() const override { return fmt::format("synthetic:shapes ({})", name_of(subset_)); }
  static constexpr int shapes = 6;

 private:
  std::uint64_t seed_;
  Subset subset_;
  std::int64_t channels_;
};

/// Bytes of a file, or where its name ends in .gz of what was packed in it.
class FileBytes {
 public:
  /// `most`: what may be packed in it.
  FileBytes(const std::string& path, std::int64_t most);
  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }
  const std::uint8_t* data() const { return data_; }

 private:
  std::string path_;
  std::optional<MappedFile> file_;
  std::vector<std::uint8_t> unpacked_;
  const std::uint8_t* data_ = nullptr;
  std::int64_t size_ = 0;
};

/// Pictures of MNIST's format: a file of pictures and one of labels, whose name has "labels-idx1" where the
/// other's has "images-idx3", or "images-idx4" where pictures have several channels. A label takes one, two
/// or four bytes, as its file's head says.
class IdxPictures final : public Pictures {
 public:
  explicit IdxPictures(const std::string& path);
  std::int64_t count() const override { return count_; }
  PictureSize size() const override { return size_; }
  void read(std::int64_t index, std::uint8_t* pixels) const override;
  std::int32_t label(std::int64_t index, std::int64_t classes) const override;
  std::string name() const override { return pictures_.path(); }
  /// Whether a path is of this format, by its name.
  static bool is_named_so(const std::string& path);
  /// The file of the labels beside it.
  static std::string labels_of(const std::string& path);

 private:
  FileBytes pictures_, labels_;
  std::int64_t label_bytes_;
  std::int64_t head_ = 0, count_ = 0;  ///< bytes before the first picture
  PictureSize size_;
};

/// Pictures of CIFAR's binary files: a record is a label (of CIFAR-100 two, of which the second, finer one
/// counts) and 3 x 32 x 32 bytes.
class CifarPictures final : public Pictures {
 public:
  CifarPictures(const std::string& path, int labels);
  std::int64_t count() const override { return file_.size() / record(); }
  PictureSize size() const override { return {3, 32, 32}; }
  void read(std::int64_t index, std::uint8_t* pixels) const override;
  std::int32_t label(std::int64_t index, std::int64_t classes) const override;
  std::string name() const override { return file_.path(); }

 private:
  std::int64_t record() const { return labels_ + size().bytes(); }
  FileBytes file_;
  int labels_;
};

}  // namespace mindpipe
