#include "comm/device_transports.h"

#include <algorithm>
#include <array>
#include <map>

namespace mindpipe {
namespace {

constexpr int oldest_version =
    22600;  // the first that keeps several communicators of a device in the order of their calls

/// Fixed-size form of a Seat, in which it travels.
struct Record {
  std::array<char, 256> host{};
  std::array<char, 64> gpu{};
  int version = 0;
};

template <std::size_t length>
void write(std::array<char, length>& to, const std::string& text) {
  to[text.copy(to.data(), length - 1)] = '\0';
}

std::vector<Seat> all_seats(const World& world, const Seat& mine) {
  Record record;
  write(record.host, mine.host);
  write(record.gpu, mine.gpu);
  record.version = mine.version;
  std::vector<Record> records(static_cast<std::size_t>(world.size));
  MPI_CHECK(
      MPI_Allgather(&record, sizeof record, MPI_BYTE, records.data(), sizeof record, MPI_BYTE, world.comm));
  std::vector<Seat> seats;
  for (const Record& r : records) seats.push_back({r.host.data(), r.gpu.data(), r.version});
  return seats;
}

}  // namespace

std::string nccl_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string obstacle(std::span<const Seat> seats) {
  std::map<std::pair<std::string, std::string>, std::size_t> rank_on;
  for (std::size_t rank = 0; rank < seats.size(); ++rank) {
    const Seat& seat = seats[rank];
    if (seat.version == 0)
      return fmt::format("libnccl.so.2 cannot be opened on {} (rank {})", seat.host, rank);
    if (seat.version < oldest_version)
      return fmt::format("NCCL on {} (rank {}) is {}, and {} or newer is needed", seat.host, rank,
                         nccl_version_text(seat.version), nccl_version_text(oldest_version));
    if (seat.version != seats[0].version)
      return fmt::format("NCCL is {} on {} (rank 0), but {} on {} (rank {})",
                         nccl_version_text(seats[0].version), seats[0].host, nccl_version_text(seat.version),
                         seat.host, rank);
    if (seat.gpu.empty()) return fmt::format("rank {} on {} computes on no GPU", rank, seat.host);
    const auto [at, is_first] = rank_on.try_emplace({seat.host, seat.gpu}, rank);
    if (!is_first)
      return fmt::format("ranks {} and {} share GPU {} of {}, which NCCL does not allow", at->second, rank,
                         seat.gpu, seat.host);
  }
  return "";
}

int most_multiprocessors(Transports::Use use, int reserved) {
  constexpr int of_short_messages = 4, of_bulk = 16;  // an H100 has 132
  if (use == Transports::Use::sums) return 0;
  if (use == Transports::Use::bulk) return reserved > 0 ? reserved : of_bulk;
  return reserved > 0 ? std::min(reserved, of_short_messages) : of_short_messages;
}

std::string messages_by_mpi(const std::string& why, int reserved) {
  std::string text =
      fmt::format("MPI through pinned memory ({}; with device.transport=mpi sums are cut for it)", why);
  if (reserved > 0)
    text += fmt::format(
        ", which takes none of the {} multiprocessors that device.reserved_multiprocessors keeps from "
        "products",
        reserved);
  return text;
}

DeviceTransports device_transports(const World& world, Backend& backend, Waiting& waiting,
                                   const DeviceConfig& wish) {
  if (world.size == 1 || backend.memory().kind() != Memory::Kind::device) return {};
  if (wish.transport == TransportKind::mpi)
    return {nullptr, "MPI through pinned memory (device.transport is mpi)"};
  const std::vector<Seat> seats = all_seats(world, {host_name(), bus_place_of_gpu(), nccl_found()});
  const std::string why_not =
      nccl_built_with() == 0 ? "this program was built without NCCL" : obstacle(seats);
  MP_REQUIRE(why_not.empty() || wish.transport == TransportKind::automatic, Exit::bad_configuration,
             "device.transport is nccl, but {}; start one rank for each GPU with one NCCL of 2.26 or newer "
             "everywhere, or leave the setting "
             "out: messages then go by MPI",
             why_not);
  if (!why_not.empty()) return {nullptr, messages_by_mpi(why_not, wish.reserved_multiprocessors)};
  return {make_nccl_transports(backend, waiting, wish.reserved_multiprocessors),
          fmt::format("NCCL {} between {} GPUs", nccl_version_text(seats[0].version), world.size)};
}

}  // namespace mindpipe
