// ranks: 1
#include <gtest/gtest.h>

#include <numeric>

#include "comm/device_transports.h"
#include "comm/waiting.h"
#include "core/memory.h"
#include "hardware.h"
#include "make_backend.h"
#include "runtime/styles.h"

// NCCL on the one GPU that a check has: communicators of one rank that send to themselves.
namespace mindpipe {
namespace {

TEST(NcclOfOneRank, SendsToItselfOnSeveralStreamsInTheOrderOfItsCalls) {
  if (device_of_tests() != DeviceKind::cuda || gpu_count() == 0)
    GTEST_SKIP() << "no GPU that the tests may use: " << gpu_devices();
  if (nccl_found() == 0) GTEST_SKIP() << "libnccl.so.2 cannot be opened here";
  constexpr int words = 1 << 16, rounds = 8;
  constexpr Queue queues[] = {Queue::compute, Queue::copy_in, Queue::copy_out};
  Memory memory(Memory::Kind::device);
  const auto backend = make_cuda_backend(memory, 0);
  Waiting waiting;
  const auto transports = make_nccl_transports(*backend, waiting);
  std::vector<std::unique_ptr<Transport>> links;
  for (const auto use : {Transports::Use::sums, Transports::Use::scalars, Transports::Use::channel})
    links.push_back(transports->among(MPI_COMM_SELF, use, "the test"));
  Arena arena(memory, MemoryClass::workspace, std::size_t{2} * links.size() * words * sizeof(std::int32_t));
  std::vector<std::int32_t> sent(words), got(words);
  std::vector<Tensor> from, to;
  for (std::size_t i = 0; i < links.size(); ++i) {
    from.push_back(arena.take({words}, DType::i32));
    to.push_back(arena.take({words}, DType::i32));
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < links.size(); ++i) {
      std::iota(sent.begin(), sent.end(), static_cast<int>(i) * words + round);
      backend->upload(sent.data(), from[i]);
    }
    backend->synchronize();
    for (std::size_t i = 0; i < links.size(); ++i) {
      backend->use_queue(queues[i]);
      using Parcel = Transport::Parcel;
      const std::size_t half = words * sizeof(std::int32_t) / 2;
      for (int part = 0; part < 2; ++part) {
        const auto at = [&](const Tensor& tensor) {
          return static_cast<std::byte*>(tensor.data) + static_cast<std::size_t>(part) * half;
        };
        const Parcel parcels[] = {{Parcel::Way::send, at(from[i]), half, 0},
                                  {Parcel::Way::receive, at(to[i]), half, 0}};
        links[i]->put(parcels);
      }
    }
    backend->use_queue(Queue::compute);
    backend->synchronize();
    EXPECT_EQ(transports->trouble(), "");
    for (std::size_t i = 0; i < links.size(); ++i) {
      std::iota(sent.begin(), sent.end(), static_cast<int>(i) * words + round);
      backend->download(to[i], got.data());
      EXPECT_EQ(got, sent) << "communicator " << i << ", round " << round;
    }
  }
}

}  // namespace
}  // namespace mindpipe
