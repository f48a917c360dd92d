#include "io/hdf5_steady_driver.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>

#include "io/file.h"

namespace mindpipe {
namespace {

/// An open file, which HDF5 knows by its first member.
struct SteadyFile {
  H5FD_t known_to_hdf5{};
  File file;
  haddr_t end_of_addresses = 0, end_of_file = 0;
  std::string* problem = nullptr;

  void fails(const char* what) const {
    if (problem->empty()) *problem = fmt::format("{} failed: {}", what, std::strerror(errno));
  }
};

SteadyFile& steady(H5FD_t* file) { return *reinterpret_cast<SteadyFile*>(file); }
const SteadyFile& steady(const H5FD_t* file) { return *reinterpret_cast<const SteadyFile*>(file); }

H5FD_t* open_file(const char* path, unsigned flags, hid_t access, haddr_t) {
  auto opened = std::make_unique<SteadyFile>();
  opened->problem = *static_cast<std::string* const*>(H5Pget_driver_info(access));
  opened->file = File(::open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  struct stat status {};
  if (!opened->file || ::fstat(opened->file.get(), &status) != 0 ||
      ((flags & H5F_ACC_TRUNC) != 0 && status.st_size > 0 && ::ftruncate(opened->file.get(), 0) != 0)) {
    opened->fails("opening");
    return nullptr;
  }
  opened->end_of_file = (flags & H5F_ACC_TRUNC) != 0 ? 0 : static_cast<haddr_t>(status.st_size);
  return &opened.release()->known_to_hdf5;
}

herr_t close_file(H5FD_t* file) {
  delete &steady(file);
  return 0;
}

/// The driver's features: those of HDF5's own driver that decide where in a file things lie.
herr_t tell_features(const H5FD_t*, unsigned long* features) {
  *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
              H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t end_of_addresses(const H5FD_t* file, H5FD_mem_t) { return steady(file).end_of_addresses; }

herr_t set_end_of_addresses(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  steady(file).end_of_addresses = end;
  return 0;
}

haddr_t end_of_file(const H5FD_t* file, H5FD_mem_t) { return steady(file).end_of_file; }

/// What lies beyond the file's end, or was never written, is zeros.
herr_t read_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, std::size_t count, void* to) {
  auto* next = static_cast<char*>(to);
  while (count > 0) {
    const ssize_t got = ::pread(steady(file).file.get(), next, count, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) steady(file).fails("reading");
    if (got <= 0) break;
    next += got;
    at += static_cast<haddr_t>(got);
    count -= static_cast<std::size_t>(got);
  }
  std::memset(next, 0, count);
  return 0;
}

herr_t write_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, std::size_t count, const void* from) {
  const auto* next = static_cast<const char*>(from);
  while (count > 0) {
    const ssize_t written = ::pwrite(steady(file).file.get(), next, count, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) steady(file).fails("writing");
    if (written <= 0) break;
    next += written;
    at += static_cast<haddr_t>(written);
    count -= static_cast<std::size_t>(written);
  }
  steady(file).end_of_file = std::max<haddr_t>(steady(file).end_of_file, at + count);
  return 0;
}

/// Gives the file the length that its addresses have.
herr_t fit_length(H5FD_t* file, hid_t, hbool_t) {
  SteadyFile& own = steady(file);
  if (own.end_of_file == own.end_of_addresses) return 0;
  if (::ftruncate(own.file.get(), static_cast<off_t>(own.end_of_addresses)) != 0)
    own.fails("giving it its length");
  own.end_of_file = own.end_of_addresses;
  return 0;
}

H5FD_class_t steady_class() {
  H5FD_class_t steady{};
#ifdef H5FD_CLASS_VERSION
  steady.version = H5FD_CLASS_VERSION;
  steady.value = static_cast<H5FD_class_value_t>(600);  // free for everybody's own
#endif
  steady.name = "mindpipe_steady";
  steady.maxaddr = HADDR_MAX >> 1;
  steady.fc_degree = H5F_CLOSE_WEAK;
  steady.fapl_size = sizeof(std::string*);
  steady.open = open_file;
  steady.close = close_file;
  steady.query = tell_features;
  steady.get_eoa = end_of_addresses;
  steady.set_eoa = set_end_of_addresses;
  steady.get_eof = end_of_file;
  steady.read = read_file;
  steady.write = write_file;
  steady.truncate = fit_length;
  constexpr H5FD_mem_t metadata_and_raw[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(metadata_and_raw), std::end(metadata_and_raw), steady.fl_map);
  return steady;
}

}  // namespace

SteadyDriver::SteadyDriver() {
  const H5FD_class_t steady = steady_class();
  driver_ = Hdf5Driver(hdf5(H5FDregister(&steady), "HDF5", "take a driver"));
}

void SteadyDriver::serve(const Hdf5List& access) {
  const std::string* const problem = &problem_;
  hdf5(H5Pset_driver(access.get(), driver_.get(), &problem), "HDF5", "take a driver");
}

}  // namespace mindpipe
