#include "program/swapped_blocks.h"

#include <algorithm>

namespace mindpipe {

bool swaps_blocks(const Outline& outline) {
  return std::any_of(outline.swapped.begin(), outline.swapped.end(), [](char is) { return is != 0; });
}

std::vector<std::pair<int, int>> pieces_of(const Outline& outline, int first, int last) {
  std::vector<std::pair<int, int>> pieces;
  for (int block = first; block < last; ++block)
    if (pieces.empty() || is_swapped(outline, block) || is_swapped(outline, block - 1))
      pieces.emplace_back(block, block + 1);
    else pieces.back().second = block + 1;
  return pieces;
}

std::int64_t bytes_in_segment(const Outline& outline, int block) {
  return bytes_in_segment(outline, block, outline.first_block[outline.chunk_of(block) + 1]);
}

std::int64_t bytes_in_segment(const Outline& outline, int block, int last) {
  return outline.cost(block).saved + outline.cuts[block].activation -
         (block + 1 == last ? 0 : outline.cuts[block + 1].activation);
}

std::int64_t bytes_beside_segments(const Outline& outline, int chunk) {
  const int first = outline.first_block[chunk], last = outline.first_block[chunk + 1];
  std::int64_t bytes = 0;
  for (int block = first; block < last; ++block) {
    if (is_swapped(outline, block)) continue;
    bytes += outline.cost(block).saved;
    if (block > first && is_swapped(outline, block - 1)) bytes += outline.cuts[block].activation;
    if (block + 1 < last && is_swapped(outline, block + 1)) bytes -= outline.cuts[block + 1].activation;
  }
  return bytes;
}

}  // namespace mindpipe
