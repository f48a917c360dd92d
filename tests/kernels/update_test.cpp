#include "kernels/operand.h"

#include <gmock/gmock.h>

#include <limits>

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

const std::vector<double> first_parameters{1.0, -2.0, 0.25, 0.0}, first_gradients{0.5, -1.25, 3.0, 0.001};

/// Four parameters over three steps whose gradients grow and change sign; `count` repeats them, so that
/// vectors and their tails are met.
struct Trajectory {
  std::int64_t count;
  DType dtype;
  Operand master{{count}, dtype}, gradient{{count}, dtype}, m{{count}, dtype}, v{{count}, dtype};

  Trajectory(std::int64_t size, DType type) : count(size), dtype(type) {
    for (std::int64_t i = 0; i < count; ++i) master.set(i, first_parameters[static_cast<std::size_t>(i % 4)]);
  }
  template <class Step>
  void run(const Step& step) {
    for (int t = 0; t < 3; ++t) {
      for (std::int64_t i = 0; i < count; ++i)
        gradient.set(
            i, 2 * first_gradients[static_cast<std::size_t>(i % 4)] * (t + 1) * (t % 2 == 0 ? 1 : -0.5));
      step(t + 1);
    }
  }
  void expect(const std::vector<double>& four) const {
    std::vector<double> want;
    for (std::int64_t i = 0; i < count; ++i) want.push_back(four[static_cast<std::size_t>(i % 4)]);
    expect_close(master, want);
  }
};

}  // namespace

// The numbers expected of AdamW and SGD are those of torch.optim in float64 with the same settings.
TEST(Update, AdamwGoesWherePyTorchGoes) {
  const AdamW rule{.rate = 0.0625f, .beta1 = 0.75f, .beta2 = 0.875f, .epsilon = 0x1p-20f, .decay = 0.125f};
  for (Isa isa : instruction_sets())
    for (DType dtype : {DType::f64, DType::f32})
      for (std::int64_t count : {4, 55}) {
        const Cpu cpu(1, name_of(isa));
        Trajectory path(count, dtype);
        path.run([&](std::int64_t step) {
          cpu->adamw({.rule = rule,
                      .decision = decided(rule, step, 0.5),
                      .gradient = path.gradient,
                      .master = path.master,
                      .m = path.m,
                      .v = path.v});
        });
        path.expect({0.8862098556660553, -1.8629549024356298, 0.15365089549507097, -0.09046724729509686});
      }
}

TEST(Update, SgdGoesWherePyTorchGoes) {
  const std::tuple<float, bool, std::vector<double>> cases[] = {
      {0.0f, false, {0.883237361907959, -1.7197208404541016, -0.3168603181838989, -0.00018701553344726562}},
      {0.75f, false, {0.850003719329834, -1.6446475982666016, -0.4241372346878052, -0.00022143936157226565}},
      {0.75f, true, {0.7715497985482216, -1.4550856053829193, -0.819273455068469, -0.00035205596685409547}}};
  for (Isa isa : instruction_sets())
    for (DType dtype : {DType::f64, DType::f32})
      for (const auto& [momentum, nesterov, want] : cases) {
        const Cpu cpu(1, name_of(isa));
        Trajectory path(55, dtype);
        const Sgd rule{.rate = 0.0625f, .momentum = momentum, .decay = 0.125f, .nesterov = nesterov};
        path.run([&](std::int64_t) {
          cpu->sgd({.rule = rule,
                    .decision = decided({}, 1, 0.5),
                    .gradient = path.gradient,
                    .master = path.master,
                    .velocity = momentum == 0 ? Tensor{} : path.v.tensor()});
        });
        path.expect(want);
      }
}

TEST(Update, TheValueIsTheMasterRounded) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const DType state = wide_of(dtype);
    const std::int64_t count = 1003;
    const Operand gradient = Operand::random({count}, state, "gradient");
    Operand master = Operand::random({count}, state, "master"), m({count}, state), v({count}, state),
            value({count}, dtype), rounded({count}, dtype);
    cpu->adamw({{.rate = 0.01f}, decided({}, 1), gradient, master, m, v, value});
    cpu->convert({master, rounded});
    EXPECT_TRUE(same_bits(value, rounded));
    cpu->sgd({{.rate = 0.01f, .momentum = 0.9f}, decided({}, 1), gradient, master, v, value});
    cpu->convert({master, rounded});
    EXPECT_TRUE(same_bits(value, rounded));
  });
}

TEST(Update, APartOfAParameterAloneGetsTheBitsItHasInTheWhole) {
  for (Isa isa : instruction_sets()) {
    const Cpu cpu(1, name_of(isa));
    const std::int64_t count = 999, first = 101, part = 77;
    const Operand gradient = Operand::random({count, 1}, DType::f32, "gradient"),
                  start = Operand::random({count, 1}, DType::f32, "master");
    Operand master = start.copy(), m({count, 1}, DType::f32), v({count, 1}, DType::f32);
    Operand part_master({part, 1}, DType::f32, 1), part_m({part, 1}, DType::f32, 2),
        part_v({part, 1}, DType::f32, 3);
    std::memcpy(part_master.tensor().data, start.tensor().row_range(first, part).data,
                part_master.tensor().bytes());
    for (std::int64_t step : {1, 2}) {
      cpu->adamw({.rule = {.rate = 0.01f},
                  .decision = decided({}, step),
                  .gradient = gradient,
                  .master = master,
                  .m = m,
                  .v = v});
      cpu->adamw({.rule = {.rate = 0.01f},
                  .decision = decided({}, step),
                  .gradient = gradient.tensor().row_range(first, part),
                  .master = part_master,
                  .m = part_m,
                  .v = part_v});
    }
    EXPECT_TRUE(same_bits(part_master, master.tensor().row_range(first, part))) << name_of(isa);
    EXPECT_TRUE(same_bits(part_v, v.tensor().row_range(first, part)));
  }
}

TEST(Update, ThreadsDoNotChangeABit) {
  expect_same_bits_on_threads([](const Cpu& cpu, DType dtype) {
    const DType state = wide_of(dtype);
    const std::int64_t count = 3 * statistics_chunk + 17;
    const Operand gradient = Operand::random({count}, state, "gradient");
    std::vector<Operand> out{Operand::random({count}, state, "master"), Operand({count}, state),
                             Operand({count}, state), Operand({count}, dtype), Operand({4}, DType::f64)};
    cpu->adamw({{.rate = 0.01f}, decided({}, 1), gradient, out[0], out[1], out[2], out[3]});
    cpu->sum_squares({gradient, out[4]});
    return out;
  });
}

TEST(Statistics, SumsOfSquaresAreByChunk) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const std::int64_t count = 2 * statistics_chunk + 1001;
    const Operand x = Operand::random({count}, dtype, "x");
    Operand sums({3}, DType::f64);
    cpu->sum_squares({x, sums});
    for (std::int64_t c = 0; c < 3; ++c) {
      double want = 0;
      for (std::int64_t i = c * statistics_chunk; i < std::min(count, (c + 1) * statistics_chunk); ++i)
        want += x[i] * x[i];
      EXPECT_NEAR(sums[c] / want, 1, dtype == DType::f64 ? 1e-12 : 2e-6);
    }
    Operand last({1}, DType::f64);
    cpu->sum_squares({x.tensor().reshaped({count, 1}).row_range(2 * statistics_chunk, 1001), last});
    EXPECT_EQ(last[0], sums[2]);
  });
}

TEST(Statistics, FindsEveryNumberThatIsNotFinite) {
  for (int threads : {1, 3})
    for (Isa isa : instruction_sets())
      for (DType dtype : number_types) {
        const Cpu cpu(threads, name_of(isa));
        Operand x({50001}, dtype);
        x.set(5, dtype == DType::f64 ? std::numeric_limits<double>::max() : 3e38);
        EXPECT_EQ(cpu->count_not_finite(x), 0);
        x.set(0, std::nan(""));
        x.set(17, INFINITY);
        x.set(50000, -INFINITY);
        EXPECT_EQ(cpu->count_not_finite(x), 3) << threads << " " << name_of(isa) << " " << name_of(dtype);
      }
}

TEST(Update, AStepThatIsSkippedChangesNothing) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const DType state = wide_of(dtype);
    const std::int64_t count = 103;
    Operand skipped = decided({}, 1);
    skipped.set(Decision::skipped, 1);
    const Operand gradient = Operand::random({count}, state, "gradient"),
                  start = Operand::random({count}, state, "master");
    const Operand master = start.copy(), m = start.copy(), v = start.copy(), value({count}, dtype);
    cpu->adamw({{.rate = 0.01f, .decay = 0.1f}, skipped, gradient, master, m, v, value});
    cpu->sgd({{.rate = 0.01f, .momentum = 0.9f, .decay = 0.1f}, skipped, gradient, master, v, value});
    for (const Operand* operand : {&master, &m, &v}) EXPECT_TRUE(same_bits(*operand, start));
    EXPECT_TRUE(same_bits(value, Operand({count}, dtype)));
  });
}

TEST(Hash, IsTheSameOnEveryInstructionSetAndFindsEveryBitThatChanges) {
  for (DType dtype : number_types) {
    Operand x = Operand::random({50001}, dtype, "hashed");
    const std::uint64_t hash = Cpu(1, "baseline")->hash(x);
    for (int threads : {1, 3})
      for (Isa isa : instruction_sets()) EXPECT_EQ(Cpu(threads, name_of(isa))->hash(x), hash) << name_of(isa);
    const Cpu cpu;
    const std::size_t bytes = bytes_of(dtype);
    for (std::int64_t element : {0, 1, 4095, 4096, 50000})
      for (std::size_t bit = 0; bit < 8 * bytes; ++bit) {
        auto& byte =
            static_cast<std::byte*>(Tensor(x).data)[static_cast<std::size_t>(element) * bytes + bit / 8];
        byte ^= std::byte{1} << (bit % 8);
        EXPECT_NE(cpu->hash(x), hash) << element << " " << bit;
        byte ^= std::byte{1} << (bit % 8);
      }
    EXPECT_NE(cpu->hash(Tensor(x).range(0, 50000)), hash);
    EXPECT_EQ(cpu->hash(Tensor(x).range(0, 0)), 0u);
  }
}

TEST(Hash, FindsElementsThatTradePlaces) {
  Operand x({2}, DType::f32), y({2}, DType::f32);
  x.set(0, 1);
  x.set(1, 2);
  y.set(0, 2);
  y.set(1, 1);
  const Cpu cpu;
  EXPECT_NE(cpu->hash(x), cpu->hash(y));
}

/// A step's numbers, decided one after the other.
struct Decided {
  Cpu cpu;
  Operand sums{{2}, DType::f64}, decision{{Decision::places}, DType::f64};
  double operator()(Decision::Place place) const { return decision[place]; }
  void step(double loss, double squares, double valid, double clip = 0) {
    sums.set(0, loss);
    sums.set(1, squares);
    cpu->clip_and_scale(
        {{.loss_factor = 1.0 / 64, .valid = valid, .clip = clip, .beta1 = 0.75f, .beta2 = 0.875f},
         sums,
         decision});
  }
};

TEST(Decide, ScalesByTheTokensAndClipsByTheNorm) {
  Decided decided;
  decided.step(96, 36, 32);
  EXPECT_EQ(decided(Decision::loss), 3);
  EXPECT_EQ(decided(Decision::gradient_norm), 12);  // 6, twice as large as a mean over the 32 that count
  EXPECT_EQ(decided(Decision::gradient_factor), 2);
  EXPECT_EQ(decided(Decision::skipped), 0);
  decided.step(96, 36, 32, 12.5);
  EXPECT_EQ(decided(Decision::gradient_factor), 2) << "a norm below the limit";
  decided.step(96, 36, 32, 3);
  EXPECT_EQ(decided(Decision::gradient_factor), static_cast<double>(static_cast<float>(2 * 3 / (12 + 1e-6))));
  EXPECT_EQ(decided(Decision::gradient_norm), 12) << "what is told is the norm before clipping";
}

TEST(Decide, CountsOnlyStepsThatAreApplied) {
  Decided decided;
  decided.step(1, 1, 64);
  EXPECT_EQ(decided(Decision::applied_steps), 1);
  EXPECT_EQ(decided(Decision::first_correction), 0.25);
  EXPECT_EQ(decided(Decision::second_correction), 1 / std::sqrt(0.125));
  for (double squares : {std::nan(""), double{INFINITY}}) {
    decided.step(1, squares, 64, 1);
    EXPECT_EQ(decided(Decision::skipped), 1);
    EXPECT_EQ(decided(Decision::applied_steps), 1);
  }
  for (double loss : {std::nan(""), double{INFINITY}}) {
    decided.step(loss, 1, 64, 1);
    EXPECT_EQ(decided(Decision::skipped), 1) << "a loss that is not finite";
    EXPECT_EQ(decided(Decision::applied_steps), 1);
  }
  decided.step(0, 0, 0, 1);
  EXPECT_EQ(decided(Decision::skipped), 1) << "no token counts";
  EXPECT_EQ(decided(Decision::loss), 0);
  EXPECT_EQ(decided(Decision::gradient_norm), 0);
  decided.step(1, 1, 64);
  EXPECT_EQ(decided(Decision::skipped), 0);
  EXPECT_EQ(decided(Decision::applied_steps), 2);
  EXPECT_EQ(decided(Decision::first_correction), 1 - 0.75 * 0.75);
}

TEST(Statistics, SpansAreAddedInOrder) {
  for (DType dtype : {DType::f64, DType::f32}) {
    const Cpu cpu;
    const Operand x = Operand::random({1000}, dtype, "x"),
                  spans = Operand::tokens({0, 1000, 5, 5, 3, 7, 999, 1000});
    const Operand totals({4}, DType::f64);
    cpu->sum_spans({x, spans.tensor().reshaped({4, 2}), totals});
    double all = 0;
    for (std::int64_t i = 0; i < 1000; ++i) all += x[i];
    EXPECT_EQ(totals[0], all);
    EXPECT_EQ(totals[1], 0);
    EXPECT_EQ(totals[2], x[3] + x[4] + x[5] + x[6]);
    EXPECT_EQ(totals[3], x[999]);
    EXPECT_THROW(cpu->sum_spans({x, spans, x}), Error);
  }
}

TEST(Update, SeveralRangesAreOneOperationAfterTheOther) {
  const Cpu cpu;
  const std::int64_t count = statistics_chunk + 300;
  const std::vector<FlatSpan> spans{{3, 40}, {43, statistics_chunk + 100}, {statistics_chunk + 200, 7}};
  const Operand gradient = Operand::random({count}, DType::f32, "g"), decision = decided({}, 2, 0.5);
  std::vector<Operand> ways[2];
  for (std::vector<Operand>& to : ways) {
    for (const char* name : {"p", "m", "v", "p", "m", "filled"})
      to.push_back(Operand::random({count}, DType::f32, name));
    for (std::int64_t i = 0; i < count; ++i) to[2].set(i, to[2][i] * to[2][i]);
    to.emplace_back(Shape{4}, DType::f64);
  }
  const std::vector<SquaresSpan> squares{{spans[0], 0}, {spans[1], 1}, {spans[2], 3}};
  const std::vector<UpdateSpan> updates{{spans[0], 0}, {spans[1], 0.5f}, {spans[2], 0.25f}};
  const auto& [together, apart] = ways;
  cpu->adamw_of_spans(
      {{{.rate = 0.01f}, decision, gradient, together[0], together[1], together[2]}, updates});
  cpu->sgd_of_spans({{.rule = {.rate = 0.1f, .momentum = 0.9f},
                      .decision = decision,
                      .gradient = gradient,
                      .master = together[3],
                      .velocity = together[4]},
                     updates});
  cpu->fill_of_spans({together[5], 0.5, spans});
  cpu->sum_squares_of_spans({gradient, together[6], squares});
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto [first, elements] = spans[i];
    const auto part = [first = first, elements = elements](const Tensor& of) {
      return of.range(first, elements);
    };
    cpu->adamw({{.rate = 0.01f, .decay = updates[i].decay},
                decision,
                part(gradient),
                part(apart[0]),
                part(apart[1]),
                part(apart[2])});
    cpu->sgd({.rule = {.rate = 0.1f, .momentum = 0.9f, .decay = updates[i].decay},
              .decision = decision,
              .gradient = part(gradient),
              .master = part(apart[3]),
              .velocity = part(apart[4])});
    cpu->fill({part(apart[5]), 0.5});
    cpu->sum_squares(
        {part(gradient), apart[6].tensor().range(squares[i].first_sum, statistics_chunks(elements))});
  }
  for (std::size_t i = 0; i < apart.size(); ++i) EXPECT_TRUE(same_bits(together[i], apart[i])) << i;
}

TEST(Update, RefusesWhatDoesNotFit) {
  const Cpu cpu;
  const Operand four({4}, DType::f32), three({3}, DType::f32), half_width({4}, DType::bf16);
  EXPECT_THROW(
      cpu->adamw(
          {.rule = {}, .decision = decided({}, 1), .gradient = three, .master = four, .m = four, .v = four}),
      Error);
  EXPECT_THROW(cpu->adamw({.rule = {},
                           .decision = decided({}, 1),
                           .gradient = four,
                           .master = half_width,
                           .m = four,
                           .v = four}),
               Error);
  EXPECT_THROW(
      cpu->sgd({.rule = {.momentum = 0.9f}, .decision = decided({}, 1), .gradient = four, .master = four}),
      Error);
  EXPECT_THROW(
      cpu->adamw({.rule = {}, .decision = four, .gradient = four, .master = four, .m = four, .v = four}),
      Error)
      << "four numbers are no decision";
  const FlatSpan beyond{2, 3};
  const Operand sum({1}, DType::f64);
  EXPECT_THROW(cpu->fill_of_spans({four, 0, {beyond}}), Error);
  EXPECT_THROW(cpu->sgd_of_spans({{{}, decided({}, 1), four, four}, {{beyond, 0}}}), Error);
  EXPECT_THROW(cpu->sum_squares_of_spans({four, sum, {{beyond, 0}}}), Error);
  EXPECT_THROW(cpu->sum_squares_of_spans({four, sum, {{{0, 4}, 1}}}), Error) << "sums have no place for it";
}
