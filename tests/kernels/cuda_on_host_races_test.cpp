#include <gmock/gmock.h>

#include <numeric>

#include "cuda/launch.h"
#include "kernels/cuda_on_host/planted.h"
#include "kernels/on_a_stream.h"

/// The runtime of cuda_on_host notices what a GPU would not bear, in whatever order threads run.
using namespace mindpipe;
using namespace mindpipe::testing;
using planted::Mistake;

namespace {

std::vector<float> numbers() {
  std::vector<float> x(planted::threads);
  std::iota(x.begin(), x.end(), 1.0f);
  return x;
}

/// What the runtime says of the kernel with this mistake.
std::vector<std::string> complaints_of(Mistake mistake, on_host::Order order, std::vector<float>& y) {
  const std::vector<float> x = numbers();
  const on_host::Complaints complaints;
  on_host::run_in(order);
  on_a_stream([&](cudaStream_t stream) {
    cuda::launch(stream, {.x = 2, .threads = planted::threads, .shared_bytes = planted::threads},
                 planted::hand_over, mistake, x.data(), y.data(), 0);
  });
  on_host::run_in({});
  return complaints.all;
}

const on_host::Order orders[] = {{},          {.backwards = true}, {.seed = 1}, {.seed = 2},
                                 {.seed = 3}, {.seed = 4},         {.seed = 5}, {.seed = 6}};

/// In every order something is said that this regular expression describes.
void expect_noticed(Mistake mistake, const std::string& sentence) {
#ifdef MINDPIPE_UNWATCHED
  GTEST_SKIP() << "a sanitizer has the kernels to itself";
#endif
  for (const on_host::Order order : orders) {
    std::vector<float> y(planted::threads);
    EXPECT_THAT(complaints_of(mistake, order, y), ::testing::Contains(::testing::ContainsRegex(sentence)))
        << "seed " << order.seed;
  }
}

TEST(CudaRaces, WhatIsRightIsSilent) {
  for (const on_host::Order order : orders) {
    std::vector<float> y(planted::threads);
    EXPECT_THAT(complaints_of(Mistake::none, order, y), ::testing::IsEmpty());
    EXPECT_EQ(y, numbers());
  }
}

TEST(CudaRaces, ReadingBeforeTheBarrierOfTheBlock) {
  const std::string sentence = "no barrier is between them|no thread of its block has written";
  expect_noticed(Mistake::read_before_barrier, sentence);
  expect_noticed(Mistake::barrier_of_warp_only, sentence);
}
TEST(CudaRaces, WritingWhatOthersStillRead) {
  expect_noticed(Mistake::write_before_barrier, "no barrier is between them");
  expect_noticed(Mistake::lanes_write_before_barrier, "no barrier is between them");
}
TEST(CudaRaces, AShuffleIsNoBarrier) {
  expect_noticed(Mistake::shuffle_for_a_barrier,
                 "no barrier is between them|no thread of its block has written");
}
TEST(CudaRaces, TwoWritersOfOnePlace) {
  expect_noticed(Mistake::two_writers, "writes shared memory that is written by thread");
}
TEST(CudaRaces, ReadingWhatNobodyHasWritten) {
  expect_noticed(Mistake::read_unwritten, "reads shared memory that no thread of its block has written");
}
TEST(CudaRaces, BarriersThatNotAllComeTo) {
  expect_noticed(Mistake::barrier_for_some, "waits for others of its block that do not come");
  expect_noticed(Mistake::other_instruction, "lanes of a warp meet for");
}
TEST(CudaRaces, AddressesOfAccesses) {
  expect_noticed(Mistake::beyond_shared_memory, "reaches beyond its shared memory");
  expect_noticed(Mistake::unaligned, "moves 8 bytes at an address that is no multiple of it");
}

TEST(CudaRaces, OperandsThatAKernelMayTouch) {
#ifdef MINDPIPE_UNWATCHED
  GTEST_SKIP() << "a sanitizer has the kernels to itself";
#endif
  std::vector<float> y(planted::threads);
  std::vector<on_host::Extent> operands = {{y.data(), y.size() * sizeof(float)}};
  const on_host::Within within(operands);
  EXPECT_THAT(complaints_of(Mistake::none, {}, y),
              ::testing::Contains(::testing::HasSubstr("beyond every operand")))
      << "x is no operand here";
  EXPECT_TRUE(operands[0].low == 0 && operands[0].high == operands[0].bytes);
}

/// Whether the runtime takes a launch with so many threads, and so many bytes of shared memory.
template <class Kernel>
bool is_taken(Kernel kernel, int threads, std::size_t shared_bytes = 0) {
  bool taken = false;
  on_a_stream([&](cudaStream_t stream) {
    cuda::launch(stream, {.x = 1, .threads = threads, .shared_bytes = shared_bytes}, kernel);
    taken = cudaGetLastError() == cudaSuccess;
  });
  return taken;
}

TEST(CudaLaunches, HaveAsManyThreadsAsTheKernelsBoundsAllow) {
  EXPECT_TRUE(is_taken(planted::with_32_threads, 32) && is_taken(planted::with_96_threads, 96) &&
              is_taken(planted::with_512_threads, 512) && is_taken(planted::with_any_threads, 1024));
  EXPECT_FALSE(is_taken(planted::with_32_threads, 64));
  EXPECT_FALSE(is_taken(planted::with_96_threads, 128));
  EXPECT_FALSE(is_taken(planted::with_512_threads, 544));
  EXPECT_FALSE(is_taken(planted::with_any_threads, 1056));
}

TEST(CudaLaunches, HaveAsMuchSharedMemoryAsWasAskedFor) {
  constexpr int usual = 48 << 10, most = 227 << 10;
  EXPECT_TRUE(is_taken(planted::with_32_threads, 32, usual));
  EXPECT_FALSE(is_taken(planted::with_32_threads, 32, usual + 16));
  ASSERT_EQ(cudaFuncSetAttribute(planted::with_32_threads, cudaFuncAttributeMaxDynamicSharedMemorySize, most),
            cudaSuccess);
  EXPECT_TRUE(is_taken(planted::with_32_threads, 32, most));
  EXPECT_FALSE(is_taken(planted::with_512_threads, 32, usual + 16)) << "asked for by another kernel";
  EXPECT_NE(
      cudaFuncSetAttribute(planted::with_32_threads, cudaFuncAttributeMaxDynamicSharedMemorySize, most + 1),
      cudaSuccess);
  cudaGetLastError();
}

}  // namespace
