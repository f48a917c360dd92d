#include <dirent.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

// Preloaded into a program: notes its calls on some files, and lets some of them fail.
//   FILE_FAULTS_ON    what the path of such a file contains (checkpoints/)
//   FILE_FAULTS_LOG   a file: each call that changes something there appends "RANK CALL PATH"
//   FILE_FAULTS_BYTES set: to pwrite's line "OFFSET COUNT" of what was written
//   FILE_FAULTS       CALLS:WHAT:FIRST:COUNT, of the calls in the list (pwrite,fsync; direct: writes past
//                     the cache; any: all that change something) the FIRST-th and the COUNT - 1 behind it
//                     meet WHAT: kill, short (half the bytes), flip (a bit of what is written), sleep (20
//                     ms), or an error by its number
//   FILE_FAULTS_RANK  the rank that meets them; left out: every one
namespace {

constexpr int passes = 0, shortens = -1, flips = -2, kills = -3, sleeps = -4;

struct Plan {
  Plan() {
    if (const char* text = std::getenv("FILE_FAULTS_ON")) on = text;
    if (const char* text = std::getenv("FILE_FAULTS_LOG")) log = text;
    says_bytes = std::getenv("FILE_FAULTS_BYTES") != nullptr;
    if (const char* text = std::getenv("OMPI_COMM_WORLD_RANK")) rank = std::atoi(text);
    const char* const only = std::getenv("FILE_FAULTS_RANK");
    const char* const text = std::getenv("FILE_FAULTS");
    if (text == nullptr || (only != nullptr && std::atoi(only) != rank)) return;
    char word[16] = "", list[256] = "";
    if (std::sscanf(text, "%255[^:]:%15[^:]:%ld:%ld", list, word, &first, &count) != 4) std::abort();
    calls = "," + std::string(list) + ",";
    const std::string named = word;
    what = named == "kill"    ? kills
           : named == "short" ? shortens
           : named == "flip"  ? flips
           : named == "sleep" ? sleeps
                              : std::atoi(word);
  }
  bool concerns(const char* call, bool changes) const {
    return (changes && calls == ",any,") || calls.find("," + std::string(call) + ",") != std::string::npos;
  }

  std::string on = "checkpoints/", log, calls;
  int rank = 0, what = passes;
  bool says_bytes = false;
  long first = 0, count = 0;
};

const Plan& plan() {
  static const Plan plan;
  return plan;
}

void note(const char* call, const char* path) {
  const std::string line = std::to_string(plan().rank) + " " + call + " " + path + "\n";
  const int file = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, plan().log.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  syscall(SYS_write, file, line.data(), line.size());
  syscall(SYS_close, file);
}

/// What becomes of a call: passes, shortens, flips, or the number of an error. `also`: another name for it;
/// `bytes`: what its line says of them.
int fate(const char* call, const std::string& path, bool changes = true, const char* also = "",
         const std::string& bytes = "") {
  static std::atomic<long> calls{0};
  const int before = errno;
  if ((path + "/").find(plan().on) == std::string::npos) return passes;
  if (changes && !plan().log.empty()) note(call, (path + bytes).c_str());
  errno = before;
  if (plan().what == passes || !(plan().concerns(call, changes) || plan().concerns(also, false)))
    return passes;
  const long number = ++calls;
  if (number < plan().first || number >= plan().first + plan().count) return passes;
  if (plan().what == kills) kill(getpid(), SIGKILL);
  if (plan().what == sleeps) usleep(20000);
  return plan().what == sleeps ? passes : plan().what;
}

std::string path_of(int file) {
  char path[PATH_MAX];
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

std::string path_at(int directory, const char* path) {
  return path[0] == '/' || directory == AT_FDCWD ? path : path_of(directory) + "/" + path;
}

int refuse(int error) {
  errno = error;
  return -1;
}

int opened(int directory, const char* path, int flags, mode_t mode) {
  const bool changes = (flags & (O_CREAT | O_TRUNC)) != 0;
  const int error = fate("open", path_at(directory, path), changes);
  return error > 0 ? refuse(error) : static_cast<int>(syscall(SYS_openat, directory, path, flags, mode));
}

ssize_t written(const char* call, long number, int file, const void* bytes, std::size_t count, off_t offset) {
  const bool direct = (fcntl(file, F_GETFL) & O_DIRECT) != 0;
  std::string place;
  if (plan().says_bytes && number == SYS_pwrite64)
    place = " " + std::to_string(offset) + " " + std::to_string(count);
  const int what = fate(call, path_of(file), true, direct ? "direct" : "", place);
  if (what > 0) return refuse(what);
  if (what == shortens && count > 1) count /= 2;
  if (what != flips || count == 0) return syscall(number, file, bytes, count, offset);
  std::string other(static_cast<const char*>(bytes), count);
  other[count / 2] ^= 4;
  return syscall(number, file, other.data(), count, offset);
}

ssize_t got(int file, void* bytes, std::size_t count, off_t offset) {
  const int what = fate("pread", path_of(file), false);
  if (what > 0) return refuse(what);
  return syscall(SYS_pread64, file, bytes, what == shortens && count > 1 ? count / 2 : count, offset);
}

mode_t mode_in(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return opened(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return opened(AT_FDCWD, path, flags, mode);
}

ssize_t pwrite(int file, const void* bytes, std::size_t count, off_t offset) {
  return written("pwrite", SYS_pwrite64, file, bytes, count, offset);
}
ssize_t pwrite64(int file, const void* bytes, std::size_t count, off64_t offset) {
  return written("pwrite", SYS_pwrite64, file, bytes, count, offset);
}
ssize_t write(int file, const void* bytes, std::size_t count) {
  return written("write", SYS_write, file, bytes, count, 0);
}
ssize_t pread(int file, void* bytes, std::size_t count, off_t offset) {
  return got(file, bytes, count, offset);
}
ssize_t pread64(int file, void* bytes, std::size_t count, off64_t offset) {
  return got(file, bytes, count, offset);
}

int fsync(int file) {
  const int error = fate("fsync", path_of(file));
  return error > 0 ? refuse(error) : static_cast<int>(syscall(SYS_fsync, file));
}
int ftruncate(int file, off_t length) noexcept {
  const int error = fate("ftruncate", path_of(file));
  return error > 0 ? refuse(error) : static_cast<int>(syscall(SYS_ftruncate, file, length));
}
int ftruncate64(int file, off64_t length) noexcept { return ftruncate(file, length); }
int fallocate(int file, int mode, off_t offset, off_t length) {
  const int error = fate("fallocate", path_of(file));
  return error > 0 ? refuse(error) : static_cast<int>(syscall(SYS_fallocate, file, mode, offset, length));
}
int fallocate64(int file, int mode, off64_t offset, off64_t length) {
  return fallocate(file, mode, offset, length);
}

int mkdir(const char* path, mode_t mode) noexcept {
  const int error = fate("mkdir", path);
  return error > 0 ? refuse(error) : static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
int rename(const char* from, const char* to) noexcept {
  const int error = fate("rename", from + std::string(" ") + to);
  return error > 0 ? refuse(error)
                   : static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int symlink(const char* to, const char* path) noexcept {
  const int error = fate("symlink", path);
  return error > 0 ? refuse(error) : static_cast<int>(syscall(SYS_symlinkat, to, AT_FDCWD, path));
}
int unlinkat(int directory, const char* path, int flags) noexcept {
  const int error = fate("unlink", path_at(directory, path));
  return error > 0 ? refuse(error) : static_cast<int>(syscall(SYS_unlinkat, directory, path, flags));
}
int unlink(const char* path) noexcept { return unlinkat(AT_FDCWD, path, 0); }
}
