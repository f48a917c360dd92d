#include "core/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace mindpipe {

void MappedFile::Traits::release(Mapping mapping) noexcept { ::munmap(mapping.address, mapping.bytes); }

void MappedFile::forget(std::size_t first, std::size_t count) const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = (first + page - 1) / page * page, end = (first + count) / page * page;
  // Where the system does not take the hint, the pages stay until it needs them.
  if (begin < end)
    ::madvise(static_cast<std::byte*>(mapping_.get().address) + begin, end - begin, MADV_DONTNEED);
}

MappedFile::MappedFile(const std::string& path) : MappedFile(InputFile(path)) {}

MappedFile::MappedFile(const std::string& path, std::int64_t largest) : MappedFile(path) {
  require_length(path, size(), largest, Exit::bad_data);
}

MappedFile::MappedFile(const InputFile& file) : path_(file.path()), hole_(file.first_hole()) {
  if (file.size() == 0) return;  // an empty file cannot be mapped and needs no mapping
  const auto bytes = static_cast<std::size_t>(file.size());
  void* address = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (address == MAP_FAILED) fail_to_open(path_, errno, Exit::io_error);
  mapping_ = Handle<Traits>(Mapping{address, bytes});
}

void MappedFile::require_written() const { require_no_hole(path_, hole_, size()); }

}  // namespace mindpipe
