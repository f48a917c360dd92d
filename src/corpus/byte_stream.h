#pragma once
#include <memory>
#include <string>

#include "core/line_reader.h"

namespace mindpipe {

/// Opens a file; its first bytes say whether it is packed by gzip or zstd, and it is unpacked on the way.
std::unique_ptr<ByteStream> open_bytes(const std::string& path);

/// The lines of a text, packed or not. A line of more than 16 MiB is refused.
LineReader lines_of_text(const std::string& path);

}  // namespace mindpipe
