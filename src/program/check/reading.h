#pragma once
#include <span>
#include <string>

#include "program/check/findings.h"
#include "program/check/followed_waits.h"

namespace mindpipe {

/// Whose passes a list has: one step's (or evaluation's), those of a supernet's subnets, or those of batches
/// that go forwards alone.
enum class ListOf : std::uint8_t { step, subnets, forwards };

/// The list of one rank as all books read it: the action that is looked at, what has ended when it begins,
/// and what is wrong with it.
class Reading {
 public:
  Reading(const Outline& outline, ListOf of, int rank) : outline(outline), of(of), rank(rank) {}

  /// Goes on with more actions. They stay where they are while they are read.
  void extend(std::span<const Action> more) {
    begin_ += static_cast<std::int64_t>(stretch_.size());
    stretch_ = more;
    index_ = -1;
  }
  /// Goes to the next action; false: there is none.
  bool next() {
    if (++index_ == static_cast<int>(stretch_.size())) return false;
    waits_.add(action(), begin_);
    return true;
  }

  const Action& action() const { return stretch_[index_]; }
  ListEntry here() const { return waits_.newest(); }
  /// Whether an earlier entry has surely ended when the action begins. One that is missing has not.
  bool has_ended(const ListEntry& earlier) const { return earlier.exists() && waits_.has_ended(earlier); }

  /// Whether an earlier entry stands in the newest stretch.
  bool is_new(const ListEntry& earlier) const { return earlier.place >= begin_; }

  /// The rank of the program that has a chunk, in this rank's lane.
  int rank_of(int chunk) const { return rank - outline.stage_of_rank(rank) + outline.rank_of(chunk); }

  /// The entry that `after` calls so.
  std::int64_t place_of(int after) const { return begin_ + after; }

  /// "action 17 (send activation of micro-batch 3 to rank 1)", without the text where it is long gone.
  std::string text_of(std::int64_t place) const {
    return place < begin_ ? fmt::format("action {}", place)
                          : fmt::format("action {} ({})", place, to_string(stretch_[place - begin_]));
  }
  /// The action that is looked at is wrong.
  template <class... Parts>
  void wrong(fmt::format_string<Parts...> sentence, Parts&&... parts) {
    wrong_at(here().place, sentence, std::forward<Parts>(parts)...);
  }
  template <class... Parts>
  void wrong_at(std::int64_t place, fmt::format_string<Parts...> sentence, Parts&&... parts) {
    findings.add("rank {}, {}: {}", rank, text_of(place),
                 fmt::format(sentence, std::forward<Parts>(parts)...));
  }
  /// Something is missing in the list.
  template <class... Parts>
  void missing(fmt::format_string<Parts...> sentence, Parts&&... parts) {
    findings.add("rank {}: {}", rank, fmt::format(sentence, std::forward<Parts>(parts)...));
  }

  const Outline& outline;
  const ListOf of;
  const int rank;
  Findings findings;

 private:
  std::span<const Action> stretch_;
  std::int64_t begin_ = 0;
  int index_ = -1;
  FollowedWaits waits_;
};

}  // namespace mindpipe
