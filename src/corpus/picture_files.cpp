#include <algorithm>
#include <array>
#include <memory>

#include "core/check.h"
#include "corpus/byte_stream.h"
#include "corpus/pictures.h"

namespace mindpipe {
namespace {

constexpr std::int64_t most_unpacked = std::int64_t{1} << 30, most_of_cifar = 60'000;
constexpr std::size_t unpacked_piece = std::size_t{1} << 20;
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

/// All bytes that were packed in a file, which may be several packed ones in a row; at most `most` of them,
/// and no memory for more than there are.
std::vector<std::uint8_t> unpacked(const std::string& path, std::int64_t most) {
  constexpr std::int64_t of_a_byte = 1032;  // most that gzip makes of one
  const std::int64_t packed = InputFile(path).size();
  const std::unique_ptr<ByteStream> stream = open_bytes(path);
  std::vector<std::uint8_t> bytes;
  // Untouched memory is no memory yet, and a vector that grew would have its bytes twice.
  bytes.reserve(static_cast<std::size_t>(std::min(most, of_a_byte * packed)) + unpacked_piece);
  for (std::size_t got = unpacked_piece; got == unpacked_piece;) {
    const std::size_t before = bytes.size();
    bytes.resize(before + unpacked_piece);
    got = stream->read({reinterpret_cast<char*>(bytes.data()) + before, unpacked_piece});
    bytes.resize(before + got);
    MP_REQUIRE(std::ssize(bytes) <= most, Exit::bad_data,
               "{}: more than the {} bytes are packed in it that such a file has; is it whole?", path, most);
  }
  return bytes;
}

/// Bytes of the IDX file whose head begins a file, packed or not; of what has no such head, few.
std::int64_t bytes_of_idx(const std::string& path) {
  constexpr int most_extents = 4;
  constexpr std::int64_t of_no_idx = 64 << 10;
  std::array<char, 4 + 4 * most_extents> head{};
  const std::size_t got = open_bytes(path)->read(head);
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(head[i]); };
  const int extents = byte(3);
  if (got < 8 || byte(0) != 0 || byte(1) != 0 || byte(2) == 0 || extents > most_extents) return of_no_idx;
  std::int64_t bytes = byte(2) == 0xb ? 2 : byte(2) == 0xc ? 4 : 1;
  for (int i = 0; i < extents; ++i) {
    std::int64_t extent = 0;
    for (std::size_t j = 0; j < 4; ++j) extent = extent << 8 | byte(4 + 4 * static_cast<std::size_t>(i) + j);
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return of_no_idx;
  }
  return std::min(bytes, most_unpacked) + 4 + 4 * std::int64_t{extents};
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

FileBytes::FileBytes(const std::string& path, std::int64_t most) : path_(path) {
  if (path.ends_with(".gz")) {
    unpacked_ = unpacked(path, std::min(most, most_unpacked));
    data_ = unpacked_.data();
    size_ = static_cast<std::int64_t>(unpacked_.size());
  } else {
    file_.emplace(path);
    file_->require_written();
    data_ = reinterpret_cast<const std::uint8_t*>(file_->data());
    size_ = file_->size();
  }
}

bool IdxPictures::is_named_so(const std::string& path) { return extents_of(path) > 0; }

std::string IdxPictures::labels_of(const std::string& path) {
  std::string labels = path;
  return labels.replace(labels.rfind(of_pictures), of_pictures.size() + 1, of_labels);
}

IdxPictures::IdxPictures(const std::string& path)
    : pictures_(path, bytes_of_idx(path)),
      labels_(labels_of(path), bytes_of_idx(labels_of(path))),
      label_bytes_(label_bytes_of(labels_)) {
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

CifarPictures::CifarPictures(const std::string& path, int labels)
    : file_(path, most_of_cifar * (labels + size().bytes())), labels_(labels) {
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
