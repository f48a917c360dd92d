#include <gtest/gtest.h>

#include <utility>

#include "core/bulk_parts.h"
#include "core/sum_lists.h"
#include "optim/unit_optimizer.h"
#include "program/clock/transfer.h"

namespace mindpipe {
namespace {

/// While one rank sends or adds a piece that is longer than the others', these wait.
TEST(PiecesOfParts, AreEquallyLongOnAllRanks) {
  Unit unit{"layers.0"};
  for (const std::int64_t rows : {1152, 384, 1536, 1536}) {
    unit.add({{{"weight", rows}}, 384, Split::none, Form::whole, {}, true});
    unit.add({{{"bias", rows}}, 0, Split::none, Form::whole, {}, false});
  }
  unit.lay_out({1, 1, 0}, 1, 0, DType::f32);
  const std::int64_t count = unit.flat_count();
  Outline outline;
  outline.units = {{.gradients = 4 * count}};
  for (const auto& [ranks, shards] : {std::pair(2, 1), {4, 1}, {8, 1}, {16, 1}, {2, 3}, {4, 3}, {8, 3}})
    for (const std::int64_t bytes :
         {ranks * longest_overhang, 3 * ranks * longest_overhang, most_part_bytes}) {
      outline.data = ranks;
      outline.shards = shards;
      outline.part_bytes = bytes;
      const int parts = sum_over_data(outline, 0).parts;
      const std::vector<std::int64_t> cuts = share_edges(unit, ranks * parts);
      std::int64_t with_waits = 0;
      for (int part = 0; part < parts; ++part) {
        std::int64_t longest = 0, all = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const std::int64_t* piece = &cuts[piece_of(rank, part, parts)];
          longest = std::max(longest, piece[1] - piece[0]);
          all += piece[1] - piece[0];
        }
        EXPECT_LE(4 * all, longest_part(ranks, bytes)) << parts << " parts";
        with_waits += ranks * longest;
      }
      EXPECT_LE(static_cast<double>(with_waits), 1.35 * static_cast<double>(count))
          << ranks << " ranks of " << shards << " shards, " << parts << " parts";
    }
}

}  // namespace
}  // namespace mindpipe
