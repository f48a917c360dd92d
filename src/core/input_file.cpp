#include "core/input_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/text.h"

namespace mindpipe {
namespace {

std::string all_of(InputFile& file, std::int64_t largest, Exit code) {
  require_length(file.path(), file.size(), largest, code);
  // One byte more tells that the file has grown meanwhile.
  std::string text(static_cast<std::size_t>(file.size()) + 1, '\0');
  text.resize(file.read(text));
  return text;
}

}  // namespace

void require_no_hole(const std::string& path, std::int64_t hole, std::int64_t bytes) {
  MP_REQUIRE(hole == bytes, Exit::bad_data,
             "{}: has a hole: from byte {} of {} on nothing was ever written; is the copy whole? (cp "
             "--sparse=never writes zeros where zeros are meant)",
             path, hole, bytes);
}

void require_length(const std::string& path, std::int64_t bytes, std::int64_t largest, Exit code) {
  MP_REQUIRE(bytes <= largest, code, "{}: is {} long, and no such file is longer than {}; name another", path,
             human_bytes(static_cast<double>(bytes)), human_bytes(static_cast<double>(largest)));
}

void DescriptorTraits::release(int descriptor) noexcept { ::close(descriptor); }

bool file_is_there(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

OpenedFile open_ordinary(const std::string& path, int more_flags) {
  OpenedFile opened;
  opened.file = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | more_flags));
  struct stat status {};
  if (!opened.file || ::fstat(opened.file.get(), &status) != 0) opened.error = errno;
  else if (S_ISREG(status.st_mode)) opened.bytes = status.st_size;
  else opened.file = Descriptor();
  return opened;
}

void fail_to_open(const std::string& path, int error, Exit otherwise) {
  if (error == ENOENT || error == ENOTDIR)
    fail(Exit::input_missing, "{}: there is no such file; check the path", path);
  if (error == EACCES || error == EPERM)
    fail(Exit::permission, "{}: permission denied; check the rights of the file and its folders", path);
  fail(otherwise, "{}: {}", path, std::strerror(error));
}

InputFile::InputFile(const std::string& path, Exit no_file) : path_(path), opened_(open_ordinary(path)) {
  if (opened_.error != 0) fail_to_open(path, opened_.error, Exit::io_error);
  MP_REQUIRE(opened_.file, no_file, "{}: not an ordinary file; name the file itself", path);
}

std::int64_t InputFile::first_hole() const {
  const off_t hole = size() > 0 ? ::lseek(descriptor(), 0, SEEK_HOLE) : -1;
  if (hole > 0) ::lseek(descriptor(), 0, SEEK_SET);
  return hole < 0 ? size() : static_cast<std::int64_t>(hole);
}

std::size_t InputFile::read(std::span<char> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t got = ::read(descriptor(), to.data() + done, to.size() - done);
    if (got < 0 && errno == EINTR) continue;
    MP_REQUIRE(got >= 0, Exit::io_error, "{}: reading failed ({})", path_, std::strerror(errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::string read_text(const std::string& path, std::int64_t largest, Exit code) {
  InputFile file(path, code);
  return all_of(file, largest, code);
}

std::optional<std::string> read_text_if_there(const std::string& path, std::int64_t largest) {
  if (::access(path.c_str(), F_OK) != 0) return std::nullopt;
  return read_text(path, largest);
}

}  // namespace mindpipe
