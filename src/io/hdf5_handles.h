#pragma once
#include <hdf5.h>

#include <string>

#include "core/check.h"
#include "core/handle.h"

// What HDF5 asks to be let go of, and its errors as sentences.
namespace mindpipe {

template <herr_t (*let_go)(hid_t)>
struct Hdf5Traits {
  using Raw = hid_t;
  static Raw none() { return H5I_INVALID_HID; }
  static void release(Raw raw) noexcept { let_go(raw); }
};
using Hdf5File = Handle<Hdf5Traits<H5Fclose>>;
using Hdf5Group = Handle<Hdf5Traits<H5Gclose>>;
using Hdf5Dataset = Handle<Hdf5Traits<H5Dclose>>;
using Hdf5Space = Handle<Hdf5Traits<H5Sclose>>;
using Hdf5Type = Handle<Hdf5Traits<H5Tclose>>;
using Hdf5List = Handle<Hdf5Traits<H5Pclose>>;
using Hdf5Attribute = Handle<Hdf5Traits<H5Aclose>>;

/// Fails where a call of HDF5 does; `what` was to be done with the file `path`.
template <class Result>
Result hdf5(Result result, const std::string& path, const char* what) {
  MP_REQUIRE(result >= 0, Exit::io_error, "{}: HDF5 cannot {}", path, what);
  return result;
}

}  // namespace mindpipe
