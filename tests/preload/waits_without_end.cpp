#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>

namespace {

int opened(const char* path, int flags, mode_t mode) {
  const char* const awaited = std::getenv("WAITS_FOR");
  while (awaited != nullptr && std::strcmp(path, awaited) == 0) pause();
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

mode_t mode_among(int flags, va_list more) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
}

}  // namespace

// Preloaded into a program: whoever opens the file that WAITS_FOR names waits without end.
extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_among(flags, more);
  va_end(more);
  return opened(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_among(flags, more);
  va_end(more);
  return opened(path, flags | O_LARGEFILE, mode);
}
}
