#include <zlib.h>

#include <algorithm>
#include <memory>

#include "core/check.h"
#include "corpus/pictures.h"

namespace mindpipe {
namespace {

constexpr std::size_t most_unpacked = std::size_t{1} << 30;
constexpr std::int64_t most_side = 1 << 14;
constexpr std::string_view of_pictures = "images-idx", of_labels = "labels-idx1";

/// Extents of what a file of pictures holds: "images-idx3" has pictures, rows, pixels; "images-idx4"
/// pictures, channels, rows, pixels.
int extents_of(const std::string& path) {
  const std::size_t name = path.rfind(of_pictures);
  if (name == std::string::npos || name + of_pictures.size() == path.size()) return 0;
  const char digit = path[name + of_pictures.size()];
  return digit == '3' || digit == '4' ? digit - '0' : 0;
}

std::string labels_of(const std::string& path) {
  std::string labels = path;
  return labels.replace(labels.rfind(of_pictures), of_pictures.size() + 1, of_labels);
}

/// All bytes that were packed in a file, which may be several packed ones in a row.
std::vector<std::uint8_t> unpacked(const std::string& path) {
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  const std::unique_ptr<gzFile_s, Close> file(gzopen(path.c_str(), "rb"));
  if (!file) fail_to_open(path, errno, Exit::io_error);
  std::vector<std::uint8_t> bytes;
  for (int got = 1; got > 0;) {
    const std::size_t before = bytes.size();
    bytes.resize(before + (std::size_t{1} << 20));
    got = gzread(file.get(), bytes.data() + before, 1 << 20);
    bytes.resize(before + static_cast<std::size_t>(std::max(0, got)));
    MP_REQUIRE(bytes.size() <= most_unpacked, Exit::bad_data,
               "{}: more than {} bytes are packed in it; unpack it, and name the plain file", path,
               most_unpacked);
  }
  int problem = Z_OK;
  const char* const why = gzerror(file.get(), &problem);
  MP_REQUIRE(problem == Z_OK || problem == Z_STREAM_END, Exit::bad_data,
             "{}: cannot be unpacked after {} bytes ({}); is it whole?", path, bytes.size(), why);
  return bytes;
}

/// The number at an offset of a file, most significant byte first.
std::int64_t number_at(const FileBytes& file, std::int64_t offset, std::int64_t bytes = 4) {
  MP_REQUIRE(file.size() >= offset + bytes, Exit::bad_data, "{}: ends after {} bytes, within its head",
             file.path(), file.size());
  std::int64_t number = 0;
  for (std::int64_t i = 0; i < bytes; ++i) number = number << 8 | file.data()[offset + i];
  return number;
}

/// Refuses a file that is not `magic` or not as long as its head says; gives the number of its items.
std::int64_t checked_count(const FileBytes& file, std::int64_t magic, std::int64_t head, std::int64_t item) {
  MP_REQUIRE(number_at(file, 0) == magic, Exit::bad_data,
             "{}: begins with {:#010x}, and an IDX file of {} with {:#010x}", file.path(), number_at(file, 0),
             head == 8 ? "labels" : "pictures", magic);
  const std::int64_t count = number_at(file, 4);
  MP_REQUIRE(count > 0 && item > 0 && file.size() - head == count * item, Exit::bad_data,
             "{}: has {} bytes, and its head promises {} items of {} behind {} (is it whole?)", file.path(),
             file.size(), count, item, head);
  return count;
}

/// Bytes of a label of an IDX file, as the third byte of its head says: shorts, ints, or bytes.
std::int64_t label_bytes_of(const FileBytes& file) {
  const std::int64_t magic = number_at(file, 0);
  return magic == 0xb01 ? 2 : magic == 0xc01 ? 4 : 1;
}

std::int32_t checked_label(const FileBytes& file, std::int64_t offset, std::int64_t bytes,
                           std::int64_t classes) {
  const std::int64_t label = number_at(file, offset, bytes);
  MP_REQUIRE(label < classes, Exit::bad_data,
             "{}: the label at byte {} is {}, and the model has {} classes (0 to {})", file.path(), offset,
             label, classes, classes - 1);
  return static_cast<std::int32_t>(label);
}

}  // namespace

FileBytes::FileBytes(const std::string& path) : path_(path) {
  if (path.ends_with(".gz")) {
    unpacked_ = unpacked(path);
    data_ = unpacked_.data();
    size_ = static_cast<std::int64_t>(unpacked_.size());
  } else {
    file_.emplace(path);
    data_ = reinterpret_cast<const std::uint8_t*>(file_->data());
    size_ = file_->size();
  }
}

bool IdxPictures::is_named_so(const std::string& path) { return extents_of(path) > 0; }

IdxPictures::IdxPictures(const std::string& path)
    : pictures_(path), labels_(labels_of(path)), label_bytes_(label_bytes_of(labels_)) {
  const int extents = extents_of(path);
  head_ = 4 + 4 * extents;
  const auto extent = [&](int from_the_last) { return number_at(pictures_, head_ - 4 * from_the_last); };
  size_ = {extents == 4 ? extent(3) : 1, extent(2), extent(1)};
  for (const std::int64_t number : {size_.channels, size_.height, size_.width})
    MP_REQUIRE(number > 0 && number <= most_side, Exit::bad_data,
               "{}: its head says {} channels of {} x {} pixels (is it whole?)", pictures_.path(),
               size_.channels, size_.height, size_.width);
  count_ = checked_count(pictures_, 0x800 + extents, head_, size_.bytes());
  const std::int64_t magic = label_bytes_ == 1   ? 0x801
                             : label_bytes_ == 2 ? 0xb01
                                                 : 0xc01,
                     labels = checked_count(labels_, magic, 8, label_bytes_);
  MP_REQUIRE(labels == count_, Exit::bad_data, "{}: has {} pictures, and {} {} labels", pictures_.path(),
             count_, labels_.path(), labels);
}

void IdxPictures::read(std::int64_t index, std::uint8_t* pixels) const {
  std::copy_n(pictures_.data() + head_ + index * size_.bytes(), size_.bytes(), pixels);
}

std::int32_t IdxPictures::label(std::int64_t index, std::int64_t classes) const {
  return checked_label(labels_, 8 + index * label_bytes_, label_bytes_, classes);
}

CifarPictures::CifarPictures(const std::string& path, int labels) : file_(path), labels_(labels) {
  MP_REQUIRE(file_.size() > 0 && file_.size() % record() == 0, Exit::bad_data,
             "{}: has {} bytes, which are no whole records of {} (is it whole, and CIFAR-{}?)", path,
             file_.size(), record(), labels == 1 ? 10 : 100);
}

void CifarPictures::read(std::int64_t index, std::uint8_t* pixels) const {
  std::copy_n(file_.data() + index * record() + labels_, size().bytes(), pixels);
}

std::int32_t CifarPictures::label(std::int64_t index, std::int64_t classes) const {
  const std::int64_t own = labels_ == 1 ? 10 : 100;
  MP_REQUIRE(classes == own, Exit::bad_configuration,
             "model.classes is {} ({} is named as a file of CIFAR-{}); set it to {}", classes, file_.path(),
             own, own);
  return checked_label(file_, index * record() + labels_ - 1, 1, classes);
}

}  // namespace mindpipe
