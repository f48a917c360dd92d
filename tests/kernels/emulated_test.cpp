#include "emulated/emulated_backend.h"

#include <gtest/gtest.h>

#include <ctime>

#include "core/check.h"
#include "core/clock.h"
#include "core/memory.h"

namespace mindpipe {
namespace {

struct EmulatedTest : ::testing::Test {
  Memory memory{Memory::Kind::counted};
  Tensor tensor(const Shape& shape, DType dtype = DType::f32) {
    return {memory.allocate(bytes_for(shape, dtype), MemoryClass::activations), shape, dtype};
  }
};

TEST_F(EmulatedTest, PricesAProductByItsOperationsOrItsBytesWhicheverTakesLonger) {
  EmulatedBackend backend(memory, {"slow", 1e9, 2e9, 1e9, 1e-6});
  backend.linear({.x = tensor({64, 128}), .w = tensor({256, 128}), .y = tensor({64, 256})});
  EXPECT_NEAR(backend.seconds(), 1e-6 + 2.0 * 64 * 128 * 256 / 1e9, 1e-12);
  EXPECT_EQ(backend.operations(), 2.0 * 64 * 128 * 256);
  const double before = backend.seconds();
  backend.add({tensor({1000}), tensor({1000}), tensor({1000})});
  EXPECT_NEAR(backend.seconds() - before, 1e-6 + 12000 / 1e9, 1e-12);
}

TEST_F(EmulatedTest, ReadsLogitsTwiceWhereABlockOfTheDeviceHasNoRoomForTheirRow) {
  const auto reads_of = [&](const char* device, std::int64_t vocabulary, DType dtype) {
    EmulatedBackend backend(memory, describe_device(device), true);
    const Tensor logits = tensor({8, vocabulary}, wide(dtype)), rows = tensor({8}, wide(dtype));
    double read = 0;
    backend.on_operation([&](const PricingBackend::Asked& one) { read += one.read; });
    backend.softmax_cross_entropy({logits, vocabulary, tensor({8}, DType::i32), 1, 0, vocabulary, rows,
                                   tensor({3, 8}, wide(dtype)), rows, tensor({8, vocabulary}, dtype)});
    return read / static_cast<double>(logits.bytes());
  };
  EXPECT_EQ(reads_of("h100", 226 * 256, DType::bf16), 1);
  EXPECT_EQ(reads_of("h100", 226 * 256 + 1, DType::bf16), 2);
  EXPECT_EQ(reads_of("h100", 226 * 256, DType::f64), 2);
  EXPECT_EQ(reads_of("a100", 162 * 256, DType::bf16), 1);
  EXPECT_EQ(reads_of("a100", 162 * 256 + 1, DType::bf16), 2) << "GPT-2's 50,257 words among them";
}

TEST_F(EmulatedTest, PricesPickedRowsByWhatIsPickedAndPicturesByTheirBytes) {
  EmulatedBackend backend(memory, {"slow", 1e9, 2e9, 1e9, 0});
  const auto price_of = [&](const auto& operation) {
    const double before = backend.seconds();
    operation();
    return (backend.seconds() - before) * 1e9;
  };
  const Tensor x = tensor({2, 512, 64}), y = tensor({2, 16, 64}), rows = tensor({2, 16}, DType::i32);
  EXPECT_NEAR(price_of([&] { backend.pick_rows({x, rows, y}); }), 128 + 2 * 8192, 1e-3);
  EXPECT_NEAR(price_of([&] { backend.put_rows({y, rows, 0, x}); }), 128 + 8192 + 262144, 1e-3);
  EXPECT_NEAR(price_of([&] {
                backend.patches({tensor({2, 64}, DType::u8), {1, 8, 8, 4}, 1, tensor({2, 5, 16})});
              }),
              128 + 640, 1e-3);
}

TEST_F(EmulatedTest, PricesConvolutionsByTheirTapsOrTheirBytes) {
  EmulatedBackend slow(memory, {"slow", 1e9, 2e9, 1e9, 0});
  const Tensor x = tensor({2, 100, 64}), y = tensor({2, 100, 64}), few = tensor({1, 64}),
               many = tensor({15, 64}), wide = tensor({2, 100, 3 * 64});
  const auto price_of = [&](const auto& operation) {
    const double before = slow.seconds();
    operation();
    return (slow.seconds() - before) * 1e9;
  };
  EXPECT_NEAR(price_of([&] { slow.depthwise({x, few, {}, {1, false}, y}); }), 2 * 51200 + 256, 1e-3);
  EXPECT_NEAR(price_of([&] { slow.depthwise({x, many, {}, {15, true}, y}); }), 2 * 15 * 12800, 1e-3);
  EXPECT_NEAR(price_of([&] { slow.row_neighbours({x, {}, {3, false}, wide}); }), 4 * 51200, 1e-3);
  EXPECT_NEAR(price_of([&] { slow.gate({tensor({2, 100, 128}), y}); }), 3 * 51200, 1e-3);
  const Tensor taps = tensor({81, 64});
  EXPECT_NEAR(price_of([&] { slow.pixel_depthwise({x, taps, {10, 10, 9, 1, 1}, y}); }), 2 * 81 * 12800, 1e-3);
  EXPECT_NEAR(price_of([&] { slow.pool({PoolKind::average, x, {10, 10, 3, 1, 1}, y}); }), 2 * 51200, 1e-3);
}

TEST_F(EmulatedTest, PricesGradientsAsIntegersByTheirBytes) {
  EmulatedBackend slow(memory, {"slow", 1e9, 2e9, 1e9, 0});
  const Tensor gradient = tensor({1000}), totals = tensor({1000}, DType::i64),
               marks = tensor({1}, DType::i64);
  const auto price_of = [&](const auto& operation) {
    const double before = slow.seconds();
    operation();
    return (slow.seconds() - before) * 1e9;
  };
  EXPECT_NEAR(price_of([&] { slow.add_as_integers({gradient, totals, marks}); }), 24000, 1e-3);
  EXPECT_NEAR(price_of([&] { slow.from_integers({totals, marks, gradient}); }), 20000, 1e-3);
  EXPECT_NEAR(price_of([&] { slow.add({totals, totals, totals}); }), 24000, 1e-3);
}

TEST_F(EmulatedTest, NamesTheDevicesItKnows) {
  EXPECT_EQ(describe_device("h200").name, "h200");
  try {
    describe_device("b200");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("bundled devices: h200, h100, a100, core, instant"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(EmulatedTest, HostMemoryIsRefused) {
  Memory host(Memory::Kind::host);
  EXPECT_THROW(EmulatedBackend(host, describe_device("core")), Error);
}

}  // namespace
}  // namespace mindpipe
