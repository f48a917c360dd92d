#include "kernels/operand.h"
#include "kernels/reference.h"

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

constexpr std::int64_t rows = 6;
const std::vector<std::int32_t> targets{0, 36, -1, 12, 20, 0};  // one row is ignored

/// The steps of one shard, in the order in which a classifier takes them.
struct Softmax {
  DType dtype;
  Operand ids = Operand::tokens(targets);
  Operand maximum{{rows}, dtype}, sums{{rows}, dtype}, of_target{{rows}, dtype}, total{{rows}, dtype},
      losses{{rows}, dtype};

  explicit Softmax(DType type) : dtype(type) {}
  void forward(const Cpu& cpu, const Tensor& logits, std::int64_t valid, double smoothing) {
    cpu->row_maximum({logits, valid, maximum});
    cpu->softmax_sums({logits, valid, 0, ids, maximum, sums, of_target, total});
    cpu->cross_entropy({ids, maximum, sums, of_target, total, smoothing, valid, losses});
  }
};

/// Padded columns hold numbers that would win if they counted.
Operand logits_with_padding(std::int64_t cols, std::int64_t valid, DType dtype) {
  Operand logits = Operand::random({rows, cols}, dtype, "logits", 3);
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t j = valid; j < cols; ++j) logits.set(n * cols + j, 1000);
  return logits;
}

}  // namespace

TEST(Classifier, LossesAndGradientsMatchTheReference) {
  for_every_kind([](const Cpu& cpu, DType compute) {
    const DType dtype = wide_of(compute);
    for (double smoothing : {0.0, 0.1})
      for (auto [cols, valid] : {std::pair<std::int64_t, std::int64_t>{37, 37}, {64, 50}, {5000, 4999}}) {
        const Operand logits = logits_with_padding(cols, valid, dtype);
        Softmax softmax(dtype);
        softmax.forward(cpu, logits, valid, smoothing);
        const auto want = reference::cross_entropy(logits.values(), cols, valid, targets, smoothing, 0.25);
        expect_close(softmax.losses, want.losses, 4);
        Operand dlogits = Operand::random({rows, cols}, compute, "stale");
        cpu->cross_entropy_backward(
            {logits, valid, 0, softmax.ids, softmax.maximum, softmax.sums, 0.25, smoothing, valid, dlogits});
        expect_close(dlogits, want.dlogits);
        Operand maximum({rows}, dtype), sums({3, rows}, dtype), losses({rows}, dtype),
            at_once({rows, cols}, compute);
        cpu->softmax_cross_entropy(
            {logits, valid, softmax.ids, 0.25, smoothing, valid, maximum, sums, losses, at_once});
        EXPECT_TRUE(same_bits(losses, softmax.losses));
        EXPECT_TRUE(same_bits(at_once, dlogits));
        if (compute != DType::bf16) {
          Operand in_place = logits.copy();
          cpu->cross_entropy_backward({in_place, valid, 0, softmax.ids, softmax.maximum, softmax.sums, 0.25,
                                       smoothing, valid, in_place});
          EXPECT_TRUE(same_bits(dlogits, in_place));
        }
      }
  });
}

TEST(Classifier, GradientIsTheSlopeOfTheLoss) {
  const Cpu cpu;
  const std::int64_t cols = 40, valid = 37;
  Operand logits = logits_with_padding(cols, valid, DType::f64);
  Softmax softmax(DType::f64);
  Operand dlogits({rows, cols}, DType::f64);
  softmax.forward(cpu, logits, valid, 0.1);
  cpu->cross_entropy_backward(
      {logits, valid, 0, softmax.ids, softmax.maximum, softmax.sums, 1, 0.1, valid, dlogits});
  for (std::int64_t i : {0, 5, 36, 37, 39, 41, 76, 85, 172, 239}) {
    const double middle = logits[i], h = 1e-5;
    const auto loss_at = [&](double value) {
      logits.set(i, value);
      softmax.forward(cpu, logits, valid, 0.1);
      logits.set(i, middle);
      return softmax.losses[i / cols];
    };
    EXPECT_NEAR(dlogits[i], (loss_at(middle + h) - loss_at(middle - h)) / (2 * h), 1e-8) << i;
  }
}

TEST(Classifier, ShardsOfTheVocabularyAddUpToTheWhole) {
  for (DType dtype : {DType::f64, DType::f32}) {
    const Cpu cpu;
    const std::int64_t cols = 16,
                       vocabulary = 40;  // shards of 16, 16 and 8 columns that count, and one of none
    const Operand whole = Operand::random({rows, vocabulary}, dtype, "logits", 3);
    const auto want = reference::cross_entropy(whole.values(), vocabulary, vocabulary, targets, 0.1, 1);
    std::vector<Operand> shards;
    std::vector<Softmax> softmax;
    Softmax all(dtype);
    for (std::int64_t s = 0; s < 4; ++s) {
      const std::int64_t valid = std::clamp<std::int64_t>(vocabulary - s * cols, 0, cols);
      shards.emplace_back(Shape{rows, cols}, dtype);
      softmax.emplace_back(dtype);
      for (std::int64_t i = 0; i < rows * cols; ++i)
        shards.back().set(i, i % cols < valid ? whole[i / cols * vocabulary + s * cols + i % cols] : 77);
      cpu->row_maximum({shards.back(), valid, softmax.back().maximum});
      for (std::int64_t n = 0; n < rows; ++n)
        all.maximum.set(n,
                        s == 0 ? softmax[0].maximum[n] : std::max(all.maximum[n], softmax.back().maximum[n]));
    }
    for (std::int64_t s = 0; s < 4; ++s) {
      Softmax& part = softmax[static_cast<std::size_t>(s)];
      cpu->softmax_sums({shards[static_cast<std::size_t>(s)],
                         std::clamp<std::int64_t>(vocabulary - s * cols, 0, cols), s * cols, all.ids,
                         all.maximum, part.sums, part.of_target, part.total});
      cpu->add({all.sums, part.sums, all.sums});
      cpu->add({all.of_target, part.of_target, all.of_target});
      cpu->add({all.total, part.total, all.total});
    }
    cpu->cross_entropy(
        {all.ids, all.maximum, all.sums, all.of_target, all.total, 0.1, vocabulary, all.losses});
    expect_close(all.losses, want.losses, 4);
    for (std::int64_t s = 0; s < 4; ++s) {
      const std::int64_t valid = std::clamp<std::int64_t>(vocabulary - s * cols, 0, cols);
      Operand& shard = shards[static_cast<std::size_t>(s)];
      cpu->cross_entropy_backward(
          {shard, valid, s * cols, all.ids, all.maximum, all.sums, 1, 0.1, vocabulary, shard});
      for (std::int64_t i = 0; i < rows * cols; ++i)
        EXPECT_NEAR(
            shard[i],
            i % cols < valid ? want.dlogits[reference::at(i / cols * vocabulary + s * cols + i % cols)] : 0,
            tolerance_of(dtype));
    }
  }
}

TEST(Classifier, RanksOfTargetsAddUpOverAllShardsAndTheLowestOfEqualWordsComesFirst) {
  for (Isa isa : instruction_sets())
    for (DType dtype : {DType::f64, DType::f32})
      for (std::int64_t cols : {std::int64_t{7}, std::int64_t{64}, std::int64_t{1029}}) {
        const Cpu cpu(1, name_of(isa));
        const std::int64_t vocabulary = 2 * cols + cols / 3 + 1;  // of the third shard a part counts
        // At most 13 different logits, so that most are equal to others.
        Operand whole = Operand::random({9, vocabulary}, dtype, "logits", 2);
        for (std::int64_t i = 0; i < whole.count(); ++i)
          whole.set(i, std::clamp(std::round(whole[i]), -6.0, 6.0));
        const auto at = [](std::int64_t word) { return static_cast<std::int32_t>(word); };
        const std::vector<std::int32_t> ids{0,
                                            at(cols - 1),
                                            at(cols),
                                            at(cols + 2),
                                            at(2 * cols - 1),
                                            at(2 * cols),
                                            at(vocabulary - 1),
                                            at(cols / 2),
                                            at(cols + 1)};
        const Operand words = Operand::tokens(ids);
        whole.set(7 * vocabulary + cols / 2, 9);  // the largest of all
        whole.set(8 * vocabulary + cols + 1, 9);  // equal to one before it
        whole.set(8 * vocabulary + 1, 9);
        Operand own({9}, dtype), total({9}, dtype);
        for (std::int64_t n = 0; n < 9; ++n) own.set(n, whole[n * vocabulary + ids[reference::at(n)]]);
        for (std::int64_t first = 0; first < vocabulary; first += cols) {
          const std::int64_t valid = std::min(cols, vocabulary - first);
          Operand shard({9, cols}, dtype), ranks = Operand::random({9}, dtype, "stale");
          for (std::int64_t i = 0; i < shard.count(); ++i)
            shard.set(i, i % cols < valid ? whole[i / cols * vocabulary + first + i % cols] : 1000);
          cpu->target_rank({shard, valid, first, words, own, ranks});
          cpu->add({total, ranks, total});
        }
        for (std::int64_t n = 0; n < 9; ++n) {
          std::int64_t before = 0;
          for (std::int64_t word = 0; word < vocabulary; ++word)
            before += whole[n * vocabulary + word] > own[n] ||
                      (whole[n * vocabulary + word] == own[n] && word < ids[reference::at(n)]);
          EXPECT_EQ(total[n], static_cast<double>(before)) << "row " << n << " of " << vocabulary;
        }
        EXPECT_EQ(total[7], 0);
        EXPECT_EQ(total[8], 1);
      }
}

TEST(Classifier, HitsAreCountedBySampleAndAddedToThoseBefore) {
  const Cpu cpu;
  for (DType dtype : {DType::f64, DType::f32}) {
    // Samples of three targets: all right; one is not; nobody's; right but for what does not count; wrong.
    Operand words({5, 3}, DType::i32), ranks({5, 3}, dtype), hits({Hits::places}, DType::f64);
    const std::int32_t ids[] = {3, 4, 5, 3, 4, 5, -1, -1, -1, 7, -1, 9, 1, 1, -1};
    const double found[] = {0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 0, 5, 1, 0};
    for (std::int64_t i = 0; i < 15; ++i) words.set(i, ids[i]);
    for (std::int64_t i = 0; i < 15; ++i) ranks.set(i, found[i]);
    hits.set(Hits::right, 100);
    hits.set(Hits::exact, 1e15);
    cpu->count_hits({words, ranks, hits});
    EXPECT_EQ(hits[Hits::right], 100 + 3 + 2 + 2);
    EXPECT_EQ(hits[Hits::within_five], 3 + 3 + 2 + 1);
    EXPECT_EQ(hits[Hits::exact], 1e15 + 2);
    EXPECT_EQ(hits[Hits::samples], 4);
  }
}

TEST(Classifier, AnIgnoredRowHasNoLossAndNoGradientEvenIfItIsNotANumber) {
  const Cpu cpu;
  Operand logits = logits_with_padding(20, 20, DType::f32),
          dlogits = Operand::random({rows, 20}, DType::f32, "stale");
  for (std::int64_t j = 40; j < 60; ++j) logits.set(j, std::nan(""));
  Softmax softmax(DType::f32);
  softmax.forward(cpu, logits, 20, 0);
  cpu->cross_entropy_backward({logits, 20, 0, softmax.ids, softmax.maximum, softmax.sums, 1, 0, 20, dlogits});
  EXPECT_EQ(softmax.losses[2], 0);
  for (std::int64_t j = 40; j < 60; ++j) EXPECT_EQ(dlogits[j], 0);
}

TEST(Classifier, ANotANumberInARowShowsInItsLoss) {
  for (Isa isa : instruction_sets())
    for (std::int64_t place : {0, 7, 19}) {
      Operand logits = logits_with_padding(20, 20, DType::f32);
      logits.set(place, std::nan(""));
      Softmax softmax(DType::f32);
      softmax.forward(Cpu(1, name_of(isa)), logits, 20, 0);
      EXPECT_TRUE(std::isnan(softmax.losses[0])) << name_of(isa) << " " << place;
      EXPECT_TRUE(std::isfinite(softmax.losses[1]));
    }
}

TEST(Classifier, ThreadsAndNeighbouringRowsDoNotChangeABit) {
  expect_same_bits_on_threads([](const Cpu& cpu, DType compute) {
    const std::int64_t cols = 10007, valid = 9999;
    const DType dtype = wide_of(compute);
    const Operand logits = logits_with_padding(cols, valid, dtype);
    Softmax softmax(dtype);
    softmax.forward(cpu, logits, valid, 0.1);
    Operand dlogits({rows, cols}, compute), ranks({rows}, dtype);
    cpu->target_rank({logits, valid, 0, softmax.ids, softmax.of_target, ranks});
    cpu->cross_entropy_backward(
        {logits, valid, 0, softmax.ids, softmax.maximum, softmax.sums, 0.5, 0.1, valid, dlogits});
    for (std::int64_t n : {0, 4}) {
      Operand row({1, cols}, dtype, 3), maximum({1}, dtype), sums({1}, dtype), of_target({1}, dtype),
          total({1}, dtype), d({1, cols}, compute, 1);
      std::memcpy(row.tensor().data, logits.tensor().row_range(n, 1).data, row.tensor().bytes());
      const Operand id = Operand::tokens({targets[static_cast<std::size_t>(n)]});
      cpu->row_maximum({row, valid, maximum});
      cpu->softmax_sums({row, valid, 0, id, maximum, sums, of_target, total});
      cpu->cross_entropy_backward({row, valid, 0, id, maximum, sums, 0.5, 0.1, valid, d});
      EXPECT_EQ(sums[0], softmax.sums[n]);
      EXPECT_EQ(total[0], softmax.total[n]);
      EXPECT_TRUE(same_bits(d, dlogits.tensor().row_range(n, 1)));
    }
    return std::vector<Operand>{
        softmax.maximum, softmax.sums, softmax.of_target, softmax.total, softmax.losses, dlogits, ranks};
  });
}
