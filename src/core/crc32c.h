#pragma once
#include <cstddef>
#include <cstdint>

namespace mindpipe {

/// CRC32C of bytes; `before` is that of the bytes in front of them.
std::uint32_t crc32c(const void* bytes, std::size_t count, std::uint32_t before = 0);

/// CRC32C of a first piece and a second behind it, from those of the two.
std::uint32_t joined_crc32c(std::uint32_t first, std::uint32_t second, std::uint64_t bytes_of_second);

}  // namespace mindpipe
