#include <fmt/core.h>

#include "program/make_program.h"

namespace mindpipe {
namespace {

std::string blocks_of_rank(const Outline& outline, int rank) {
  std::string text;
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
    if (outline.rank_of(chunk) == rank)
      text += fmt::format("{}{}..{}", text.empty() ? "" : ", ", outline.first_block[chunk],
                          outline.first_block[chunk + 1] - 1);
  return text;
}

}  // namespace

std::string summary_of(const PlannedStep& step, const Outline& outline) {
  std::string text =
      fmt::format("step: {} stages x {} chunks, {} micro-batches, expected {:.3f} ms\n", outline.stages,
                  outline.chunks, outline.micro_batches, static_cast<double>(step.expected.step) * 1e-6);
  for (int rank = 0; rank < outline.stages; ++rank) {
    const RankMemory& memory = step.placement.ranks[rank];
    text += fmt::format("stage {}: blocks {}, {} tapes, bubble {:.1f} %, {} bytes (", rank,
                        blocks_of_rank(outline, rank), memory.arenas, 100 * step.expected.bubble(rank),
                        memory.total());
    for (MemoryClass kind : memory_classes)
      text += fmt::format("{}{} {}", kind == memory_classes.front() ? "" : ", ", name_of(kind),
                          memory.bytes[static_cast<int>(kind)]);
    text += ")\n";
  }
  return text;
}

std::string listing_of(const Program& program) {
  std::string text;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    text += fmt::format("rank {}\n", rank);
    for (std::size_t index = 0; index < program.ranks[rank].size(); ++index)
      text += "  " + line_of(program.ranks[rank][index], static_cast<int>(index)) + "\n";
  }
  return text;
}

}  // namespace mindpipe
