#include "program/make_program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/check.h"
#include "core/clock.h"
#include "program/check/checker.h"
#include "program/schedules/order_in_slab.h"
#include "program/schedules/order_text.h"
#include "program/schedules/pass_clock.h"
#include "program/step_on_paper.h"

namespace mindpipe {

namespace {

/// Planning walks through every action some ten times: beyond this it takes minutes, and gigabytes.
constexpr double most_actions = 2e6;

/// About how many actions all stages have; sums over data go in parts.
double count_of_actions(const Outline& outline, ScheduleKind schedule) {
  const double passes = (row_of(schedule).splits_backward ? 3 : 2) + (outline.all_chunks() > 1 ? 4 : 0);
  double count = passes * outline.all_chunks() * outline.micro_batches;
  for (const UnitCost& unit : outline.units)
    count += 3 + (outline.data > 1
                      ? static_cast<double>(unit.gradients) / static_cast<double>(outline.part_bytes) *
                            (outline.sharded_optimizer ? 2 : 1)
                      : 0);
  return count;
}

/// The order that an earlier start has searched, where it asked the same; refuses one that cannot run. Its
/// lists are proved as others are.
std::optional<Order> order_known(const Outline& outline, const PriceList& prices, const KnownOrder& known,
                                 const std::string& question) {
  if (known.text.empty()) return {};
  std::optional<Order> order = order_of_text(known.text, question, request_of(outline), known.path);
  if (!order) return {};
  if (StepOrder(outline, prices, *order).run({}) < 0)
    refuse_order(known.path, "the stages wait for each other for ever");
  if (outline.tapes_percent > 0 && largest_slab_alone(*order, outline) > tapes_asked(outline))
    refuse_order(known.path, fmt::format("its tapes take more than schedule.memory, {:.2f}, allows",
                                         outline.tapes_percent / 100.0));
  return order;
}

/// The percent of 1f1b's tapes that a schedule is known to keep where it was refused with fewer.
int percent_kept(const Outline& outline, ScheduleKind schedule, const PriceList& prices, std::int64_t bytes) {
  const std::int64_t of_1f1b = tapes_of_1f1b(outline);
  const auto kept = static_cast<int>((100 * bytes + of_1f1b - 1) / of_1f1b);
  if (schedule != ScheduleKind::searched) return kept;
  for (int percent = outline.tapes_percent + 1; percent < kept; percent += 1 + percent / 10)
    if (const std::int64_t limit = of_1f1b * percent / 100;
        searched_in_slab(outline, prices, limit, false).bytes <= limit)
      return percent;
  return kept;
}

/// Checks the lists of a step, and shows the errors.
template <class See>
void prove(PlannedStep& step, const Outline& outline, const See& see) {
  const std::int64_t begin = now_ns();
  see(check(step.program, outline));
  step.proved_seconds = seconds_since(begin);
}

}  // namespace

void require_few_actions(const Outline& outline, ScheduleKind schedule) {
  require_few_actions(outline, count_of_actions(outline, schedule));
}

void require_few_actions(const Outline& outline, double count) {
  MP_REQUIRE(
      count <= most_actions, Exit::bad_configuration,
      "a step of {} micro-batches on {} stages has about {:.2g} actions, sums over data in parts of "
      "{:.3g} MiB among them, and more than {:.2g} cannot be planned; take a larger train.micro_batch, a "
      "smaller train.batch, fewer stages or more tensor ranks",
      outline.micro_batches, outline.stages, count, static_cast<double>(outline.part_bytes) / (1 << 20),
      most_actions);
}

PlannedStep plan_step(const Outline& outline, const Order& order, const Network& network) {
  return StepOnPaper(outline, order, network).write();
}

OrderRequest request_of(const Outline& outline, const MicroBatchGroups& groups) {
  return {.stages = outline.stages,
          .micro_batches = outline.micro_batches,
          .chunks = outline.chunks,
          .rank_of_chunk = outline.rank_of_chunk,
          .groups = groups};
}

Order order_of_step(const Outline& outline, ScheduleKind schedule, const Network& network,
                    const MicroBatchGroups& groups, Fit fit) {
  Order order = make_order(schedule, request_of(outline, groups));
  if (!row_of(schedule).splits_backward) return order;
  const PriceList prices(outline, network);
  const std::int64_t limit = most_tapes(outline, schedule);
  OrderInSlab best = schedule == ScheduleKind::searched ? searched_in_slab(outline, prices, limit)
                                                        : in_slab(order, outline, prices, limit, fit);
  if (outline.tapes_percent == 0) return std::move(best.order);
  if (const std::int64_t bytes = largest_slab_alone(best.order, outline); bytes > tapes_asked(outline))
    fail(Exit::bad_configuration,
         "schedule.memory is {:.2f}, and no order of schedule {} was found that keeps it; {:.2f} would do "
         "here "
         "(or take more micro-batches, or another schedule)",
         outline.tapes_percent / 100.0, row_of(schedule).name,
         percent_kept(outline, schedule, prices, bytes) / 100.0);
  return std::move(best.order);
}

PlannedStep make_program(const Outline& outline, ScheduleKind schedule, const Network& network,
                         const MicroBatchGroups& groups, const KnownOrder& known) {
  require_few_actions(outline, schedule);
  MP_CHECK(outline.training, "forwards alone are no step");
  std::optional<Order> before;
  std::string question;
  if (schedule == ScheduleKind::searched) {
    const PriceList prices(outline, network);
    question = question_of_search(outline, prices);
    before = order_known(outline, prices, known, question);
  }
  const Order order = before ? *before : order_of_step(outline, schedule, network, groups);
  PlannedStep step = plan_step(outline, order, network);
  if (!question.empty() && !before) step.found_order = text_of_order(order, question);
  prove(step, outline, [&](const std::vector<std::string>& errors) {
    if (before && !errors.empty()) refuse_order(known.path, errors.front());
    require_sound(errors);
  });
  return step;
}

void prove(PlannedStep& step, const Outline& outline) { prove(step, outline, require_sound); }

}  // namespace mindpipe
