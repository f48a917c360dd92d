#include "kernels/integers_model.h"

#include <limits>
#include <numeric>

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

std::int64_t* integers(const Operand& operand) { return operand.tensor().as<std::int64_t>(); }
float* floats(const Operand& operand) { return operand.tensor().as<float>(); }

/// check(cpu) for every instruction set on one thread and on three.
template <class Check>
void for_every_set_and_threads(const Check& check) {
  for (Isa isa : instruction_sets())
    for (int threads : {1, 3}) {
      SCOPED_TRACE(fmt::format("{}, {} threads", name_of(isa), threads));
      check(Cpu(threads, name_of(isa)));
    }
}

/// What one gradient adds to a total of 0, and to the marks.
struct Added {
  std::int64_t units, marks;
  bool operator==(const Added&) const = default;
};
Added added(const Cpu& cpu, float gradient) {
  const Operand one({1}, DType::f32), total({1}, DType::i64), marks({1}, DType::i64);
  floats(one)[0] = gradient;
  cpu->add_as_integers({one, total, marks});
  return {integers(total)[0], integers(marks)[0]};
}

}  // namespace

TEST(Integers, AGradientAddsTheNearestWholeNumberOfUnitsAndIsZeroAfterwards) {
  for_every_set_and_threads([](const Cpu& cpu) {
    for (std::int64_t n : {1, 15, 16, 33, 1000, 70001}) {
      const std::int64_t beside = 3;
      const Operand gradient = any_gradients(n + 2 * beside, 1), totals = any_totals(n + 2 * beside, 1),
                    marks({1}, DType::i64);
      integers(marks)[0] = 5;
      for (std::int64_t i = 0; i < totals.count(); ++i) integers(totals)[i] /= 2;  // leaves room for one more
      std::vector<std::int64_t> want(integers(totals), integers(totals) + totals.count());
      std::int64_t want_marks = 5;
      for (std::int64_t i = beside; i < beside + n; ++i) {
        const auto units = units_of(floats(gradient)[i]);
        want[static_cast<std::size_t>(i)] += units.value_or(0);
        want_marks += units ? 0 : 1;
      }
      cpu->add_as_integers({gradient.tensor().range(beside, n), totals.tensor().range(beside, n), marks});
      EXPECT_EQ(std::vector<std::int64_t>(integers(totals), integers(totals) + totals.count()), want);
      EXPECT_EQ(integers(marks)[0], want_marks) << n << " elements";
      const Operand untouched = any_gradients(n + 2 * beside);
      for (std::int64_t i = 0; i < gradient.count(); ++i) {
        const bool zeroed = i >= beside && i < beside + n;
        ASSERT_EQ(std::bit_cast<std::uint32_t>(floats(gradient)[i]),
                  zeroed ? 0 : std::bit_cast<std::uint32_t>(floats(untouched)[i]))
            << "element " << i;
      }
    }
  });
}

TEST(Integers, HalvesGoToTheEvenUnit) {
  for_every_set_and_threads([](const Cpu& cpu) {
    const std::pair<float, std::int64_t> cases[] = {{0x1p-40f, 1},
                                                    {0x1p-41f, 0},
                                                    {0x1.8p-40f, 2},
                                                    {0x1.4p-39f, 2},
                                                    {0x1.cp-39f, 4},
                                                    {0x1.000002p-41f, 1},
                                                    {0x1.7ffffep-40f, 1},
                                                    {0x1.800002p-40f, 2},
                                                    {0x1.fffffep-18f, 8388608},
                                                    {0x1.000002p-17f, 8388609},
                                                    {0x1p-149f, 0},
                                                    {1, std::int64_t{1} << 40}};
    for (const auto& [gradient, units] : cases) {
      EXPECT_EQ(added(cpu, gradient), (Added{units, 0})) << gradient;
      EXPECT_EQ(added(cpu, -gradient), (Added{-units, 0})) << -gradient;
    }
  });
}

TEST(Integers, BeyondTheLimitNothingIsAddedButAMark) {
  for_every_set_and_threads([](const Cpu& cpu) {
    const std::int64_t limit = std::int64_t{1} << 50;
    EXPECT_EQ(added(cpu, 1024), (Added{limit, 0}));
    EXPECT_EQ(added(cpu, -1024), (Added{-limit, 0}));
    EXPECT_EQ(added(cpu, 0x1.fffffep9f), (Added{limit - (std::int64_t{1} << 26), 0}));
    for (float beyond : {0x1.000002p10f, -0x1.000002p10f, 3e38f, INFINITY, -INFINITY, NAN, -NAN})
      EXPECT_EQ(added(cpu, beyond), (Added{0, 1})) << beyond;
  });
}

TEST(Integers, AsManyOfTheLargestAsAWindowMayHaveDoNotOverflow) {
  for_every_set_and_threads([](const Cpu& cpu) {
    const std::int64_t n = 17, most = IntegerGradients::contributions;
    const Operand gradient({n}, DType::f32), totals({n}, DType::i64), marks({1}, DType::i64);
    for (std::int64_t time = 0; time < most; ++time) {
      for (std::int64_t i = 0; i < n; ++i) floats(gradient)[i] = i % 2 == 0 ? 1024 : -1024;
      cpu->add_as_integers({gradient, totals, marks});
    }
    EXPECT_EQ(integers(totals)[0], most << 50);
    EXPECT_EQ(integers(totals)[1], -(most << 50));
    EXPECT_LT(std::numeric_limits<std::int64_t>::max() - integers(totals)[16], std::int64_t{1} << 50)
        << "one more would not fit";
    cpu->from_integers({totals, marks, gradient});
    EXPECT_EQ(gradient[0], 1024.0 * 8191);
    EXPECT_EQ(gradient[1], -1024.0 * 8191);
  });
}

TEST(Integers, BecomeAGradientRoundedOnceAndAreZeroAfterwards) {
  for_every_set_and_threads([](const Cpu& cpu) {
    for (std::int64_t n : {1, 15, 16, 33, 1000, 70001}) {
      const std::int64_t beside = 3;
      const Operand totals = any_totals(n + 2 * beside, 1), before = totals.copy(),
                    gradient = Operand::random({n + 2 * beside}, DType::f32, "stale", 1, 3),
                    stale = gradient.copy(), marks({1}, DType::i64);
      cpu->from_integers({totals.tensor().range(beside, n), marks, gradient.tensor().range(beside, n)});
      for (std::int64_t i = 0; i < gradient.count(); ++i) {
        const bool made = i >= beside && i < beside + n;
        const float want = made ? gradient_of(integers(before)[i]) : floats(stale)[i];
        ASSERT_EQ(std::bit_cast<std::uint32_t>(floats(gradient)[i]), std::bit_cast<std::uint32_t>(want))
            << "element " << i << " of " << integers(before)[i];
        ASSERT_EQ(integers(totals)[i], made ? 0 : integers(before)[i]) << "element " << i;
      }
    }
  });
}

TEST(Integers, AMarkedWindowHasNoGradientAndLeavesNothingToTheNext) {
  for_every_set_and_threads([](const Cpu& cpu) {
    const std::int64_t n = 20001;
    const Operand totals = any_totals(n), marks({1}, DType::i64), gradient({n}, DType::f32);
    integers(marks)[0] = std::int64_t{1} << 32;
    cpu->from_integers({totals, marks, gradient});
    EXPECT_EQ(cpu->count_not_finite(gradient), n);
    EXPECT_EQ(integers(marks)[0], std::int64_t{1} << 32);
    cpu->fill({marks, 0});
    cpu->from_integers({totals, marks, gradient});
    EXPECT_TRUE(same_bits(gradient, Operand({n}, DType::f32)));
  });
}

/// Contributions of a window, and how they may be dealt out and added.
struct WindowOfGradients {
  static constexpr std::int64_t n = 500;
  static constexpr std::size_t contributions = 60;
  std::vector<Operand> all;
  RandomStream lots{.seed = 7, .purpose = purpose_of("lots of a window")};
  std::uint64_t draws = 0;

  WindowOfGradients() {
    for (std::size_t c = 0; c < contributions; ++c) {
      all.push_back(Operand::random({n}, DType::f32, fmt::format("contribution {}", c), 1e-3));
      floats(all.back())[7] = any_gradient(static_cast<std::int64_t>(c));  // some of which are marks
    }
  }
  std::size_t below(std::size_t count) { return lots.word(draws++) % count; }
  std::vector<std::size_t> drawn_order(std::size_t count) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[below(i)]);
    return order;
  }
};
/// What a rank holds of a window.
struct SumsOfRank {
  Operand totals{{WindowOfGradients::n}, DType::i64}, marks{{1}, DType::i64},
      floats_alone{{WindowOfGradients::n}, DType::f32};
};

TEST(Integers, NoOrderAndNoGroupingOverRanksChangesABit) {
  WindowOfGradients window;
  std::vector<Operand> totals, floats_alone;
  std::vector<std::int64_t> marks;
  for (Isa isa : instruction_sets())
    for (std::size_t ranks : {1, 1, 2, 3, 8, 8}) {
      const Cpu cpu(static_cast<int>(1 + window.below(3)), name_of(isa));
      std::vector<SumsOfRank> sums(ranks);
      for (std::size_t c : window.drawn_order(WindowOfGradients::contributions)) {
        SumsOfRank& mine = sums[window.below(ranks)];
        const Operand gradient = window.all[c].copy();
        cpu->add({mine.floats_alone, gradient, mine.floats_alone});
        cpu->add_as_integers({gradient, mine.totals, mine.marks});
      }
      for (std::vector<std::size_t> left = window.drawn_order(ranks); left.size() > 1;) {
        const SumsOfRank& from = sums[left.back()];
        left.pop_back();
        const SumsOfRank& to = sums[left[window.below(left.size())]];
        cpu->add({to.totals, from.totals, to.totals});
        cpu->add({to.marks, from.marks, to.marks});
        cpu->add({to.floats_alone, from.floats_alone, to.floats_alone});
        if (left.size() == 1) std::swap(sums[0], sums[left[0]]);
      }
      totals.push_back(sums[0].totals);
      marks.push_back(integers(sums[0].marks)[0]);
      floats_alone.push_back(sums[0].floats_alone);
    }
  std::vector<std::int64_t> want(WindowOfGradients::n);
  for (const Operand& gradient : window.all)
    for (std::int64_t i = 0; i < gradient.count(); ++i)
      want[static_cast<std::size_t>(i)] += units_of(floats(gradient)[i]).value_or(0);
  int other_floats = 0;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    EXPECT_EQ(std::vector<std::int64_t>(integers(totals[i]), integers(totals[i]) + totals[i].count()), want);
    EXPECT_EQ(marks[i], marks[0]);
    other_floats += same_bits(floats_alone[i], floats_alone[0]) ? 0 : 1;
  }
  EXPECT_GT(marks[0], 4);
  EXPECT_GT(other_floats, 2) << "sums of f32 do depend on the order, so this test would notice";
}

TEST(Integers, AreAddedFilledAndCopiedExactly) {
  for_every_set_and_threads([](const Cpu& cpu) {
    for (std::int64_t n : {1, 3, 8, 33, 50001}) {
      const Operand a = any_totals(n), b = any_totals(n + 1), sum({n}, DType::i64), filled({n}, DType::i64);
      const Tensor other = b.tensor().range(1, n);
      for (const Operand* operand : {&a, &b})
        for (std::int64_t i = 0; i < operand->count(); ++i) integers(*operand)[i] /= 2;
      cpu->add({a, other, sum});
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_EQ(integers(sum)[i], integers(a)[i] + other.as<std::int64_t>()[i]) << "element " << i;
      cpu->add({a, other, other});
      EXPECT_TRUE(same_bits(other, sum));
      cpu->copy(sum, filled);
      EXPECT_TRUE(same_bits(filled, sum));
      cpu->fill({filled, -3});
      EXPECT_EQ(std::count(integers(filled), integers(filled) + n, -3), n);
    }
  });
}

TEST(Integers, RefusesWhatDoesNotFit) {
  const Cpu cpu;
  const Operand gradient({4}, DType::f32), totals({4}, DType::i64), marks({1}, DType::i64),
      shorter({3}, DType::i64), numbers({4}, DType::f64), other({4}, DType::bf16);
  EXPECT_THROW(cpu->add_as_integers({gradient, shorter, marks}), Error);
  EXPECT_THROW(cpu->add_as_integers({gradient, numbers, marks}), Error);
  EXPECT_THROW(cpu->add_as_integers({other, totals, marks}), Error);
  EXPECT_THROW(cpu->add_as_integers({gradient, totals, totals}), Error);
  EXPECT_THROW(cpu->add_as_integers({gradient, totals, {}}), Error);
  EXPECT_THROW(cpu->from_integers({shorter, marks, gradient}), Error);
  EXPECT_THROW(cpu->from_integers({totals, marks, numbers}), Error);
  EXPECT_THROW(cpu->from_integers({totals, {}, gradient}), Error);
  EXPECT_THROW(cpu->add({totals, numbers, totals}), Error);
  EXPECT_THROW(cpu->scale({totals, 2, totals}), Error) << "i64 has sums, and no other arithmetic";
}
