// ranks: 2
#include "app/run/agreement.h"
#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/check.h"

namespace mindpipe {
namespace {

/// What this rank is told where rank 0 has a unit for bf16 and rank 1 has none.
std::string refusal(Precision precision) {
  World world{MPI_COMM_WORLD};
  MPI_CHECK(MPI_Comm_rank(world.comm, &world.rank));
  MPI_CHECK(MPI_Comm_size(world.comm, &world.size));
  try {
    Config config;
    config.train.precision = precision;
    const char* const kernels = world.rank == 0 ? "cpu: avx512+bf16, 2 threads" : "cpu: avx512, 1 thread";
    require_same_arithmetic(world, RunArithmetic(config, kernels, ""));
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    MPI_CHECK(MPI_Barrier(world.comm));  // the others wait there for the job to be ended
    return error.what();
  }
  return "";
}

TEST(Agreement, OnAUnitForBf16IsAskedForInBf16Only) {
  EXPECT_EQ(refusal(Precision::f32), "");
  int rank = 0;
  MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  const std::string sentence = refusal(Precision::bf16);
  if (rank == 0) {
    EXPECT_EQ(sentence, "");
  } else {
    EXPECT_THAT(sentence, testing::HasSubstr("kernels is cpu: avx2 or avx512 here "
                                             "and cpu: avx512+bf16 on rank 0"));
  }
}

}  // namespace
}  // namespace mindpipe
