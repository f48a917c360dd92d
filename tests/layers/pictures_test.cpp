#include "layers/pictures.h"

#include "gradient_check.h"
#include "layers/pool2d.h"

namespace mindpipe::testing {
namespace {

/// Pictures of an activation's rows, and what a layer of tests is about.
Setting pixels_of(const PixelWindow& w, std::int64_t channels = 8) {
  Setting setting;
  setting.rows = w.pixels();
  setting.width = channels;
  setting.step = 1e-5;
  return setting;
}
const std::vector<PixelWindow> windows{{5, 3, 1, 1, 1}, {5, 3, 1, 2, 1}, {5, 3, 3, 1, 1},
                                       {5, 3, 3, 2, 1}, {7, 5, 3, 1, 2}, {4, 6, 3, 2, 2}};
std::string text_of(const PixelWindow& w) {
  return fmt::format("side {} stride {} dilation {} on {} x {}", w.side, w.stride, w.dilation, w.height,
                     w.width);
}

/// A convolution as a layer that saves what enters it.
template <class Conv>
class ConvLayer final : public Layer {
 public:
  ConvLayer(const LayerContext& context, Unit& unit, const Conv2DSpec& spec)
      : spec_(spec), conv_(context, unit, spec) {}
  Boundary forward(Boundary in, Tape& tape) override {
    const Tensor x = in.activation,
                 y = tape.output({x.shape[0], spec_.window.windows(), spec_.outputs}, x.dtype);
    conv_.forward(x, as_given(y), tape);
    tape.save(x);
    return {y, {}};
  }
  Boundary backward(Boundary dout, Tape& tape) override {
    const Tensor x = tape.restore(), dx = tape.scratch(x.shape, x.dtype);
    conv_.backward(as_given(dout.activation), x, as_given(dx), tape);
    return {dx, {}};
  }

 private:
  static Tensor as_given(const Tensor& t) {
    if constexpr (std::is_same_v<Conv, SeparableConv2D>) return t;
    else return t.reshaped({1, t.shape[0], t.shape[1], t.shape[2]});
  }
  Conv2DSpec spec_;
  Conv conv_;
};
template <class Conv>
Subject::Build conv(const PixelWindow& w) {
  return [=](Subject& s) {
    s.add(std::make_unique<ConvLayer<Conv>>(s.context(), s.unit("unit"),
                                            Conv2DSpec{"conv", s.setting().width, 12, w, Split::none, 0.3}));
  };
}

class PoolLayer final : public Layer {
 public:
  PoolLayer(const LayerContext& context, PoolKind kind, const PixelWindow& w)
      : window_(w), pool_(context, kind, w) {}
  Boundary forward(Boundary in, Tape& tape) override {
    const Tensor x = in.activation, y = tape.output({x.shape[0], window_.windows(), x.shape[2]}, x.dtype);
    pool_.forward(x, y, tape);
    return {y, {}};
  }
  Boundary backward(Boundary dout, Tape& tape) override {
    const Tensor dy = dout.activation,
                 dx = tape.scratch({dy.shape[0], window_.pixels(), dy.shape[2]}, dy.dtype);
    pool_.backward(dy, dx, tape);
    return {dx, {}};
  }

 private:
  PixelWindow window_;
  Pool2D pool_;
};

class PixelNormLayer final : public Layer {
 public:
  PixelNormLayer(const LayerContext& context, Unit& unit, bool relu, std::int64_t channels)
      : norm_(context, unit, "norm", Split::none, {channels, relu}) {}
  Boundary forward(Boundary in, Tape& tape) override {
    const Tensor y = tape.output(in.activation.shape, in.activation.dtype);
    norm_.forward(in.activation, y, tape);
    return {y, {}};
  }
  Boundary backward(Boundary dout, Tape& tape) override {
    norm_.backward(dout.activation, {}, dout.activation, tape);
    return dout;
  }

 private:
  BatchNorm norm_;
};
Subject::Build norm(bool relu) {
  return [=](Subject& s) {
    s.add(std::make_unique<PixelNormLayer>(s.context(), s.unit("unit"), relu, s.setting().width));
  };
}

Subject::Build block(const PixelWindow& w, std::int64_t outputs) {
  return [=](Subject& s) {
    s.add(std::make_unique<PictureBlock>(s.context(), s.unit("block"),
                                         PictureBlockSpec{s.setting().width, outputs, w}));
  };
}

TEST(PictureGradients, OfConvolutions) {
  for (const PixelWindow& w : windows) {
    SCOPED_TRACE(text_of(w));
    check_gradients(pixels_of(w), conv<Conv2D>(w));
    check_gradients(pixels_of(w), conv<SeparableConv2D>(w));
  }
}

TEST(PictureGradients, OfPools) {
  for (PixelWindow w : windows)
    for (PoolKind kind : {PoolKind::average, PoolKind::maximum}) {
      w.dilation = 1;
      SCOPED_TRACE(text_of(w));
      Setting setting = pixels_of(w);
      setting.step = 1e-6;
      check_gradients(setting, [=](Subject& s) { s.add(std::make_unique<PoolLayer>(s.context(), kind, w)); });
    }
}

TEST(PictureGradients, OfBatchNorm) {
  for (bool relu : {false, true}) check_gradients(pixels_of({5, 3, 3, 1, 1}), norm(relu));
}

TEST(PictureGradients, OfBlocksThatKeepAndThatChangeTheirExtents) {
  for (const PixelWindow& w :
       {PixelWindow{5, 3, 3, 1, 1}, PixelWindow{5, 3, 3, 2, 1}, PixelWindow{4, 6, 3, 2, 1}})
    for (std::int64_t outputs : {8, 12}) {
      if (outputs == 8 && w.height == 4) continue;
      SCOPED_TRACE(text_of(w));
      check_gradients(pixels_of(w), block(w, outputs));
    }
  check_rounding(pixels_of({6, 6, 3, 2, 1}, 16), block({6, 6, 3, 2, 1}, 32));
}

TEST(BatchNormLayer, GivesTheStatisticsOfItsMicroBatchToThoseThatRun) {
  const Setting setting = pixels_of({5, 3, 3, 1, 1});
  Subject subject(setting, norm(true));
  subject.gradients();
  const std::vector<double>&mean = subject.batch_statistics.at("unit.norm.running_mean"),
        &variance = subject.batch_statistics.at("unit.norm.running_var"),
        &x = subject.values.at("input.activation");
  const std::int64_t channels = setting.width, rows = static_cast<std::int64_t>(x.size()) / channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < rows; ++i) sum += x[i * channels + c];
    for (std::int64_t i = 0; i < rows; ++i) squares += std::pow(x[i * channels + c] - sum / rows, 2);
    EXPECT_NEAR(mean[c], sum / rows, 1e-12);
    EXPECT_NEAR(variance[c], squares / (rows - 1), 1e-12) << "the unbiased one";
  }
}

TEST(BatchNormLayer, RefusesAMicroBatchOfOneValue) {
  Setting setting = pixels_of({1, 1, 3, 1, 1});
  setting.samples = 1;
  Subject subject(setting, norm(false));
  try {
    subject.gradients();
    FAIL() << "one value has no variance";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("one value of each channel"));
  }
}

TEST(Pictures, RefuseWindowsWithoutAMiddleAndChannelsThatAreNotCut) {
  const auto refusal = [](const Subject::Build& build, int logical = 1) -> std::string {
    try {
      Setting setting;
      setting.shards = logical;
      Subject subject(setting, build);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_configuration);
      return error.what();
    }
    return "built";
  };
  const std::string middle = " on 8 x 8 pixels (an odd side up to 15 has a pixel in its middle)";
  for (int side : {0, 2, 17}) {
    const PixelWindow w{8, 8, side, 1, 1};
    const std::string sides = fmt::format("windows of {} x {} pixels, stride 1, dilation 1,", side, side);
    EXPECT_EQ(refusal(conv<Conv2D>(w)), "conv: " + sides + middle);
    EXPECT_EQ(refusal(conv<SeparableConv2D>(w)), "conv: " + sides + middle);
    EXPECT_EQ(
        refusal([&](Subject& s) { s.add(std::make_unique<PoolLayer>(s.context(), PoolKind::average, w)); }),
        "pool: " + sides + middle);
  }
  for (Split split : {Split::in, Split::out})
    EXPECT_EQ(refusal(
                  [&](Subject& s) {
                    Conv2D(s.context(), s.unit("unit"), {"conv", 16, 16, {8, 8, 3, 1, 1}, split, 0.3});
                  },
                  3),
              "conv: 16 channels to 16 are not cut by reproducible.tensor=3");
}

TEST(Convolutions, OfSamplesAloneHaveTheBitsOfAllOfThem) {
  // More neighbours than exist at once: 3 samples of 1.1 or 2.3 MiB each, beside one alone.
  const PixelWindow w{32, 32, 3, 1, 1};
  for (DType dtype : {DType::f32, DType::bf16}) {
    Memory memory(Memory::Kind::host);
    const auto backend = make_cpu_backend(memory, 2, "auto");
    Communicator tensor(*backend, 1);
    const LayerContext context{*backend, tensor, dtype, false, 5};
    Unit unit("unit");
    Conv2D layer(context, unit, {"conv", 64, 16, w});
    unit.lay_out({1, 1, 0}, 1, 0, dtype);
    unit.allocate_values(memory);
    Arena kept(memory, MemoryClass::activations, 32 << 20), scratch(memory, MemoryClass::workspace, 32 << 20);
    Tape tape(*backend, kept, scratch);
    const auto drawn = [&](const Tensor& t, const char* name) {
      const std::vector<double> numbers = normals(name, t.count(), 1);
      backend->convert({{const_cast<double*>(numbers.data()), {t.count()}, DType::f64}, t});
    };
    drawn(unit.flat_values(), "w");
    const Tensor x = tape.output({3, 1024, 64}, dtype), all = tape.output({1, 3, 1024, 16}, dtype),
                 one = tape.output({1, 1, 1024, 16}, dtype);
    drawn(x, "x");
    layer.forward(x, all, tape);
    for (std::int64_t s = 0; s < 3; ++s) {
      layer.forward(x.at(s).reshaped({1, 1024, 64}), one, tape);
      EXPECT_EQ(std::memcmp(one.data, all.at(0).at(s).data, one.bytes()), 0) << "sample " << s;
    }
    EXPECT_LT(scratch.peak(), std::size_t{3} * 1024 * 9 * 64 * bytes_of(dtype))
        << "the neighbours of a whole micro-batch exist at no time";
  }
}

}  // namespace
}  // namespace mindpipe::testing
