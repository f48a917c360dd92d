#include "cpu/simd/random_kernels.h"

#include "core/normal_center.h"
#include "cpu/simd/philox.h"

namespace mindpipe::MINDPIPE_ISA {
namespace {

constexpr int group = 4 * philox_group;  ///< words that are drawn at once

/// Deviates of a whole group of words, each as if it were common; the others are put in afterwards.
void deviates(const std::uint32_t* words, float (*tail)(std::uint32_t), float deviation, float* out) {
  double q[group];
  for (int i = 0; i < group; ++i) q[i] = (words[i] + 0.5) * 0x1p-32 - 0.5;
  for (int i = 0; i < group; ++i) out[i] = deviation * static_cast<float>(normal_center(q[i]));
  for (int i = 0; i < group; ++i)
    if (!(__builtin_fabs(q[i]) <= normal_center_edge)) out[i] = deviation * tail(words[i]);
}

void normals(const RandomWords& stream, float (*tail)(std::uint32_t), std::uint64_t first,
             std::uint64_t count, float deviation, float* out) {
  const PhiloxStream philox{{stream.key[0], stream.key[1]}, stream.step, stream.sample};
  alignas(64) std::uint32_t words[group];
  float some[group];
  int skipped = static_cast<int>(first % 4);  // words of the first block that lie before
  for (std::uint64_t block = first / 4, done = 0; done < count; block += philox_group, skipped = 0) {
    philox_words(philox, block, words);
    const std::uint64_t here =
        count - done < static_cast<std::uint64_t>(group - skipped) ? count - done : group - skipped;
    if (here == group) {
      deviates(words, tail, deviation, out + done);
    } else {
      deviates(words, tail, deviation, some);
      std::memcpy(out + done, some + skipped, here * sizeof(float));
    }
    done += here;
  }
}

}  // namespace

const RandomKernels random_kernels = {normals};

}  // namespace mindpipe::MINDPIPE_ISA
