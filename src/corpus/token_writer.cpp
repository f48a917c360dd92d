#include "corpus/token_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/input_file.h"

namespace mindpipe {

namespace {
/// Returns the prefix; fails if a pair of that name is there already.
const std::string& unused_prefix(const std::string& prefix) {
  for (const char* ending : {".bin", ".idx"}) unused(prefix + ending);
  return prefix;
}

std::int64_t largest(TokenType type) {
  switch (type) {
    case TokenType::u8:
      return 255;
    case TokenType::u16:
      return 65535;
    case TokenType::i32:
      return std::numeric_limits<std::int32_t>::max();
    default:
      fail(Exit::internal, "token files are not written as {}", name_of(type));
  }
}
}  // namespace

const std::string& unused(const std::string& path) {
  MP_REQUIRE(!file_is_there(path), Exit::cannot_create,
             "{}: the file exists already (nothing is overwritten); remove it or choose another name", path);
  return path;
}

std::ofstream create_file(const std::string& path) {
  ::unlink(path.c_str());  // what an import left behind, or a pipe that nobody reads
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) {
    const int error = errno;
    MP_REQUIRE(error != EACCES && error != EPERM, Exit::permission,
               "{}: permission denied; choose a folder that you may write to", path);
    fail(Exit::cannot_create, "{}: the file cannot be created ({}); check that its folder exists", path,
         std::strerror(error));
  }
  return file;
}

TokenWriter::TokenWriter(const std::string& prefix, TokenType type, std::int64_t longest_sequence)
    : prefix_(unused_prefix(prefix)),
      type_(type),
      longest_sequence_(longest_sequence),
      unfinished_(prefix + ".bin.unfinished"),
      bin_(create_file(unfinished_.path())),
      lengths_(prefix + ".lengths.unfinished"),
      boundaries_(prefix + ".boundaries.unfinished") {
  largest(type);
  boundaries_.add(std::int64_t{0});
}

NumbersOnDisk::NumbersOnDisk(const std::string& path) : file_(path), out_(create_file(path)) {}

void NumbersOnDisk::write(const void* data, std::size_t bytes) {
  out_.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  MP_REQUIRE(out_.good(), Exit::io_error, "{}: writing failed ({}); check the space on the disk",
             file_.path(), std::strerror(errno));
}

void NumbersOnDisk::read(const std::function<void(std::span<const char>)>& use) {
  out_.flush();
  MP_REQUIRE(out_.good(), Exit::io_error, "{}: writing failed ({}); check the space on the disk",
             file_.path(), std::strerror(errno));
  std::ifstream in(file_.path(), std::ios::binary);
  std::vector<char> some(std::size_t{1} << 16);
  while (in.read(some.data(), static_cast<std::streamsize>(some.size())) || in.gcount() > 0)
    use(std::span(some).first(static_cast<std::size_t>(in.gcount())));
  MP_REQUIRE(in.eof() && !in.bad(), Exit::io_error, "{}: reading failed", file_.path());
}

void TokenWriter::write(std::ofstream& file, const std::string& path, const void* data,
                        std::size_t bytes) const {
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  MP_REQUIRE(file.good(), Exit::io_error, "{}: writing failed ({}); check the space on the disk", path,
             std::strerror(errno));
}

void TokenWriter::add(std::span<const std::int32_t> tokens) {
  const std::int64_t end = largest(type_) + 1;
  while (!tokens.empty()) {
    if (open_ == longest_sequence_) end_sequence();
    const auto part = tokens.first(static_cast<std::size_t>(
        std::min<std::int64_t>(longest_sequence_ - open_, static_cast<std::int64_t>(tokens.size()))));
    const auto size = static_cast<std::size_t>(bytes_of(type_));
    buffer_.resize(part.size() * size);
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] < 0 || part[i] >= end)  // a name for the sentence is made only where one is said
        check_token(prefix_ + ".bin", documents(), open_ + static_cast<std::int64_t>(i), part[i], end);
      std::memcpy(buffer_.data() + i * size, &part[i], size);  // little-endian: the low bytes come first
    }
    write(bin_, unfinished_.path(), buffer_.data(), buffer_.size());
    open_ += static_cast<std::int64_t>(part.size());
    tokens_ += static_cast<std::int64_t>(part.size());
    tokens = tokens.subspan(part.size());
  }
}

void TokenWriter::end_sequence() {
  lengths_.add(static_cast<std::int32_t>(open_));
  open_ = 0;
}

void TokenWriter::end_document() {
  if (open_ > 0) end_sequence();
  last_boundary_ = lengths_.count();
  boundaries_.add(last_boundary_);
}

void TokenWriter::finish() {
  MP_CHECK(open_ == 0 && last_boundary_ == lengths_.count(), "{}: finished inside a document", prefix_);
  UnfinishedFile unfinished_idx(prefix_ + ".idx.unfinished");
  const std::string& path = unfinished_idx.path();
  std::ofstream idx = create_file(path);
  const std::uint64_t version = 1;
  const std::int64_t sequences = lengths_.count(), boundaries = boundaries_.count();
  const auto type = static_cast<std::uint8_t>(type_);
  write(idx, path, TokenFile::magic, sizeof TokenFile::magic);
  write(idx, path, &version, 8);
  write(idx, path, &type, 1);
  write(idx, path, &sequences, 8);
  write(idx, path, &boundaries, 8);
  lengths_.read([&](std::span<const char> some) { write(idx, path, some.data(), some.size()); });
  std::int64_t offset = 0;
  std::vector<std::int64_t> offsets;
  lengths_.read([&](std::span<const char> some) {
    offsets.clear();
    for (std::size_t i = 0; i < some.size(); i += sizeof(std::int32_t)) {
      std::int32_t length = 0;
      std::memcpy(&length, some.data() + i, sizeof length);
      offsets.push_back(offset);
      offset += length * bytes_of(type_);
    }
    write(idx, path, offsets.data(), offsets.size() * sizeof offset);
  });
  boundaries_.read([&](std::span<const char> some) { write(idx, path, some.data(), some.size()); });
  idx.close();
  bin_.close();
  MP_REQUIRE(!idx.fail() && !bin_.fail(), Exit::io_error,
             "{}.bin: writing failed ({}); check the space on the disk", prefix_, std::strerror(errno));
  MP_REQUIRE(unfinished_.becomes(prefix_ + ".bin") && unfinished_idx.becomes(prefix_ + ".idx"),
             Exit::io_error, "{}.bin and .idx: renaming failed ({})", prefix_, std::strerror(errno));
}

}  // namespace mindpipe
