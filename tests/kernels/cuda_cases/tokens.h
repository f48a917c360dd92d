#pragma once
#include "kernels/cuda_cases/shared.h"

/// Embedding, positions, and softmax over a shard of the vocabulary.

namespace mindpipe::testing {
/// Tokens of which some repeat often, and some lie outside of the table [first, first + rows).
inline Operand some_tokens(std::int64_t n, std::int64_t first, std::int64_t rows) {
  const RandomStream stream{.seed = 3, .purpose = purpose_of("tokens")};
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t word = stream.word(static_cast<std::uint64_t>(i));
    ids.push_back(static_cast<std::int32_t>(
        word % 3 == 0
            ? first + 2
            : static_cast<std::int64_t>(word % static_cast<std::uint32_t>(rows + 20)) + first - 10));
  }
  return Operand::tokens(ids);
}
}  // namespace mindpipe::testing

TEST_F(Cuda, EmbeddingAndItsGradientInTheOrderOfTheTokens) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    struct Case {
      std::int64_t n, rows, cols, first;
    };
    for (const Case& c :
         {Case{1, 3, 1, 0}, Case{37, 5, 13, 100}, Case{4200, 300, 5, 0}, Case{64, 70000, 8, 12}}) {
      const Mirror tokens(pairing(), some_tokens(c.n, c.first, c.rows)),
          table = make.random({c.rows, c.cols}, "table"), dy = make.random({c.n, c.cols}, "dy");
      const Mirror y = make.empty({c.n, c.cols}), dtable = make.wide({c.rows, c.cols}, "dtable"),
                   without = make.wide({c.rows, c.cols}, "dtable");
      on_both(pairing(), {&y, &dtable, &without}, 1, [&](Backend& backend, auto of) {
        backend.embedding_backward({of(tokens), of(dy), c.first, of(without), c.first + 2});
        backend.embedding({of(tokens), of(table), c.first, of(y)});
        backend.embedding_backward(
            {.tokens = of(tokens), .dy = of(dy), .first_row = c.first, .dtable = of(dtable)});
      });
      EXPECT_TRUE(same_bits(y.fetched(), y.on_host()));
      EXPECT_TRUE(same_bits(dtable.fetched(), dtable.on_host())) << "both add one token after the other";
      EXPECT_TRUE(same_bits(without.fetched(), without.on_host()));
      EXPECT_FALSE(c.n > 1 && same_bits(without.fetched(), dtable.fetched()));
      for (Operand& o : fetched({&y, &dtable, &without})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, Positions) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    const SequencePart sequence{.samples = 3, .rows = 4, .first = 2, .whole = 8};
    for (std::int64_t cols : {1, 24, 77}) {
      const Mirror x = make.random({3, 4, cols}, "x"), positions = make.random({12, cols}, "positions"),
                   y = make.empty({3, 4, cols}), d = make.wide({12, cols}, "d");
      on_both(pairing(), {&y, &d}, 1, [&](Backend& backend, auto of) {
        backend.add_positions(
            {.x = of(x), .positions = of(positions), .sequence = sequence, .first_position = 5, .y = of(y)});
        backend.positions_backward({of(x), sequence, 5, of(d)});
      });
      for (Operand& o : fetched({&y, &d})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, SinesOfPositions) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    const SequencePart sequence{.samples = 3, .rows = 4, .first = 100, .whole = 800};
    for (Sinusoids form : {Sinusoids::below_base, Sinusoids::up_to_base})
      for (std::int64_t cols : {4, 64, 78}) {
        const Mirror x = make.random({3, 4, cols}, "x"), y = make.empty({3, 4, cols});
        on_both(pairing(), {&y}, 1, [&](Backend& backend, auto of) {
          backend.add_sinusoids({of(x), sequence, 2, form, of(y)});
        });
        for (Operand& o : fetched({&y})) all.push_back(std::move(o));
      }
    return all;
  });
}

TEST_F(Cuda, RowsArePickedAndPutBack) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    Operand list({2, 5}, DType::i32);
    const std::int32_t numbers[] = {0, 10, 4, -1, 7, 3, 3, 10, 11, 3};
    std::copy(std::begin(numbers), std::end(numbers), list.tensor().as<std::int32_t>());
    const Mirror rows(pairing(), list);
    for (std::int64_t cols : {1, 24, 301}) {
      const Mirror x = make.random({2, 11, cols}, "x"), dy = make.random({2, 5, cols}, "dy"),
                   y = make.empty({2, 5, cols}), dx = make.empty({2, 11, cols}),
                   part = make.empty({2, 4, cols});
      on_both(pairing(), {&y, &dx, &part}, 1, [&](Backend& backend, auto of) {
        backend.pick_rows({of(x), of(rows), of(y)});
        backend.put_rows({of(dy), of(rows), 0, of(dx)});
        backend.put_rows({of(dy), of(rows), 3, of(part)});
      });
      for (const Mirror* m : {&y, &dx, &part}) EXPECT_TRUE(same_bits(m->fetched(), m->on_host()));
      for (Operand& o : fetched({&y, &dx, &part})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, PatchesOfPictures) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (const PictureShape& picture : {PictureShape{1, 28, 14, 7, {0.1f}, {0.3f}},
                                        PictureShape{3, 8, 16, 4, {0.5f, 0.4f, 0.3f}, {0.5f, 0.25f, 0.2f}}}) {
      Operand bytes({2, picture.channels * picture.height * picture.width}, DType::u8);
      for (std::int64_t i = 0; i < bytes.count(); ++i) bytes.set(i, static_cast<double>(i * 37 % 256));
      const Mirror pictures(pairing(), bytes),
          y = make.empty({2, picture.patches() + 3, picture.patch_size()});
      on_both(pairing(), {&y}, 1, [&](Backend& backend, auto of) {
        backend.patches({of(pictures), picture, 1, of(y)});
      });
      EXPECT_TRUE(same_bits(y.fetched(), y.on_host()));
      all.push_back(y.fetched());
    }
    return all;
  });
}

TEST_F(Cuda, ClassifierOverAShardOfTheVocabulary) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    struct Case {
      std::int64_t cols, valid, first;
    };
    for (const Case& c : {Case{1, 1, 0}, Case{64, 50, 64}, Case{2500, 2499, 0}, Case{4352, 4300, 128}}) {
      const std::int64_t rows = 5;
      const Mirror targets(pairing(), Operand::tokens({static_cast<std::int32_t>(c.first), -1,
                                                       static_cast<std::int32_t>(c.first + c.valid - 1),
                                                       static_cast<std::int32_t>(c.first + c.valid), 0}));
      const Mirror logits = make.wide({rows, c.cols}, "logits"), maximum = make.empty_wide({rows}),
                   sums = make.empty_wide({rows}), of_target = make.empty_wide({rows}),
                   total = make.empty_wide({rows}), losses = make.empty_wide({rows}),
                   dlogits = make.empty({rows, c.cols}), in_place = make.wide({rows, c.cols}, "logits");
      on_both(pairing(), {&maximum, &sums, &of_target, &total, &losses, &dlogits, &in_place}, 64,
              [&](Backend& backend, auto of) {
                backend.row_maximum({of(logits), c.valid, of(maximum)});
                backend.softmax_sums({of(logits), c.valid, c.first, of(targets), of(maximum), of(sums),
                                      of(of_target), of(total)});
                backend.cross_entropy(
                    {of(targets), of(maximum), of(sums), of(of_target), of(total), 0.1, 4300, of(losses)});
                backend.cross_entropy_backward({of(logits), c.valid, c.first, of(targets), of(maximum),
                                                of(sums), 3.0, 0.1, 4300, of(dlogits)});
                backend.cross_entropy_backward({of(in_place), c.valid, c.first, of(targets), of(maximum),
                                                of(sums), 3.0, 0.1, 4300, of(in_place)});
              });
      EXPECT_TRUE(same_bits(maximum.fetched(), maximum.on_host()));
      for (Operand& o : fetched({&maximum, &sums, &of_target, &total, &losses, &dlogits, &in_place}))
        all.push_back(std::move(o));
    }
    return all;
  });
}

/// Rows that a block holds, in groups and odd ones, and rows that are too long for it.
TEST_F(Cuda, LossesAndGradientsOfAWholeVocabularyInOnePass) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    for (const auto& [cols, valid] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 1}, {64, 50}, {4501, 4499}, {60'000, 59'990}}) {
      const std::int64_t rows = 4;
      const Mirror targets(pairing(), Operand::tokens({0, -1, static_cast<std::int32_t>(valid - 1), 0}));
      Operand numbers = Operand::random({rows, cols}, wide_of(dtype), "logits", 3, skew);
      for (std::int64_t n = 0; n < rows; ++n)
        for (std::int64_t j = valid; j < cols; ++j) numbers.set(n * cols + j, 1000);  // padding never counts
      numbers.set(3 * cols, std::nan(""));
      const Mirror logits(pairing(), numbers, skew), in_place(pairing(), numbers, skew);
      const Mirror maximum = make.empty_wide({rows}), sums = make.empty_wide({3, rows}),
                   losses = make.empty_wide({rows}), dlogits = make.empty({rows, cols}),
                   losses_again = make.empty_wide({rows});
      const bool is_wide = wide_of(dtype) == dtype;
      on_both(pairing(), {&losses, &dlogits}, 64, [&](Backend& backend, auto of) {
        backend.softmax_cross_entropy({of(logits), valid, of(targets), 3.0, 0.1, valid, of(maximum), of(sums),
                                       of(losses), of(dlogits)});
        if (is_wide)
          backend.softmax_cross_entropy({of(in_place), valid, of(targets), 3.0, 0.1, valid, of(maximum),
                                         of(sums), of(losses_again), of(in_place)});
      });
      if (is_wide) {
        EXPECT_TRUE(same_bits(dlogits.fetched(), in_place.fetched()));
        EXPECT_TRUE(same_bits(losses.fetched(), losses_again.fetched()));
      }
      EXPECT_TRUE(std::isnan(losses.fetched()[3]));
      for (Operand& o : fetched({&losses, &dlogits})) all.push_back(std::move(o));
    }
    return all;
  });
}

TEST_F(Cuda, RanksOfTargetsInAShardOfTheVocabularyAndHits) {
  for_kinds(*this, [&](DType dtype, std::size_t skew) {
    std::vector<Operand> all;
    const Maker make{pairing(), dtype, skew};
    struct Case {
      std::int64_t cols, valid, first;
    };
    for (const Case& c : {Case{1, 1, 0}, Case{64, 50, 64}, Case{2500, 2499, 0}, Case{4352, 4300, 128}}) {
      const auto at = [](std::int64_t word) { return static_cast<std::int32_t>(word); };
      const Mirror targets(pairing(), Operand::tokens({at(c.first), -1, at(c.first + c.valid - 1),
                                                       at(c.first + c.valid), 0, at(c.first + c.valid / 2)}));
      Operand few = Operand::random({6, c.cols}, wide_of(dtype), "logits", 2, skew), own({6}, wide_of(dtype));
      for (std::int64_t i = 0; i < few.count(); ++i) few.set(i, std::round(few[i]));
      for (std::int64_t n = 0; n < 6; ++n) own.set(n, static_cast<double>(n - 2));
      const Mirror logits(pairing(), few, skew), of_target(pairing(), own), ranks = make.empty_wide({6});
      on_both(pairing(), {&ranks}, 0, [&](Backend& backend, auto of) {
        backend.target_rank({of(logits), c.valid, c.first, of(targets), of(of_target), of(ranks)});
      });
      all.push_back(ranks.fetched());
    }
    for (const auto& [samples, each] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 100}, {70, 5}}) {
      Operand ids({samples, each}, DType::i32), found({samples, each}, wide_of(dtype)),
          before({Hits::places}, DType::f64);
      const RandomStream stream{.seed = 4, .purpose = purpose_of("hits")};
      for (std::int64_t i = 0; i < ids.count(); ++i) {
        const std::uint32_t word = stream.word(static_cast<std::uint64_t>(i));
        ids.set(i, i / each == 2 || word % 4 == 0 ? -1 : 5);
        found.set(i, i / each % 3 == 0 ? 0 : word / 4 % 8);
      }
      before.set(Hits::exact, 3);
      const Mirror targets(pairing(), ids), ranks(pairing(), found), hits(pairing(), before);
      on_both(pairing(), {&hits}, 0, [&](Backend& backend, auto of) {
        backend.count_hits({of(targets), of(ranks), of(hits)});
      });
      all.push_back(hits.fetched());
    }
    return all;
  });
}
