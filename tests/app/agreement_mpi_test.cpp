// ranks: 2
#include "app/run/agreement.h"
#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/check.h"

namespace mindpipe {
namespace {

/// What this rank is told where rank 0 and rank 1 have these kernels.
std::string refusal(Precision precision, const char* of_rank_0, const char* of_rank_1) {
  World world{MPI_COMM_WORLD};
  MPI_CHECK(MPI_Comm_rank(world.comm, &world.rank));
  MPI_CHECK(MPI_Comm_size(world.comm, &world.size));
  try {
    Config config;
    config.train.precision = precision;
    require_same_arithmetic(world, RunArithmetic(config, world.rank == 0 ? of_rank_0 : of_rank_1, ""));
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    MPI_CHECK(MPI_Barrier(world.comm));  // the others wait there for the job to be ended
    return error.what();
  }
  return "";
}

TEST(Agreement, OnAUnitForBf16IsAskedForInBf16Only) {
  const char *const with = "cpu: avx512+bf16, 2 threads", *const without = "cpu: avx512, 1 thread";
  EXPECT_EQ(refusal(Precision::f32, with, without), "");
  int rank = 0;
  MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  const std::string sentence = refusal(Precision::bf16, with, without);
  if (rank == 0) {
    EXPECT_EQ(sentence, "");
  } else {
    EXPECT_THAT(sentence, testing::HasSubstr("kernels is cpu: avx2 or avx512 here "
                                             "and cpu: avx512+bf16 on rank 0"));
  }
}

TEST(Agreement, OnMultiprocessorsIsAskedForSinceTheyChooseAlgorithms) {
  const char* const whole = "cuda: H100 of 132 multiprocessors; driver 13.0; cuBLASLt 130100, GPU 0 (80 GiB)";
  EXPECT_EQ(refusal(Precision::bf16, whole,
                    "cuda: H100 of 132 multiprocessors; driver 13.0; cuBLASLt 130100, GPU 3 (64 GiB)"),
            "");
  const std::string sentence =
      refusal(Precision::bf16, whole,
              "cuda: H100 of 114 multiprocessors; driver 13.0; cuBLASLt 130100, GPU 1 (80 GiB)");
  int rank = 0;
  MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  if (rank == 0) {
    EXPECT_EQ(sentence, "");
  } else {
    EXPECT_THAT(sentence,
                testing::HasSubstr("kernels is cuda: H100 of 114 multiprocessors; driver 13.0; cuBLASLt "
                                   "130100 here and cuda: H100 of 132 multiprocessors"));
    EXPECT_THAT(sentence, testing::HasSubstr("take GPUs of one kind"));
  }
}

}  // namespace
}  // namespace mindpipe
