#pragma once
#include <string>

#include "io/hdf5_handles.h"

namespace mindpipe {

using Hdf5Driver = Handle<Hdf5Traits<H5FDunregister>>;

/// How HDF5 reaches the files that are opened with a property list: by POSIX calls, as its own driver does.
/// What they refuse is kept, and HDF5 hears that all went well: it retries some writes that have failed
/// without a word, and keeps a file that it could not close until the end of MPI, where it crashes.
class SteadyDriver {
 public:
  SteadyDriver();
  SteadyDriver(const SteadyDriver&) = delete;
  SteadyDriver& operator=(const SteadyDriver&) = delete;

  /// Lets files that are opened with this list be reached so.
  void serve(const Hdf5List& access);
  /// "writing failed: Input/output error"; empty: none.
  const std::string& problem() const { return problem_; }

 private:
  std::string problem_;
  Hdf5Driver driver_;
};

}  // namespace mindpipe
