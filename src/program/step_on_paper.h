#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "program/make_program.h"
#include "program/schedules/step_order.h"

namespace mindpipe {

/// How long a step lasts, and the work of each rank in it, nanoseconds.
struct StepTimes {
  std::int64_t step = 0;
  std::vector<std::int64_t> busy;
};

/// The step of an order on its way to lists, each part of the way when it is asked for: a search knows after
/// a part of it that a step is too long.
class StepOnPaper {
 public:
  /// `outline` stays as it is.
  StepOnPaper(const Outline& outline, const Order& order, const Network& network);
  StepOnPaper(const StepOnPaper&) = delete;
  StepOnPaper& operator=(const StepOnPaper&) = delete;

  /// Nanoseconds with all the rooms that the step could use.
  std::int64_t with_all_rooms();
  /// The times in the fewest rooms that cost little: those of the lists, too.
  StepTimes in_rooms();
  /// How many actions the lists have.
  std::int64_t actions() const;
  /// The lists, which nobody has checked yet, and what the simulator says of them.
  PlannedStep write();

 private:
  void choose_rooms();

  const Outline& outline_;
  Network network_;
  PriceList prices_;
  Order order_;
  StepOrder source_;
  std::optional<std::int64_t> with_all_rooms_;
  std::optional<StepRooms> rooms_;
};

}  // namespace mindpipe
