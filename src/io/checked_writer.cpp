#include "io/checked_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/crc32c.h"
#include "io/manifest.h"

namespace mindpipe {

CheckedWriter::CheckedWriter(std::string path) : path_(std::move(path)) {
  file_ = File(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file_) fails("opening", errno);
  direct_ = File(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_DIRECT));
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

/// What one call takes of bytes that lie at an address: whole pages directly, what is before and behind them
/// through the cache.
CheckedWriter::Turn CheckedWriter::turn_of(std::int64_t offset, const std::byte* bytes,
                                           std::int64_t count) const {
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(bytes));
  const std::int64_t before = (file_page - offset % file_page) % file_page;
  if (!direct_ || (offset - address) % file_page != 0 || before + file_page > count) return {count, false};
  return before > 0 ? Turn{before, false} : Turn{count / file_page * file_page, true};
}

/// Whether a call that failed may go on: it was interrupted, or what it asked was too fine for the device.
bool CheckedWriter::goes_on(const Turn& turn) {
  if (errno == EINVAL && turn.direct) direct_ = File();
  else if (errno != EINTR) return false;
  return true;
}

void CheckedWriter::write(std::int64_t offset, const void* bytes, std::int64_t count) {
  if (!problem_.empty()) return;
  note(offset, bytes, count);
  const auto* next = static_cast<const std::byte*>(bytes);
  while (count > 0) {
    const Turn turn = turn_of(offset, next, count);
    const ssize_t written = ::pwrite(file_of(turn), next, static_cast<std::size_t>(turn.bytes), offset);
    if (written < 0 && goes_on(turn)) continue;
    if (written <= 0) return fails("writing", written < 0 ? errno : ENOSPC);
    // The device begins with what is in the cache before fsync.
    if (!turn.direct) ::sync_file_range(file_.get(), offset, written, SYNC_FILE_RANGE_WRITE);
    else wrote_directly_ = true;
    offset += written;
    next += written;
    count -= written;
  }
}

/// Calls use(bytes, count) for what the file holds there; false where that cannot be read.
template <class Use>
bool CheckedWriter::read(std::int64_t offset, std::int64_t count, Use use) {
  constexpr std::int64_t most = 1 << 20;
  if (!buffer_) buffer_.reset(static_cast<std::byte*>(std::aligned_alloc(file_page, most + file_page)));
  while (count > 0) {
    std::byte* const to = buffer_.get() + offset % file_page;
    Turn turn{std::min(count, most), false};
    if (wrote_directly_) turn = turn_of(offset, to, turn.bytes);
    const ssize_t got = ::pread(file_of(turn), to, static_cast<std::size_t>(turn.bytes), offset);
    if (got < 0 && goes_on(turn)) continue;
    if (got <= 0) {
      fails("reading", got < 0 ? errno : ENODATA);
      return false;
    }
    use(to, static_cast<std::size_t>(got));
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

std::vector<std::byte> bytes_of_pieces(const std::vector<WrittenPiece>& pieces) {
  std::vector<std::byte> bytes(pieces.size() * sizeof(WrittenPiece));
  if (!pieces.empty()) std::memcpy(bytes.data(), pieces.data(), bytes.size());
  return bytes;
}

std::vector<WrittenPiece> pieces_of(const std::vector<std::vector<std::byte>>& ranks) {
  std::vector<WrittenPiece> all;
  for (const std::vector<std::byte>& rank : ranks) {
    const std::size_t before = all.size();
    all.resize(before + rank.size() / sizeof(WrittenPiece));
    if (!rank.empty()) std::memcpy(all.data() + before, rank.data(), rank.size());
  }
  return all;
}

std::vector<std::uint32_t> block_crcs(std::vector<WrittenPiece> pieces, std::int64_t file_bytes,
                                      const std::string& what) {
  std::sort(pieces.begin(), pieces.end(),
            [](const WrittenPiece& a, const WrittenPiece& b) { return a.offset < b.offset; });
  std::vector<std::uint32_t> crcs;
  std::int64_t end = 0;
  for (const WrittenPiece& piece : pieces) {
    MP_CHECK(piece.offset == end, "byte {} of {} was written {}", std::min(end, piece.offset), what,
             piece.offset > end ? "by nobody" : "twice");
    if (piece.offset % Manifest::block == 0) crcs.push_back(piece.crc);
    else crcs.back() = joined_crc32c(crcs.back(), piece.crc, static_cast<std::uint64_t>(piece.bytes));
    end += piece.bytes;
  }
  MP_CHECK(end == file_bytes, "{} of the {} bytes of {} were written", end, file_bytes, what);
  return crcs;
}

}  // namespace mindpipe
