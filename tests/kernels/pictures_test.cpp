#include "kernels/operand.h"

using namespace mindpipe;
using namespace mindpipe::testing;

namespace {

const PictureShape colours{3, 8, 12, 4, {0.5f, 0.4f, 0.3f}, {0.5f, 0.25f, 0.2f}};

Operand some_pictures(const PictureShape& p, std::int64_t samples) {
  Operand bytes({samples, p.channels * p.height * p.width}, DType::u8);
  for (std::int64_t i = 0; i < bytes.count(); ++i) bytes.set(i, static_cast<double>(i * i * 31 % 256));
  return bytes;
}

}  // namespace

TEST(Patches, AreTheBytesOfTheirSquareNormalisedByChannel) {
  for_every_kind([](const Cpu& cpu, DType dtype) {
    for (const PictureShape& p : {colours, PictureShape{1, 28, 28, 7, {0.1f}, {0.3f}}})
      for (std::int64_t first_row : {0, 1}) {
        const std::int64_t samples = 2, rows = p.patches() + 3, cols = p.patch_size();
        const Operand pictures = some_pictures(p, samples);
        Operand y = Operand::random({samples, rows, cols}, dtype, "stale");
        cpu->patches({pictures, p, first_row, y});
        std::vector<double> want(static_cast<std::size_t>(y.count()));
        for (std::int64_t s = 0; s < samples; ++s)
          for (std::int64_t c = 0; c < p.channels; ++c)
            for (std::int64_t down = 0; down < p.height; ++down)
              for (std::int64_t right = 0; right < p.width; ++right) {
                const std::int64_t patch = down / p.side * (p.width / p.side) + right / p.side,
                                   column = (c * p.side + down % p.side) * p.side + right % p.side;
                const double byte = pictures[((s * p.channels + c) * p.height + down) * p.width + right];
                want[static_cast<std::size_t>((s * rows + first_row + patch) * cols + column)] =
                    (byte / 255 - static_cast<double>(p.mean[c])) / static_cast<double>(p.deviation[c]);
              }
        expect_close(y, want);
      }
  });
}

TEST(Patches, ThreadsDoNotChangeABit) {
  expect_same_bits_on_threads([](const Cpu& cpu, DType dtype) {
    const PictureShape p{3, 224, 224, 16, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}};
    std::vector<Operand> out{Operand({1, 200, p.patch_size()}, dtype)};
    cpu->patches({some_pictures(p, 1), p, 1, out[0]});
    return out;
  });
}

TEST(Patches, OfPicturesThatDoNotFitAreRefused) {
  const Cpu cpu;
  PictureShape p = colours;
  const Operand pictures = some_pictures(p, 2);
  EXPECT_THROW(cpu->patches({pictures, p, 1, Operand({2, p.patches(), p.patch_size()}, DType::f32)}), Error)
      << "no row is left for the last patch";
  EXPECT_THROW(cpu->patches({pictures, p, 0, Operand({2, p.patches(), p.patch_size() + 1}, DType::f32)}),
               Error);
  EXPECT_THROW(cpu->patches({pictures, p, 0, Operand({1, p.patches(), p.patch_size()}, DType::f32)}), Error);
  p.side = 5;
  EXPECT_THROW(cpu->patches({pictures, p, 0, Operand({2, 2, 75}, DType::f32)}), Error);
}
