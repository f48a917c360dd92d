#include "io/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/check.h"

namespace mindpipe {
namespace {

[[noreturn]] void cannot_write(const std::string& path, int error) {
  fail(Exit::io_error,
       "{}: writing failed: {}; nothing was left under this name, make room or choose another place", path,
       std::strerror(error));
}

void flush(const File& file, const std::string& path) {
  if (!reaches_device(file)) cannot_write(path, errno);
}

}  // namespace

bool reaches_device(const File& file) {
  int result;
  do result = ::fsync(file.get());
  while (result != 0 && errno == EINTR);
  return result == 0;
}

bool names_reach_device(const std::string& directory) {
  const File names(::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return names && (reaches_device(names) || errno == EINVAL);
}

NewFile::NewFile(const std::string& path)
    : path_(path), temporary_(fmt::format("{}.{}.partial", path, ::getpid())) {
  const auto created = [&] {
    return ::open(temporary_.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  };
  file_ = File(created());
  if (!file_ && errno == EEXIST) {  // what a process of this number left behind, or a pipe
    ::unlink(temporary_.path().c_str());
    file_ = File(created());
  }
  if (!file_) {
    const int error = errno;
    const Exit code = error == EACCES || error == EPERM || error == EROFS ? Exit::permission
                      : error == ENOSPC || error == EDQUOT                ? Exit::io_error
                                                                          : Exit::cannot_create;
    fail(code, "{}: cannot be created: {}; the directory must exist and be writable", path,
         std::strerror(error));
  }
}

void NewFile::write(const void* bytes, std::size_t count) {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::write(file_.get(), next, std::min<std::size_t>(count, std::size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write(path_, errno);
    next += written;
    count -= static_cast<std::size_t>(written);
  }
}

void NewFile::extend(std::int64_t bytes) {
  // Room is taken now, so that a full disk is told before anything is written; not every file system can.
  if (::fallocate(file_.get(), 0, 0, bytes) != 0 && errno != EOPNOTSUPP && errno != EINTR)
    cannot_write(path_, errno);
  if (::ftruncate(file_.get(), bytes) != 0) cannot_write(path_, errno);
}

void NewFile::appear() {
  if (!temporary_.becomes(path_)) cannot_write(path_, errno);
}

void NewFile::trade_places() {
  if (::renameat2(AT_FDCWD, temporary_.path().c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) != 0)
    appear();
}

void NewFile::commit() {
  flush(file_, path_);
  appear();
  names_reach_device(std::filesystem::path(path_).parent_path());  // the file itself is safe by now
}

void replace_file(const std::string& path, const std::string& text) {
  NewFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace mindpipe
