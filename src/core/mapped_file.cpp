#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace mindpipe {

namespace {
struct Descriptor {
  using Raw = int;
  static int none() { return -1; }
  static void release(int descriptor) noexcept { ::close(descriptor); }
};
}  // namespace

void fail_to_open(const std::string& path, int error, Exit otherwise) {
  if (error == ENOENT || error == ENOTDIR)
    fail(Exit::input_missing, "{}: there is no such file; check the path", path);
  if (error == EACCES || error == EPERM)
    fail(Exit::permission, "{}: permission denied; check the rights of the file and its folders", path);
  fail(otherwise, "{}: {}", path, std::strerror(error));
}

void MappedFile::Traits::release(Mapping mapping) noexcept { ::munmap(mapping.address, mapping.bytes); }

void MappedFile::forget(std::size_t first, std::size_t count) const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = (first + page - 1) / page * page, end = (first + count) / page * page;
  // Where the system does not take the hint, the pages stay until it needs them.
  if (begin < end)
    ::madvise(static_cast<std::byte*>(mapping_.get().address) + begin, end - begin, MADV_DONTNEED);
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
  Handle<Descriptor> file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail_to_open(path, errno, Exit::io_error);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_to_open(path, errno, Exit::io_error);
  MP_REQUIRE(S_ISREG(status.st_mode), Exit::bad_data, "{}: not an ordinary file; name the file itself", path);
  if (status.st_size == 0) return;  // an empty file cannot be mapped and needs no mapping
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) fail_to_open(path, errno, Exit::io_error);
  mapping_ = Handle<Traits>(Mapping{address, bytes});
}

}  // namespace mindpipe
