#include "program/check/check_fields.h"

namespace mindpipe {
namespace {

bool has_place(const Action& action, ListOf of, const Outline& outline) {
  const bool only_trains = traits_of(action.kind).steps == ActionTraits::training ||
                           action.payload == Payload::unit_gradient || is_move(action);
  if (!outline.training && only_trains) return false;
  if (of != ListOf::subnets) return !is_move(action) || outline.moves_blocks();
  switch (action.kind) {
    case ActionKind::forward:
    case ActionKind::backward:
    case ActionKind::update:
    case ActionKind::send:
    case ActionKind::receive:
    case ActionKind::reduce:
      return true;
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
    case ActionKind::gather:
    case ActionKind::sum_scalar:
      return false;
  }
  return false;
}

class FieldCheck {
 public:
  FieldCheck(Reading& reading, const Action& action, int index)
      : outline_(reading.outline), reading_(reading), action_(action), index_(index) {}

  void run() {
    if (!has_place(action_, reading_.of, outline_)) {
      const char* list = !outline_.training               ? "an evaluation"
                         : reading_.of == ListOf::subnets ? "a supernet's program"
                                                          : "a step";
      wrong("has no place in {}", list);
    }
    place();
    if (is_pass(action_)) pass();
    if (names_unit(action_)) unit(action_.unit);
    for (const int one : action_.units) unit(one);
    if (is_move(action_) && action_.units.empty()) wrong("moves no unit");
    for (const int earlier : action_.after)
      if (earlier >= index_ || reading_.place_of(earlier) < 0)
        wrong("waits for action {}, which is not an earlier one", reading_.place_of(earlier));
  }

 private:
  void place() {
    const int blocks = outline_.all_blocks(), ranks = outline_.ranks();
    if (action_.first < 0 || action_.last < action_.first || action_.last > blocks)
      wrong("blocks [{}, {}) are not in the model of {} blocks", action_.first, action_.last, blocks);
    if (action_.subnet < 0) wrong("there is no number {} before the first", action_.subnet);
    if (is_message(action_) && (action_.peer < 0 || action_.peer >= ranks || action_.peer == reading_.rank))
      wrong("there is no other rank {} to talk to ({} ranks)", action_.peer, ranks);
    if (action_.parts < 1 || action_.part < 0 || action_.part >= action_.parts)
      wrong("there is no part {} of {}", action_.part + 1, action_.parts);
    const auto* collective = shape_of<CollectiveTraits>(action_);
    const Members group = collective == nullptr ? Members::none : collective->members;
    if (action_.group != group) wrong("is for group {}, not {}", action_.group, group);
    if (!is_message(action_) && action_.queue != traits_of(action_.kind).queue)
      wrong("is in queue {}, not {}", action_.queue, traits_of(action_.kind).queue);
  }

  void pass() {
    const int of_shard = outline_.micro_batches_of_shard();
    if (action_.micro_batch < 0 || action_.micro_batch >= outline_.micro_batches)
      wrong("there are {} micro-batches", outline_.micro_batches);
    else if (action_.shard != action_.micro_batch / of_shard)
      wrong("micro-batch {} belongs to shard {}, not {}", action_.micro_batch, action_.micro_batch / of_shard,
            action_.shard);
    if (action_.chunk < 0 || action_.chunk >= outline_.all_chunks() ||
        reading_.rank_of(action_.chunk) != reading_.rank)
      wrong("chunk {} does not live here", action_.chunk);
  }

  void unit(int number) {
    const int units = static_cast<int>(outline_.units.size());
    if (number < 0 || number >= units) wrong("there is no unit {} ({} units)", number, units);
  }

  template <class... Parts>
  void wrong(fmt::format_string<Parts...> sentence, Parts&&... parts) {
    reading_.wrong_at(reading_.place_of(index_), sentence, std::forward<Parts>(parts)...);
  }

  const Outline& outline_;
  Reading& reading_;
  const Action& action_;
  int index_;
};

}  // namespace

void check_fields(Reading& reading, std::span<const Action> stretch) {
  for (int index = 0; index < static_cast<int>(stretch.size()); ++index)
    FieldCheck(reading, stretch[index], index).run();
}

}  // namespace mindpipe
