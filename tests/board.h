#pragma once
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "comm/mpi.h"
#include "core/clock.h"
#include "core/random.h"

namespace mindpipe {

/// Board on which the ranks of one machine write up whom they wait for, so that each can see when they wait
/// in a circle.
class Board {
 public:
  explicit Board(MPI_Comm ranks) {
    MPI_CHECK(MPI_Comm_rank(ranks, &rank_));
    MPI_CHECK(MPI_Comm_size(ranks, &size_));
    void* mine = nullptr;
    MPI_CHECK(MPI_Win_allocate_shared(sizeof(Line), 1, MPI_INFO_NULL, ranks, &mine, &window_));
    new (mine) Line;
    for (int rank = 0; rank < size_; ++rank) {
      MPI_Aint bytes = 0;
      int unit = 0;
      void* line = nullptr;
      MPI_CHECK(MPI_Win_shared_query(window_, rank, &bytes, &unit, &line));
      lines_.push_back(static_cast<Line*>(line));
    }
    MPI_CHECK(MPI_Barrier(ranks));
  }
  ~Board() { MPI_Win_free(&window_); }
  Board(const Board&) = delete;

  /// Writes up that this rank waits for another at the head of its messages. Throws when the wait cannot end,
  /// or has lasted for too long.
  void wait_for(int peer, const std::string& transport, int number, std::uint64_t place) {
    Line& line = *lines_[static_cast<std::size_t>(rank_)];
    if (line.peer.load() < 0) {
      since_ = now_ns();
      seen_ = {};
      const std::string text = fmt::format("{}, number {}", transport, number);
      line.what[text.copy(line.what, sizeof line.what - 1)] = '\0';
      line.transport = purpose_of(transport);
      line.place = place;
    }
    line.peer = peer;
    ++line.looks;
    try {
      look_round();
    } catch (...) {
      line.has_given_up = true;
      throw;
    }
    // Whoever waits in the same circle finds it within this time.
    const bool is_left_alone = lines_[static_cast<std::size_t>(peer)]->has_given_up.load();
    MP_CHECK(seconds_since(since_) < (is_left_alone ? 2 : 60), "{} does not come to {}, place {} of rank {}",
             peer, line.what, place, rank_);
  }
  void go_on() { lines_[static_cast<std::size_t>(rank_)]->peer = -1; }

 private:
  struct Line {
    std::atomic<int> peer{-1};  ///< none: it does not wait
    std::atomic<bool> has_given_up{false};
    std::atomic<std::uint64_t> transport{0}, place{0},
        looks{0};  ///< looks: how often it has asked in vain whether its peer is there
    char what[160] = "";
  };

  struct Picture {
    std::vector<std::uint64_t> places;  ///< where each rank on the way stands, and which it is
    std::vector<std::uint64_t> looks;
    std::string path;
  };

  /// Throws when the ranks wait in a circle: when all of them have looked again in vain and stand where they
  /// stood.
  void look_round() {
    Picture now = follow();
    if (now.places != seen_.places) {
      seen_ = std::move(now);
      return;
    }
    bool all = !now.places.empty();
    for (std::size_t i = 0; i < now.looks.size(); ++i) all = all && now.looks[i] > seen_.looks[i] + 20;
    if (!all) return;
    lines_[static_cast<std::size_t>(rank_)]->looks = std::uint64_t{1}
                                                     << 62;  // it looks no more, and will not go on
    fail(Exit::internal, "messages are put in along orders that run in a circle: {}", now.path);
  }

  /// The chain of who waits for whom, from this rank on; empty unless it leads round in a circle. Two ranks
  /// that wait for one another on one transport have met: their handshakes are on the way.
  Picture follow() const {
    Picture picture;
    int at = rank_;
    for (int steps = 0; steps <= size_; ++steps) {
      const Line& line = *lines_[static_cast<std::size_t>(at)];
      const int peer = line.peer;
      if (peer < 0 || lines_[static_cast<std::size_t>(peer)]->transport == line.transport) return {};
      picture.places.push_back(line.place * 64 + static_cast<std::uint64_t>(at));
      picture.looks.push_back(line.looks);
      if (steps < size_)
        picture.path += fmt::format("{}rank {} has come to {} and waits for rank {}", steps == 0 ? "" : "; ",
                                    at, line.what, peer);
      at = peer;
    }
    return picture;
  }

  MPI_Win window_ = MPI_WIN_NULL;
  int rank_ = 0, size_ = 1;
  std::vector<Line*> lines_;
  std::int64_t since_ = 0;
  Picture seen_;
};

}  // namespace mindpipe
