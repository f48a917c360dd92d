#include "layers/tape.h"

#include <gtest/gtest.h>

#include <cstring>

#include "layers/norm.h"
#include "layers/recompute.h"
#include "make_backend.h"

namespace mindpipe {
namespace {

struct TapeTest : ::testing::Test {
  Memory memory{Memory::Kind::host};
  std::unique_ptr<Backend> backend = make_cpu_backend(memory, 1, "auto");
  Arena kept{memory, MemoryClass::activations, 1 << 20}, scratch{memory, MemoryClass::workspace, 1 << 20};
  Arena caches{memory, MemoryClass::activations, 1 << 16};
  Tape tape{*backend, kept, scratch, &caches};

  Tensor kept_with(std::initializer_list<float> numbers, const Shape& shape) {
    const Tensor t = tape.keep(shape, DType::f32);
    std::copy(numbers.begin(), numbers.end(), t.as<float>());
    return t;
  }
  /// A unit of one undivided weight [rows, columns] with zeroed gradients.
  std::unique_ptr<Unit> weight(const std::string& name, std::int64_t rows, std::int64_t columns) {
    auto unit = std::make_unique<Unit>(name);
    unit->add({.pieces = {{name, rows}}, .columns = columns, .initial = {}});
    unit->lay_out({}, 1, 0, DType::f32);
    unit->allocate_values(memory);
    unit->gradients().allocate(memory);
    backend->fill({unit->gradients().accumulators(0), 0});
    return unit;
  }
};

TEST_F(TapeTest, GivesBackWhatWasSavedLastInFirstOut) {
  const Tensor a = tape.keep({2, 3}, DType::f32), b = tape.keep({5}, DType::bf16),
               c = tape.keep({1, 2, 3, 4}, DType::f64);
  for (const Tensor& t : {a, b, c}) tape.save(t);
  EXPECT_EQ(tape.saved(), 3u);
  EXPECT_EQ(tape.peek(0).data, c.data);
  EXPECT_EQ(tape.peek(2).data, a.data);
  for (const Tensor& t : {c, b, a}) {
    const Tensor back = tape.restore();
    EXPECT_EQ(back.data, t.data);
    EXPECT_EQ(back.shape, t.shape);
    EXPECT_EQ(back.dtype, t.dtype);
  }
  EXPECT_EQ(tape.saved(), 0u);
}

TEST_F(TapeTest, FindsABackwardWithoutItsForward) {
  tape.save(tape.keep({4}, DType::f32));
  tape.restore();
  EXPECT_THROW(tape.restore(), Error);
  EXPECT_THROW(tape.peek(0), Error);
}

TEST_F(TapeTest, RefusesToSaveWhatLiesInScratch) {
  EXPECT_THROW(tape.save(tape.scratch({4}, DType::f32)), Error);
}

struct NormOnTapeTest : TapeTest {
  Communicator tensor{*backend, 1};
  LayerContext context{*backend, tensor, DType::f32, false, 5};
  Unit unit{"norm"};
  Norm norm{context, unit, "norm", NormKind::layer, 4, 1e-5, true};
  Tensor x;

  NormOnTapeTest() {
    unit.lay_out({}, 1, 0, DType::f32);
    unit.allocate_values(memory);
    const Tensor gain = unit.value(0, 0), offset = unit.value(1, 0);
    for (int i = 0; i < 4; ++i) {
      gain.as<float>()[i] = static_cast<float>(1 + i);
      offset.as<float>()[i] = static_cast<float>(10 * i);
    }
    x = kept_with({1, 2, 4, 8, -3, 0, 0, 5}, {1, 2, 4});
  }
  static std::vector<float> numbers(const Tensor& t) { return {t.as<float>(), t.as<float>() + t.count()}; }
};

TEST_F(NormOnTapeTest, MakesAgainWhatANormGaveInScratch) {
  for (auto when : {Tape::WeightGradients::now, Tape::WeightGradients::later}) {
    tape.weight_gradients = when;
    std::vector<float> gave;
    std::size_t mark = 0;
    {
      Tape::Scope scope(tape);
      const Tensor y = norm.forward(x, tape);
      EXPECT_TRUE(scratch.holds(y.data));
      mark = kept.mark();
      tape.save(y);
      EXPECT_EQ(kept.mark(), mark) << "nothing is kept of it";
      EXPECT_THROW(tape.peek(0), Error) << "it is nowhere yet";
      gave = numbers(y);
      std::fill_n(y.as<float>(), y.count(), 7777.0f);  // the scratch is used by others
    }
    const Tensor again = tape.restore();
    EXPECT_EQ(numbers(again), gave);
    EXPECT_EQ(again.shape, x.shape);
    EXPECT_EQ(kept.holds(again.data), when == Tape::WeightGradients::later) << "a put-off product reads it";
    tape.restore();
    EXPECT_EQ(tape.restore().data, x.data);
  }
}

TEST_F(NormOnTapeTest, ForgetsANormsPlaceInScratchWithItsScope) {
  void* place = nullptr;
  {
    Tape::Scope scope(tape);
    place = norm.forward(x, tape).data;
  }
  const Tensor other = tape.scratch(x.shape, x.dtype);
  ASSERT_EQ(other.data, place);
  EXPECT_THROW(tape.save(other), Error) << "what lies there now is not what the norm gave";
}

TEST_F(NormOnTapeTest, KeepsWhatANormGaveWhereItIsToldTo) {
  const Tensor y = norm.forward(x, tape, tape.keep(x.shape, x.dtype));
  tape.save(y);
  EXPECT_EQ(tape.restore().data, y.data);
}

TEST_F(TapeTest, SavesNothingWhereNobodyGoesBack) {
  for (Tape::Mode mode : {Tape::Mode::discard, Tape::Mode::evaluate, Tape::Mode::generate}) {
    tape.mode = mode;
    Tape::Scope scope(tape);
    tape.save(tape.keep({4}, DType::f32));
    EXPECT_EQ(tape.saved(), 0u);
    EXPECT_EQ(kept.mark(), 0u);
    EXPECT_GT(scratch.mark(), 0u) << "what would be kept is scratch";
  }
  EXPECT_EQ(scratch.mark(), 0u);
  tape.mode = Tape::Mode::evaluate;
  EXPECT_TRUE(kept.holds(tape.output({4}, DType::f32).data)) << "a block's output outlives the block";
}

TEST_F(TapeTest, GivesBackScratchAtTheEndOfAScope) {
  const Tensor outer = tape.scratch({4}, DType::f32);
  void* first = nullptr;
  {
    Tape::Scope scope(tape);
    first = tape.scratch({4}, DType::f32).data;
    EXPECT_NE(first, outer.data);
  }
  EXPECT_EQ(tape.scratch({4}, DType::f32).data, first);
}

TEST_F(TapeTest, PutsProductsOffAndRunsThemInTheOrderOfHanding) {
  const auto unit = weight("w", 1, 1);
  const Param param{unit.get(), 0, 0};
  // In f32 the order of these sums shows: (1 + 1e8) - 1e8 is 0, (1e8 - 1e8) + 1 is 1.
  const Tensor x = kept_with({1}, {1, 1});
  const auto hand = [&](const std::vector<float>& order) {
    for (float number : order) {
      Tape::Scope scope(tape);
      const Tensor dy = tape.scratch({1, 1}, DType::f32);
      *dy.as<float>() = number;
      tape.weight_gradient(dy, x, param, 0);
      *dy.as<float>() = 7777;  // scratch is gone when the layer returns
    }
  };
  const auto gradient = [&] { return *param.gradient().as<float>(); };
  for (auto when : {Tape::WeightGradients::now, Tape::WeightGradients::later}) {
    tape.weight_gradients = when;
    for (const auto& [order, sum] :
         std::vector<std::pair<std::vector<float>, float>>{{{1, 1e8f, -1e8f}, 0}, {{1e8f, -1e8f, 1}, 1}}) {
      backend->fill({unit->gradients().accumulators(0), 0});
      hand(order);
      if (when == Tape::WeightGradients::later) {
        EXPECT_EQ(gradient(), 0) << "nothing has run yet";
      }
      tape.run_weight_gradients();
      EXPECT_EQ(gradient(), sum);
      tape.run_weight_gradients();
      EXPECT_EQ(gradient(), sum) << "a product runs once";
    }
  }
}

TEST_F(TapeTest, RunsTheProductsOfSomeUnitsAndKeepsTheRest) {
  const auto first = weight("first", 1, 1), second = weight("second", 1, 1);
  tape.weight_gradients = Tape::WeightGradients::later;
  const Tensor x = kept_with({1}, {1, 1}), dy = kept_with({2}, {1, 1});
  for (Unit* unit : {first.get(), second.get(), first.get()}) tape.weight_gradient(dy, x, {unit, 0, 0}, 0);
  tape.run_weight_gradients({second.get()});
  EXPECT_EQ(*first->gradients().of(0, 0, 0).as<float>(), 0);
  EXPECT_EQ(*second->gradients().of(0, 0, 0).as<float>(), 2);
  tape.run_weight_gradients({first.get()});
  EXPECT_EQ(*first->gradients().of(0, 0, 0).as<float>(), 4);
  tape.run_weight_gradients();
  EXPECT_EQ(*second->gradients().of(0, 0, 0).as<float>(), 2);
}

TEST_F(TapeTest, GradientsThatWaitTakeThePlaceOfWhatNobodyReads) {
  const auto unit = weight("w", 1, 2);
  const Param param{unit.get(), 0, 0};
  constexpr std::size_t beside = 1 << 12;
  const auto lies_beside = [&](const Tensor& t) { return kept.offset_of(t.data) >= beside; };
  tape.weight_gradients = Tape::WeightGradients::later;
  const Tensor x = kept_with({1, 2}, {1, 2}), dead = kept_with({3, 4}, {1, 2}),
               large = tape.keep({100, 1}, DType::f32), dy = tape.scratch({1, 2}, DType::f32);
  tape.segments().lay(TapeSegments::beside, beside, 2 * beside);
  tape.segments().enter(TapeSegments::beside);
  for (const Tensor& t : {dead, dead, large}) tape.gives_up(t);
  const Tensor first = tape.lasting(dy), second = tape.lasting(dy);
  EXPECT_EQ(first.data, dead.data);
  EXPECT_TRUE(lies_beside(second)) << "a place is given up once, and is as large as what takes it";
  EXPECT_TRUE(lies_beside(tape.made_again({1, 2}, DType::f32)));
  tape.weight_gradient(kept_with({2}, {1, 1}), x, param, 0);
  tape.gives_up(x);
  EXPECT_NE(tape.lasting(dy).data, x.data) << "a product that was put off reads it";
  tape.run_weight_gradients();
  EXPECT_EQ(param.gradient().as<float>()[1], 4);
  tape.weight_gradients = Tape::WeightGradients::now;
  EXPECT_EQ(tape.lasting(dy).data, dy.data);
}

TEST_F(TapeTest, TapesInOneArenaKeepToTheirRooms) {
  Tape other(*backend, kept, scratch);
  tape.segments().lay(TapeSegments::own_room, 0, 1024);
  const Tensor a = kept_with({1, 2}, {2});
  other.segments().lay(TapeSegments::own_room, 2048, 3072);
  const Tensor b = other.keep({2}, DType::f32);
  EXPECT_EQ(kept.offset_of(a.data), 0u);
  EXPECT_EQ(kept.offset_of(b.data), 2048u);
  EXPECT_EQ(kept.offset_of(kept_with({3}, {1}).data), 256u);
  tape.keep({128}, DType::f32);
  EXPECT_THROW(tape.keep({1}, DType::f32), Error) << "its room is full";
}

TEST_F(TapeTest, SegmentsOfBlocksMayComeBackElsewhere) {
  constexpr int first = TapeSegments::first_of_blocks, second = first + 1;
  tape.segments().have(second + 1);
  tape.segments().lay(TapeSegments::own_room, 0, 1024);
  tape.segments().lay(first, 1024, 2048);
  tape.segments().lay(second, 2048, 3072);
  tape.save(kept_with({1, 2}, {2}));
  tape.segments().enter(first, second);
  tape.save(kept_with({3, 4}, {2}));
  tape.segments().gives_last(true);
  const Tensor output = tape.output({2}, DType::f32);
  EXPECT_EQ(kept.offset_of(output.data), 2048u) << "the next block's segment has what enters it";
  tape.segments().gives_last(false);
  EXPECT_EQ(kept.offset_of(tape.output({2}, DType::f32).data), 1280u);
  EXPECT_EQ(kept.offset_of(tape.output_for_all({2}, DType::f32).data), 256u);
  EXPECT_EQ(tape.segments().taken(first), (std::pair<std::size_t, std::size_t>(1024, 1536)));

  std::memcpy(kept.address_of(4096), kept.address_of(1024), 512);
  tape.segments().lay(first, 4096, 5120);
  const Tensor back = tape.restore();
  EXPECT_EQ(kept.offset_of(back.data), 4096u);
  EXPECT_EQ(back.as<float>()[1], 4);
  EXPECT_EQ(tape.restore().as<float>()[0], 1);
  EXPECT_THROW(tape.keep({300}, DType::f32), Error) << "its slot is full";
  tape.clear();
  EXPECT_EQ(tape.segments().taken(first).first, tape.segments().taken(first).second);
}

TEST_F(TapeTest, ForgetsEverythingWhenAMicroBatchIsGivenUp) {
  const auto unit = weight("w", 1, 1);
  tape.weight_gradients = Tape::WeightGradients::later;
  const Tensor x = kept_with({1}, {1, 1});
  tape.save(x);
  tape.weight_gradient(x, x, {unit.get(), 0, 0}, 0);
  tape.clear();
  EXPECT_EQ(tape.saved(), 0u);
  EXPECT_EQ(kept.mark(), 0u);
  tape.run_weight_gradients();
  EXPECT_EQ(*unit->gradients().of(0, 0, 0).as<float>(), 0);
}

TEST_F(TapeTest, KeepsOneCacheForEachLayerForAWholeGeneration) {
  tape.mode = Tape::Mode::generate;
  const int one = 0, other = 0;
  const Tensor cache = tape.caches.of(&one, {4, 8}, DType::f32);
  EXPECT_EQ(tape.caches.of(&one, {4, 8}, DType::f32).data, cache.data);
  EXPECT_NE(tape.caches.of(&other, {4, 8}, DType::f32).data, cache.data);
  tape.clear();
  EXPECT_EQ(tape.caches.of(&one, {4, 8}, DType::f32).data, cache.data)
      << "a prompt is read in several passes";
  EXPECT_THROW(Tape(*backend, kept, scratch).caches.of(&one, {4, 8}, DType::f32), Error)
      << "a tape of training has no room for caches";
}

/// Takes what it saves back only once: as a forward whose backward forgets a tensor would.
class Forgetful final : public Layer {
 public:
  Boundary forward(Boundary in, Tape& tape) override {
    tape.save(in.activation);
    tape.save(in.activation);
    return in;
  }
  Boundary backward(Boundary dout, Tape& tape) override {
    tape.restore();
    return dout;
  }
};

TEST_F(TapeTest, ShowsALayerThatTakesLessBackThanItSaved) {
  Forgetful layer;
  const Boundary b{tape.output({1, 1, 4}, DType::f32), {}};
  layer.backward(layer.forward(b, tape), tape);
  EXPECT_EQ(tape.saved(), 1u);
}

TEST_F(TapeTest, IsLeftByARecomputedBlockAsItWasFound) {
  /// Saves one tensor of its own and gives its input on.
  class Plain final : public Layer {
   public:
    Boundary forward(Boundary in, Tape& tape) override {
      tape.save(tape.keep({64}, DType::f32));
      modes.push_back(tape.mode);
      return {tape.output(in.activation.shape, in.activation.dtype), {}};
    }
    Boundary backward(Boundary dout, Tape& tape) override {
      tape.restore();
      return dout;
    }
    std::vector<Tape::Mode> modes;
  };
  auto inner = std::make_unique<Plain>();
  Plain& plain = *inner;
  Recompute block(std::move(inner));
  const Boundary b{tape.output({1, 1, 4}, DType::f32), {}};
  const std::size_t begin = tape.segments().mark();
  const Boundary out = block.forward(b, tape);
  EXPECT_EQ(tape.saved(), 1u) << "its input, and nothing of the block's own";
  const std::size_t behind = tape.segments().mark();
  block.backward(out, tape);
  EXPECT_EQ(tape.saved(), 0u);
  EXPECT_EQ(tape.segments().mark(), begin) << "nobody reads what lies above the block's input";
  EXPECT_EQ(tape.segments().most(TapeSegments::own_room), begin + 256 + 256)
      << "the second pass has the place of the output";
  EXPECT_EQ(plain.modes, (std::vector{Tape::Mode::discard, Tape::Mode::train}));

  block.forward(b, tape);
  tape.weight_gradients = Tape::WeightGradients::later;
  block.backward(out, tape);
  EXPECT_EQ(tape.segments().mark(), behind) << "products that were put off may read what lies above";
  EXPECT_EQ(tape.mode, Tape::Mode::train);
}

}  // namespace
}  // namespace mindpipe
