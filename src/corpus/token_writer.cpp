#include "corpus/token_writer.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

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
  MP_REQUIRE(!std::filesystem::exists(path), Exit::cannot_create,
             "{}: the file exists already (nothing is overwritten); remove it or choose another name", path);
  return path;
}

std::ofstream create_file(const std::string& path) {
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
      bin_(create_file(unfinished_.path())) {
  largest(type);
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
  lengths_.push_back(static_cast<std::int32_t>(open_));
  open_ = 0;
}

void TokenWriter::end_document() {
  if (open_ > 0) end_sequence();
  boundaries_.push_back(static_cast<std::int64_t>(lengths_.size()));
}

void TokenWriter::finish() {
  MP_CHECK(open_ == 0 && boundaries_.back() == static_cast<std::int64_t>(lengths_.size()),
           "{}: finished inside a document", prefix_);
  UnfinishedFile unfinished_idx(prefix_ + ".idx.unfinished");
  const std::string& path = unfinished_idx.path();
  std::ofstream idx = create_file(path);
  const std::uint64_t version = 1, sequences = lengths_.size(), boundaries = boundaries_.size();
  const auto type = static_cast<std::uint8_t>(type_);
  write(idx, path, TokenFile::magic, sizeof TokenFile::magic);
  write(idx, path, &version, 8);
  write(idx, path, &type, 1);
  write(idx, path, &sequences, 8);
  write(idx, path, &boundaries, 8);
  write(idx, path, lengths_.data(), lengths_.size() * 4);
  std::int64_t offset = 0;
  for (const std::int32_t length : lengths_) {
    write(idx, path, &offset, 8);
    offset += length * bytes_of(type_);
  }
  write(idx, path, boundaries_.data(), boundaries_.size() * 8);
  idx.close();
  bin_.close();
  MP_REQUIRE(!idx.fail() && !bin_.fail(), Exit::io_error,
             "{}.bin: writing failed ({}); check the space on the disk", prefix_, std::strerror(errno));
  MP_REQUIRE(unfinished_.becomes(prefix_ + ".bin") && unfinished_idx.becomes(prefix_ + ".idx"),
             Exit::io_error, "{}.bin and .idx: renaming failed ({})", prefix_, std::strerror(errno));
}

}  // namespace mindpipe
