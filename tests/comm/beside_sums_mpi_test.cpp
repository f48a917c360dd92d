// thorough ranks: 2, alone
// undisturbed: messages are timed
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "comm/channel.h"
#include "comm/link_times.h"
#include "comm/reduction.h"
#include "core/bulk_parts.h"
#include "tree.h"

namespace mindpipe {
namespace {

/// Messages of 256 KiB between two real ranks, one each millisecond, while sums travel.
struct BesideSums : ::testing::Test {
  static constexpr std::int64_t message_bytes = 256 << 10, every_ns = 1'000'000;
  static constexpr std::int64_t sum_bytes = std::int64_t{512} << 20;
  static constexpr std::int64_t last_of_all = -1;  ///< in place of when a message was due
  Memory memory{Memory::Kind::host};
  PlainBackend backend{memory};
  Waiting waiting;
  World world{MPI_COMM_WORLD};
  std::vector<float> numbers = std::vector<float>(sum_bytes / 4, 1.0F);
  std::int64_t part_bytes = most_part_bytes;

  BesideSums() {
    MPI_Comm_rank(world.comm, &world.rank);
    MPI_Comm_size(world.comm, &world.size);
    const LinkTimes link = time_links(world, std::vector<int>(static_cast<std::size_t>(world.size))).within;
    part_bytes = part_bytes_of(link.rate > 0 ? 1e12 / link.rate : 0, world.size);
    MPI_Bcast(&part_bytes, 1, MPI_INT64_T, 0, world.comm);
  }
  struct Measured {
    double rate = 0;                       ///< bytes of sums, and of the messages beside them, a second
    std::int64_t slow = 0, sums_last = 0;  ///< p99 of messages, and all sums, nanoseconds
  };
  /// Messages for a tenth of a second, or as long as the sums take that are cut into parts so long.
  Measured measure(bool messages, std::int64_t sums_of) {
    Channels channels(world.comm, waiting, nullptr, {}, 0, part_bytes);
    Reductions reductions(backend, std::make_unique<Group>(world.comm, waiting), Axis::data, nullptr, 0,
                          std::max(sums_of, part_bytes));
    const int parts = sums_of == 0 ? 0 : parts_of(sum_bytes, world.size, sums_of);
    std::vector<std::byte> out(message_bytes), in(message_bytes);
    const Tensor sent{out.data(), {message_bytes}, DType::u8}, got{in.data(), {message_bytes}, DType::u8};
    std::int64_t start = now_ns() + 2'000'000;
    MPI_Bcast(&start, 1, MPI_INT64_T, 0, world.comm);
    std::vector<std::int64_t> lasted;
    int begun = 0, part = 0;
    Channels::Transfer transfer = -1;
    Reductions::Request last = -1;
    std::int64_t sums_end = 0;
    bool ends = !messages;  // rank 0 has begun its last message, or rank 1 has it
    while (now_ns() < start) {
    }
    while (sums_end == 0 || !ends || transfer >= 0) {
      const std::int64_t now = now_ns();
      if (!ends && transfer < 0 && (world.rank == 1 || sums_end > 0 || now >= start + begun * every_ns)) {
        const std::int64_t due = sums_end > 0 ? last_of_all : start + begun * every_ns;
        std::memcpy(out.data(), &due, sizeof(due));
        transfer = world.rank == 0 ? channels.send(1, 0, sent) : channels.receive(0, 0, got);
        ends = world.rank == 0 && sums_end > 0;
        if (!ends) ++begun;
      }
      if (part < parts && reductions.may_begin(TrafficClass::gradients))
        last = begin(reductions, part++, parts);
      channels.progress();
      reductions.progress();
      if (transfer >= 0 && channels.done(transfer)) {
        std::int64_t due = 0;
        std::memcpy(&due, in.data(), sizeof(due));
        if (world.rank == 1 && due == last_of_all) ends = true;
        else if (world.rank == 1) lasted.push_back(now_ns() - due);
        transfer = -1;
      }
      const bool sums_over = parts == 0 ? now > start + 100'000'000 : part == parts && reductions.done(last);
      if (sums_over && sums_end == 0) sums_end = now_ns();
    }
    Measured found;
    found.sums_last = sums_end - start;
    found.rate = static_cast<double>(sum_bytes + begun * message_bytes) /
                 (static_cast<double>(found.sums_last) * 1e-9);
    if (!lasted.empty()) {
      const auto slow = lasted.begin() + static_cast<std::ptrdiff_t>(99 * lasted.size() / 100);
      std::nth_element(lasted.begin(), slow, lasted.end());
      found.slow = *slow;
    }
    MPI_Bcast(&found.slow, 1, MPI_INT64_T, 1, world.comm);
    MPI_Bcast(&found.rate, 1, MPI_DOUBLE, 0, world.comm);
    MPI_Bcast(&found.sums_last, 1, MPI_INT64_T, 0, world.comm);
    return found;
  }
  Reductions::Request begin(Reductions& reductions, int part, int parts) {
    const std::int64_t all = sum_bytes / 4, pieces = std::int64_t{world.size} * parts;
    Reductions::Pieces cut;
    for (int rank = 0; rank < world.size; ++rank) {
      const std::int64_t piece = std::int64_t{rank} * parts + part, first = all * piece / pieces,
                         last = all * (piece + 1) / pieces;
      cut.push_back({numbers.data() + first, {last - first}, DType::f32});
    }
    return reductions.sum(std::move(cut));
  }
  /// The median of five.
  template <class Of>
  static double median(const std::vector<Measured>& all, const Of& of) {
    std::vector<double> values;
    for (const Measured& each : all) values.push_back(static_cast<double>(of(each)));
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  }
};

TEST_F(BesideSums, MessagesWaitForTwoPartsAtMostAndTheLinkLosesATenthAtMost) {
  if (world.size != 2 || std::getenv("MINDPIPE_ALL_LAYOUTS") == nullptr)
    GTEST_SKIP() << "two ranks on a quiet machine: make test-contention";
  waiting.set_crowded(false);
  std::vector<Measured> idle, alone, beside, whole;
  for (int k = 0; k < 5; ++k) {
    idle.push_back(measure(true, 0));
    alone.push_back(measure(false, part_bytes));
    beside.push_back(measure(true, part_bytes));
    whole.push_back(measure(true, std::int64_t{1} << 40));
  }
  const auto slow = [](const Measured& each) { return each.slow; };
  const double two_parts = 2 * median(alone, [](const Measured&each) { return each.sums_last; }) /
                           parts_of(sum_bytes, world.size, part_bytes),
               kept = median(beside, [](const Measured&each) { return each.rate; }) /
                      median(alone, [](const Measured&each) { return each.rate; });
  if (world.rank == 0)
    std::printf(
        "parts of %ld KiB: p99 of messages %.2f ms idle, %.2f ms beside sums in parts (two of them take %.2f "
        "ms), %.2f ms beside sums in one piece; together %.3f of %.2f GB/s\n",
        static_cast<long>(part_bytes >> 10), median(idle, slow) * 1e-6, median(beside, slow) * 1e-6,
        two_parts * 1e-6, median(whole, slow) * 1e-6, kept,
        median(alone, [](const Measured& each) { return each.rate; }) * 1e-9);
  EXPECT_LE(median(beside, slow), two_parts + median(idle, slow));
  EXPECT_GE(kept, 0.9);
  EXPECT_GE(median(whole, slow), 20 * median(beside, slow));
}

}  // namespace
}  // namespace mindpipe
