#pragma once
#include <string>
#include <vector>

#include "io/manifest.h"

namespace mindpipe {

/// Writes an HDF5 file with everything but the tensors' elements: its attributes, the counters of units, a
/// table of the tensors, and for each tensor a contiguous dataset whose place is taken. Fills in the tensors'
/// offsets and the file's size. Two calls with the same manifest write the same bytes.
void write_hdf5_skeleton(const std::string& path, Manifest& manifest);

}  // namespace mindpipe
