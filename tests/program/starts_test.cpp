#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/sample_space.h"

// A clock that does not keep time is found.
namespace mindpipe {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

struct WrongStart {
  const char* name;
  bool on_lanes;
  std::function<void(std::vector<Task>&)> spoil;
  const char* sentence;
};
void PrintTo(const WrongStart& wrong, std::ostream* out) { *out << wrong.name; }

/// One of a first micro-batch on rank 1 begins, and ends, a millisecond too early.
std::function<void(std::vector<Task>&)> too_early(TaskKind kind) {
  return [kind](std::vector<Task>& starts) {
    int nth = 7;
    for (Task& start : starts)
      if (start.kind == kind && start.owner.of == Owner::subnet && start.rank == 1 &&
          start.micro_batch == 0 && nth-- == 0) {
        start.start -= start.end - start.start + 1'000'000;
        start.end -= 1'000'000;
      }
  };
}
/// All moves are changed.
std::function<void(std::vector<Task>&)> moves(void (*change)(Task&)) {
  return [change](std::vector<Task>& starts) {
    for (Task& start : starts)
      if (start.kind == TaskKind::move) change(start);
  };
}

const WrongStart wrong_starts[] = {
    {"AForward", false, too_early(TaskKind::forward), "runs before its input is there"},
    {"ABackward", false, too_early(TaskKind::backward), "runs before its gradient is there"},
    {"AMessage", false, too_early(TaskKind::message), "is sent before it is made"},
    {"AnUpdate", false, too_early(TaskKind::update), "is updated before its last backward"},
    {"AReader", true, moves([](Task& move) { move.end += 20'000'000; }),
     "runs before its units have arrived"},
    {"AMove", true, moves([](Task& move) { move.start -= 1'000'000; }),
     "moves a unit that has yet to be updated"},
    {"AMoveOfNothing", true, moves([](Task& move) { move.units = {}; }), "moves no unit"},
};

class StartsTooEarly : public testing::TestWithParam<WrongStart> {};

TEST_P(StartsTooEarly, IsFound) {
  Outline outline = GetParam().on_lanes ? sample_lanes(2, 2, 3, 1, 0.5) : sample_space(4, 3, 2);
  outline.data = GetParam().on_lanes ? 1 : 2;
  CausalPlanner planner(outline, sample_network(outline.micro_batches), {.admission = 16});
  std::vector<Task> starts = planned(planner, sample_subnets(outline, Draw::uniform, 60, 1));
  EXPECT_THAT(StartsCheck(outline).check(starts, 0, 60), IsEmpty());
  GetParam().spoil(starts);
  EXPECT_THAT(StartsCheck(outline).check(starts, 0, 60), Contains(HasSubstr(GetParam().sentence)));
}

INSTANTIATE_TEST_SUITE_P(Of, StartsTooEarly, testing::ValuesIn(wrong_starts),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace mindpipe
