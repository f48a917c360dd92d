#include "kernels/operand.h"
#include "kernels/reference.h"

#include <gmock/gmock.h>

#include "core/sum_tree.h"
#include "cpu/simd/elementwise_kernels.h"
#include "cpu/simd/random_kernels.h"

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

constexpr std::int64_t odd_sizes[] = {1, 7, 16, 33, 1000};

const Dropout some_dropout{.probability = 0.3f,
                           .stream = {.seed = 5, .purpose = purpose_of("dropout"), .step = 9, .sample = 40}};

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST(Elementwise, AddsAndAccumulates) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (std::int64_t n : odd_sizes) {
      const Operand a = Operand::random({n}, dtype, "a"), b = Operand::random({n}, dtype, "b");
      Operand sum({n}, dtype), total = Operand::random({n}, wide_of(dtype), "total");
      std::vector<double> want = a.values(), want_total = total.values();
      for (std::size_t i = 0; i < want.size(); ++i) {
        want_total[i] += want[i];
        want[i] += b.values()[i];
      }
      cpu->add({a, b, sum});
      expect_close(sum, want);
      Operand in_place = a.copy();
      cpu->add({in_place, b, in_place});
      EXPECT_TRUE(same_bits(sum, in_place));
      cpu->accumulate({a, total});
      expect_close(total, want_total);
    }
  });
}

TEST(Elementwise, ATreeOfTermsHasTheBitsOfItsAdditions) {
  for (Isa isa : instruction_sets())
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i64})
      for (const auto& [leaves, ranks] :
           {std::pair(2, 2), {3, 3}, {4, 4}, {5, 5}, {8, 8}, {12, 4}, {64, 64}}) {
        const std::vector<Addition> tree = SumTree(leaves, ranks).of_roots();
        const std::size_t count = tree.size() + 1;
        const std::vector<std::uint8_t> joins = joins_of(tree, static_cast<int>(count));
        for (const std::int64_t n : {1, 33, 1024, 40007}) {
          const Cpu cpu(2, name_of(isa));
          std::vector<Operand> terms, pairs;
          std::vector<Tensor> tensors;
          for (std::size_t i = 0; i < count; ++i) {
            terms.push_back(Operand::random({n}, dtype, "term " + std::to_string(i), 1000));
            pairs.push_back(terms.back().copy());
          }
          for (const Operand& term : terms) tensors.push_back(term);
          for (const auto& [left, right] : tree) cpu->add({pairs[left], pairs[right], pairs[left]});
          const Operand& want = pairs[0];
          Operand sum({n}, dtype);
          cpu->add_tree({tensors, joins, sum});
          ASSERT_TRUE(same_bits(sum, want)) << count << " terms of " << n;
          for (std::size_t i = 0; i < count; ++i)
            EXPECT_TRUE(same_bits(terms[i], Operand::random({n}, dtype, "term " + std::to_string(i), 1000)))
                << "a term has changed";
          for (const std::size_t place : {std::size_t{0}, count / 2, count - 1}) {
            const Operand kept = terms[place].copy();
            cpu->add_tree({tensors, joins, terms[place]});
            EXPECT_TRUE(same_bits(terms[place], want)) << "in the place of term " << place;
            std::memcpy(terms[place].tensor().data, kept.tensor().data, kept.tensor().bytes());
          }
        }
      }
}

TEST(Elementwise, WhatIsNoTreeIsRefused) {
  const Cpu cpu;
  const Operand a({8}, DType::f32), shorter({7}, DType::f32), sum({8}, DType::f32);
  const auto complaint = [&](const std::vector<Tensor>& terms, const std::vector<std::uint8_t>& joins) {
    return error_of([&] { cpu->add_tree({terms, joins, sum}); });
  };
  EXPECT_EQ(complaint({a, a, a}, {0, 1, 1}), "nothing was thrown");
  EXPECT_EQ(complaint({a, a, a}, {0, 0, 2}), "nothing was thrown");
  for (const std::vector<std::uint8_t>& joins :
       {std::vector<std::uint8_t>{}, {0, 1}, {0, 1, 0}, {1, 0, 1}, {0, 2, 0}, {0, 1, 2}})
    EXPECT_THAT(complaint({a, a, a}, joins), ::testing::HasSubstr("3 terms are no tree"));
  std::vector<std::uint8_t> deep(9);
  deep.back() = 8;
  EXPECT_THAT(complaint(std::vector<Tensor>(9, a), deep), ::testing::HasSubstr("9 terms are no tree"));
  EXPECT_NE(complaint({a, shorter, a}, {0, 1, 1}), "nothing was thrown");
}

TEST(Elementwise, RoundsToBf16ToTheNearestAndTiesToEven) {
  const std::pair<std::uint32_t, std::uint16_t> cases[] = {
      {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
      {0xbf818000, 0xbf82}, {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80},
      {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x00008000, 0x0000}, {0x7f800001, 0x7fc0}};
  for (Isa isa : instruction_sets()) {
    Operand x({17}, DType::f32), y({17}, DType::bf16), back({17}, DType::f32);
    for (std::size_t i = 0; i < 17; ++i)
      x.tensor().as<std::uint32_t>()[i] = cases[i % std::size(cases)].first;
    Cpu cpu(1, name_of(isa));
    cpu->convert({x, y});
    cpu->convert({y, back});
    for (std::size_t i = 0; i < 17; ++i) {
      EXPECT_EQ(y.tensor().as<std::uint16_t>()[i], cases[i % std::size(cases)].second)
          << name_of(isa) << " " << i;
      EXPECT_EQ(back.tensor().as<std::uint32_t>()[i],
                static_cast<std::uint32_t>(cases[i % std::size(cases)].second) << 16);
    }
  }
}

TEST(Elementwise, ConvertsBetweenAllNumberTypes) {
  for_every_kind([](const Cpu& cpu, DType from) {
    for (DType to : number_types) {
      const Operand x = Operand::random({333}, from, "x");
      Operand y({333}, to);
      cpu->convert({x, y});
      expect_close(y, x.values());
    }
  });
}

TEST(Elementwise, SwigluAndItsGradientMatchTheReference) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (std::int64_t cols : odd_sizes) {
      const Operand gate_up = Operand::random({3, 2 * cols}, dtype, "gate_up", 3),
                    dy = Operand::random({3, cols}, dtype, "dy");
      Operand y({3, cols}, dtype), d({3, 2 * cols}, dtype);
      cpu->swiglu({gate_up, y});
      cpu->swiglu_backward({dy, gate_up, d});
      expect_close(y, reference::swiglu(gate_up.values(), 3, cols));
      expect_close(d, reference::swiglu_backward(dy.values(), gate_up.values(), 3, cols), 2);
    }
  });
}

TEST(Elementwise, SwigluStaysFiniteForExtremeGates) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    Operand gate_up({1, 4}, dtype), dy({1, 2}, dtype), y({1, 2}, dtype), d({1, 4}, dtype);
    for (int i = 0; i < 4; ++i) gate_up.set(i, i == 0 ? -1000 : i == 1 ? 1000 : 1);
    dy.set(0, 1);
    dy.set(1, 1);
    cpu->swiglu({gate_up, y});
    cpu->swiglu_backward({dy, gate_up, d});
    expect_close(y, {0, 1000});
    expect_close(d, {0, 1, 0, 1000});
  });
}

TEST(Dropout, TheVectorPhiloxIsTheScalarOne) {
  const RandomStream stream{.seed = 11, .purpose = purpose_of("words"), .step = 3, .sample = 77};
  MaskRows mask;
  mask.key[0] = stream.key()[0];
  mask.key[1] = stream.key()[1];
  mask.step = stream.step;
  for (Isa isa : instruction_sets())
    for (std::uint64_t block :
         {std::uint64_t{0}, std::uint64_t{5}, (std::uint64_t{1} << 32) - 7, std::uint64_t{1} << 40}) {
      std::uint32_t words[128];
      MINDPIPE_PICK_KERNELS(isa, elementwise_kernels).draw(mask, stream.sample, block, 2, words);
      for (std::uint64_t i = 0; i < 128; ++i)
        ASSERT_EQ(words[i], stream.word(4 * block + i)) << name_of(isa) << " word " << i;
    }
}

TEST(Normals, TheVectorOnesAreTheScalarOnes) {
  const RandomStream stream{.seed = 3, .purpose = purpose_of("weights"), .step = 1, .sample = 9};
  const RandomWords words{{stream.key()[0], stream.key()[1]}, stream.step, stream.sample};
  std::vector<float> many(5000), expected(many.size());
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{62}, (std::uint64_t{1} << 34) - 5})
    for (const std::uint64_t count :
         {std::uint64_t{1}, std::uint64_t{64}, std::uint64_t{333}, std::uint64_t{5000}}) {
      stream.normals(first, count, 0.02f, expected.data());
      for (Isa isa : instruction_sets()) {
        MINDPIPE_PICK_KERNELS(isa, random_kernels)
            .normals(words, normal_of, first, count, 0.02f, many.data());
        for (std::uint64_t i = 0; i < count; ++i)
          ASSERT_EQ(many[i], expected[i]) << name_of(isa) << " element " << first + i;
      }
    }
}

TEST(Maximum, KeepsTheLargerAndEveryNaN) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    if (dtype == DType::bf16) return;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    Operand a({5}, dtype), b({5}, dtype), largest({5}, dtype);
    const double left[] = {1, -2, nan, 4, -0.5}, right[] = {-1, 3, 0, nan, -0.25};
    for (int i = 0; i < 5; ++i) {
      a.set(i, left[i]);
      b.set(i, right[i]);
    }
    cpu->maximum({a, b, largest});
    EXPECT_EQ(largest[0], 1);
    EXPECT_EQ(largest[1], 3);
    EXPECT_TRUE(std::isnan(largest[2]));
    EXPECT_TRUE(std::isnan(largest[3]));
    EXPECT_EQ(largest[4], -0.25);
  });
}

TEST(Dropout, MatchesTheDocumentedMask) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (std::int64_t cols : {5, 64, 301, 517}) {
      const SequencePart sequence{.samples = 2, .rows = 3, .first = 4, .whole = 9};
      const Operand x = Operand::random({2, 3, cols}, dtype, "x"),
                    branch = Operand::random({2, 3, cols}, dtype, "branch"),
                    bias = Operand::random({cols}, dtype, "bias");
      const std::vector<double> mask = reference::mask(some_dropout, sequence, cols);
      std::vector<double> dropped = x.values(), plain = x.values(), biased = x.values(), without = x.values();
      for (std::size_t i = 0; i < mask.size(); ++i) {
        const double b = bias[static_cast<std::int64_t>(i) % cols], a = branch.values()[i];
        dropped[i] *= mask[i];
        plain[i] += a * mask[i];
        biased[i] += (a + b) * mask[i];
        without[i] += a + b;
      }
      Operand y({2, 3, cols}, dtype);
      cpu->dropout({x, some_dropout, sequence, y});
      expect_close(y, dropped);
      cpu->residual({.x = x, .branch = branch, .dropout = some_dropout, .sequence = sequence, .y = y});
      expect_close(y, plain);
      cpu->residual(
          {.x = x, .branch = branch, .bias = bias, .dropout = some_dropout, .sequence = sequence, .y = y});
      expect_close(y, biased);
      Operand in_place = x.copy(1);
      cpu->residual({in_place, branch, bias, some_dropout, sequence, in_place});
      EXPECT_TRUE(same_bits(y, in_place));
      cpu->residual({.x = x, .branch = branch, .bias = bias, .sequence = sequence, .y = y});
      expect_close(y, without);
      cpu->dropout({x, {}, sequence, y});
      EXPECT_TRUE(same_bits(x, y));
    }
  });
}

TEST(Dropout, AWindowOfTheSequenceGetsTheVeryMaskOfTheWhole) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const std::int64_t cols = 83, whole_rows = 12;
    const Operand x = Operand::random({2, whole_rows, cols}, dtype, "x");
    Operand whole({2, whole_rows, cols}, dtype);
    cpu->dropout(
        {x, some_dropout, {.samples = 2, .rows = whole_rows, .first = 0, .whole = whole_rows}, whole});
    for (std::int64_t sample = 0; sample < 2; ++sample)
      for (std::int64_t first : {0, 5, 9}) {
        Operand y({1, 3, cols}, dtype, 3);
        Dropout later = some_dropout;
        later.stream.sample += static_cast<std::uint32_t>(sample);
        cpu->dropout({x.tensor().row_range(sample * whole_rows + first, 3),
                      later,
                      {.samples = 1, .rows = 3, .first = first, .whole = whole_rows},
                      y});
        EXPECT_TRUE(same_bits(y, whole.tensor().row_range(sample * whole_rows + first, 3)))
            << sample << " " << first;
      }
  });
}

TEST(Dropout, AShardOfTheColumnsGetsTheVeryMaskOfWholeRows) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    const std::int64_t cols = 30, first_col = 23, whole_cols = 83;
    const Operand x = Operand::random({2, 5, whole_cols}, dtype, "x");
    Operand part({2, 5, cols}, dtype), whole({2, 5, whole_cols}, dtype), y({2, 5, cols}, dtype);
    for (std::int64_t i = 0; i < part.count(); ++i)
      part.set(i, x[i / cols * whole_cols + first_col + i % cols]);
    cpu->dropout({x, some_dropout, {.samples = 2, .rows = 5, .whole = 5}, whole});
    cpu->dropout({part,
                  some_dropout,
                  {.samples = 2, .rows = 5, .whole = 5, .first_col = first_col, .whole_cols = whole_cols},
                  y});
    for (std::int64_t i = 0; i < part.count(); ++i)
      EXPECT_EQ(y[i], whole[i / cols * whole_cols + first_col + i % cols]) << i;
    EXPECT_THROW(cpu->dropout({part,
                               some_dropout,
                               {.samples = 2, .rows = 5, .whole = 5, .first_col = 60, .whole_cols = 83},
                               y}),
                 Error);
  });
}

TEST(Elementwise, ThreadsDoNotChangeABit) {
  expect_same_bits_on_threads([](const Cpu& cpu, DType dtype) {
    const Shape shape{3, 17, 1031};
    const SequencePart sequence{.samples = 3, .rows = 17, .first = 2, .whole = 19};
    const Operand x = Operand::random(shape, dtype, "x"), branch = Operand::random(shape, dtype, "branch");
    std::vector<Operand> out(6, Operand(shape, dtype));
    out[5] = Operand({3, 17, 2062}, dtype);
    const Operand both = Operand::random({3, 17, 2062}, dtype, "both");
    cpu->add({x, branch, out[0]});
    cpu->residual({.x = x, .branch = branch, .dropout = some_dropout, .sequence = sequence, .y = out[1]});
    cpu->dropout({x, some_dropout, sequence, out[2]});
    cpu->swiglu({both, out[3]});
    cpu->fill({out[4], 0.25});
    cpu->swiglu_backward({x, both, out[5]});
    return out;
  });
}

TEST(CpuBackend, FillsAndCopiesEveryDtype) {
  const Cpu cpu(2);
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i32, DType::u8, DType::i64}) {
    Operand a({40001}, dtype), b({40001}, dtype), c({40001}, dtype);
    cpu->fill({a, 3});
    EXPECT_EQ(a[0], 3);
    EXPECT_EQ(a[40000], 3);
    cpu->copy(a, b);
    EXPECT_TRUE(same_bits(a, b));
    std::vector<std::byte> host(a.tensor().bytes());
    cpu->download(a, host.data());
    cpu->upload(host.data(), c);
    EXPECT_TRUE(same_bits(a, c));
  }
}

TEST(CpuBackend, SaysWhatItIsAndHasNothingToWaitFor) {
  const Cpu cpu(2, "baseline");
  EXPECT_EQ(cpu->description(), "cpu: baseline, 2 threads");
  EXPECT_EQ(Cpu(1, "baseline")->description(), "cpu: baseline, 1 thread");
  EXPECT_EQ(&cpu->memory(), &cpu.memory);
  const auto event = cpu->record(Queue::compute);
  cpu->wait(Queue::compute, event);
  EXPECT_TRUE(cpu->finished(event));
  EXPECT_THAT(error_of([] { Cpu(-1); }), ::testing::HasSubstr("device.threads is -1"));
  EXPECT_THAT(error_of([] { Cpu(1, "sse9"); }), ::testing::HasSubstr("device.instructions is 'sse9'"));
}

TEST(CpuBackend, CallsTheHookAfterEveryOperation) {
  const Cpu cpu;
  int calls = 0;
  cpu->on_progress([&] { ++calls; });
  const Operand a = Operand::random({8}, DType::f32, "a");
  Operand b({8}, DType::f32);
  cpu->add({a, a, b});
  cpu->convert({a, b});
  cpu->copy(a, b);
  cpu->fill({b, 0});
  EXPECT_EQ(calls, 4);
}

TEST(CpuBackend, RefusesOperandsThatDoNotFit) {
  const Cpu cpu;
  const Operand a({8}, DType::f32), shorter({7}, DType::f32), other({8}, DType::bf16), ids({8}, DType::i32);
  EXPECT_THAT(error_of([&] {
                cpu->add({a, shorter, a});
              }),
              ::testing::HasSubstr("add: b is [7] (8 elements are needed)"));
  EXPECT_THAT(error_of([&] {
                cpu->add({a, other, a});
              }),
              ::testing::HasSubstr("add: b is bf16 (f32 is needed)"));
  EXPECT_THAT(error_of([&] { cpu->add({ids, ids, ids}); }), ::testing::HasSubstr("no arithmetic on i32"));
  const SequencePart sequence{.samples = 1, .rows = 1, .first = 0, .whole = 1};
  EXPECT_THAT(error_of([&] {
                cpu->dropout({a, {.probability = 1, .stream = {}}, sequence, a});
              }),
              ::testing::HasSubstr("dropout: probability 1"));
  EXPECT_THAT(error_of([&] {
                cpu->dropout({a, some_dropout, {.samples = 1, .rows = 1, .first = 1, .whole = 1}, a});
              }),
              ::testing::HasSubstr("rows 1..2 of a sequence of 1"));
}
