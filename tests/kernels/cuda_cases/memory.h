#pragma once
#include "kernels/cuda_cases/shared.h"

/// Copies, queues, and operands that are refused.

TEST_F(Cuda, MovesBytesAndKeepsQueuesInOrder) {
  const std::int64_t n = (std::int64_t{36} << 20) / 4 + 3;  // more than all blocks of pinned memory
  Backend& gpu = *pairing().gpu;
  Arena arena(pairing().memory, MemoryClass::workspace, 3 * aligned(static_cast<std::size_t>(4 * n)));
  const Tensor a = arena.take({n}, DType::i32), b = arena.take({n}, DType::i32);
  std::vector<std::int32_t> sent(static_cast<std::size_t>(n)), back(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::int32_t>(i * 2654435761u);
  const std::vector<std::int32_t> kept = sent;
  gpu.use_queue(Queue::copy_in);
  gpu.upload(sent.data(), a);
  std::fill(sent.begin(), sent.end(), 0);  // upload has taken what it needs
  const std::uint64_t arrived = gpu.record(Queue::copy_in);
  gpu.use_queue(Queue::compute);
  gpu.wait(Queue::compute, arrived);
  gpu.copy(a, b);
  const std::uint64_t copied = gpu.record(Queue::compute);
  gpu.use_queue(Queue::copy_out);
  gpu.wait(Queue::copy_out, copied);
  gpu.download(b, back.data());
  EXPECT_EQ(back, kept);
  for (int i = 0; i < 5000; ++i) gpu.record(static_cast<Queue>(i % 3));  // the ring goes round
  gpu.synchronize();
  EXPECT_TRUE(gpu.finished(arrived));
  gpu.wait(Queue::compute, arrived);
  gpu.use_queue(Queue::compute);
  std::vector<std::int32_t> host(static_cast<std::size_t>(n), 5);
  const Tensor ordinary{host.data(), {n}, DType::i32};
  gpu.copy(ordinary, a);  // from memory that the GPU does not know
  gpu.copy(b, ordinary);
  gpu.download(a, back.data());
  EXPECT_EQ(host, kept);
  EXPECT_EQ(back[0] + back.back(), 10);
}

TEST_F(Cuda, MarksTellHowLongAQueueTook) {
  const std::int64_t n = 1 << 16;
  Backend& gpu = *pairing().gpu;
  const Mirror x(pairing(), Operand({n}, DType::f32));
  gpu.keep_marks(5);
  const std::uint64_t lost = gpu.mark(Queue::compute), first = gpu.mark(Queue::compute);
  for (int i = 0; i < 50; ++i) gpu.fill({x.device(), static_cast<double>(i)});
  const std::uint64_t then = gpu.mark(Queue::compute);
  gpu.wait(Queue::copy_in, gpu.record(Queue::compute));
  const std::uint64_t elsewhere = gpu.mark(Queue::copy_in), last = gpu.mark(Queue::compute),
                      newest = gpu.mark(Queue::compute);
  gpu.synchronize();
  EXPECT_GT(gpu.nanoseconds_between(first, then), 1000);
  EXPECT_LT(gpu.nanoseconds_between(first, then), 1'000'000'000);
  EXPECT_GE(gpu.nanoseconds_between(then, elsewhere), 0);
  EXPECT_GE(gpu.nanoseconds_between(last, newest), 0);
  EXPECT_THROW(gpu.nanoseconds_between(lost, newest), Error) << "its place has been taken";
}

TEST_F(Cuda, RefusesOperandsThatDoNotFit) {
  const Mirror a(pairing(), Operand({8}, DType::f32)), shorter(pairing(), Operand({7}, DType::f32)),
      ids(pairing(), Operand({8}, DType::i32));
  Backend& gpu = *pairing().gpu;
  EXPECT_THROW(gpu.add({a.device(), shorter.device(), a.device()}), Error);
  EXPECT_THROW(gpu.add({ids.device(), ids.device(), ids.device()}), Error);
  gpu.use_queue(Queue::receive);
  EXPECT_THROW(gpu.count_not_finite(a.device()), Error) << "the workspace belongs to the compute queue";
  gpu.use_queue(Queue::compute);
}
