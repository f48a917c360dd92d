#pragma once
#include <cstdint>
#include <string>

namespace mindpipe {

/// Writes the training documents 0 .. documents - 1 of synthetic:arithmetic, `lines` lines of each: into a
/// .txt file, where a blank line ends a document, or else into a .bin/.idx pair.
void write_arithmetic(const std::string& output, std::int64_t documents, std::int64_t lines,
                      std::uint64_t seed);

}  // namespace mindpipe
