#include "io/checked_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "io/crc32c.h"
#include "io/manifest.h"

namespace mindpipe {

CheckedWriter::CheckedWriter(std::string path) : path_(std::move(path)) {
  file_ = File(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file_) fails("opening", errno);
}

void CheckedWriter::fails(const char* what, int error) {
  if (!problem_.empty()) return;
  problem_ = fmt::format("{}: {} failed: {}", path_, what,
                         error != 0 ? std::strerror(error) : "other bytes came back");
}

void CheckedWriter::note(std::int64_t offset, const void* bytes, std::int64_t count) {
  const auto* next = static_cast<const std::byte*>(bytes);
  while (count > 0) {
    const std::int64_t now = std::min(count, Manifest::block - offset % Manifest::block);
    pieces_.push_back({offset, now, crc32c(next, static_cast<std::size_t>(now))});
    offset += now;
    next += now;
    count -= now;
  }
}

void CheckedWriter::write(std::int64_t offset, const void* bytes, std::int64_t count) {
  if (!problem_.empty()) return;
  note(offset, bytes, count);
  const auto* next = static_cast<const std::byte*>(bytes);
  const std::int64_t begin = offset, all = count;
  while (count > 0) {
    const ssize_t written = ::pwrite(file_.get(), next, static_cast<std::size_t>(count), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fails("writing", written < 0 ? errno : ENOSPC);
    offset += written;
    next += written;
    count -= written;
  }
  ::sync_file_range(file_.get(), begin, all, SYNC_FILE_RANGE_WRITE);  // the device begins before fsync
}

/// Calls use(bytes, count) for what the file holds there; false where that cannot be read.
template <class Use>
bool CheckedWriter::read(std::int64_t offset, std::int64_t count, Use use) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min<std::int64_t>(count, 1 << 20)));
  while (count > 0) {
    const auto most = static_cast<std::size_t>(std::min<std::int64_t>(count, 1 << 20));
    const ssize_t got = ::pread(file_.get(), buffer.data(), most, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      fails("reading", got < 0 ? errno : ENODATA);
      return false;
    }
    use(buffer.data(), static_cast<std::size_t>(got));
    offset += got;
    count -= got;
  }
  return true;
}

void CheckedWriter::note_as_it_is(std::int64_t offset, std::int64_t count) {
  while (count > 0 && problem_.empty()) {
    WrittenPiece piece{offset, std::min(count, Manifest::block - offset % Manifest::block)};
    read(offset, piece.bytes,
         [&](const std::byte* bytes, std::size_t size) { piece.crc = crc32c(bytes, size, piece.crc); });
    pieces_.push_back(piece);
    offset += piece.bytes;
    count -= piece.bytes;
  }
}

void CheckedWriter::finish() {
  if (!problem_.empty()) return;
  if (!reaches_device(file_)) return fails("writing it out (fsync)", errno);
  read_back();
}

void CheckedWriter::read_back() {
  for (const WrittenPiece& piece : pieces_) {
    std::uint32_t crc = 0;
    const auto add = [&](const std::byte* bytes, std::size_t size) { crc = crc32c(bytes, size, crc); };
    if (!read(piece.offset, piece.bytes, add)) return;
    if (crc != piece.crc) return fails("reading back", 0);
  }
}

std::vector<std::uint32_t> block_crcs(std::vector<WrittenPiece> pieces, std::int64_t file_bytes) {
  std::sort(pieces.begin(), pieces.end(),
            [](const WrittenPiece& a, const WrittenPiece& b) { return a.offset < b.offset; });
  std::vector<std::uint32_t> crcs;
  std::int64_t end = 0;
  for (const WrittenPiece& piece : pieces) {
    MP_CHECK(piece.offset == end, "byte {} of a checkpoint was written {}", std::min(end, piece.offset),
             piece.offset > end ? "by nobody" : "twice");
    if (piece.offset % Manifest::block == 0) crcs.push_back(piece.crc);
    else crcs.back() = joined_crc32c(crcs.back(), piece.crc, static_cast<std::uint64_t>(piece.bytes));
    end += piece.bytes;
  }
  MP_CHECK(end == file_bytes, "{} of the {} bytes of a checkpoint were written", end, file_bytes);
  return crcs;
}

}  // namespace mindpipe
