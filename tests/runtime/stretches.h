#pragma once
#include <functional>
#include <thread>
#include <vector>

#include "program/unproved.h"
#include "runtime/parity.h"

// Ordinary steps as a list that grows: behind one another, cut anywhere, run piece by piece.
namespace mindpipe {

/// The entries [first, last) of a list without an end, whose `after` are numbers in all of it, as a stretch.
/// `wrong`: what is added by mistake where an `after` lies across the cut.
inline ListStretch cut_out(const std::vector<Action>& list, std::size_t first, std::size_t last,
                           int wrong = 0) {
  ListStretch stretch;
  stretch.actions.assign(list.begin() + static_cast<std::ptrdiff_t>(first),
                         list.begin() + static_cast<std::ptrdiff_t>(last));
  for (Action& action : stretch.actions)
    for (int& earlier : action.after) {
      earlier -= static_cast<int>(first);
      if (earlier < 0) earlier = std::min(-1, earlier + wrong);
    }
  return stretch;
}

/// The last action of each queue of a list.
inline std::vector<int> last_of_queues(const std::vector<Action>& list) {
  std::map<QueueKey, int> last;
  for (std::size_t i = 0; i < list.size(); ++i) last[queue_of(list[i])] = static_cast<int>(i);
  std::vector<int> places;
  for (const auto& [queue, place] : last) places.push_back(place);
  return places;
}

/// So many steps of a list as one list, where step k is the subnet of number k. `one_behind_the_other`: no
/// queue comes to a step before all have come to the end of the one before; else somebody else sees to that.
inline std::vector<Action> without_end(const std::vector<Action>& step, int steps,
                                       bool one_behind_the_other) {
  std::vector<Action> all;
  const std::vector<int> last = last_of_queues(step);
  for (int k = 0; k < steps; ++k) {
    const int begin = k * static_cast<int>(step.size());
    std::map<QueueKey, bool> begun;
    for (Action action : step) {
      action.owner.number = k;
      for (int& earlier : action.after) earlier += begin;
      if (one_behind_the_other && k > 0 && !std::exchange(begun[queue_of(action)], true))
        for (int place : last) action.after.push_back(begin - static_cast<int>(step.size()) + place);
      all.push_back(std::move(action));
    }
  }
  return all;
}

/// Lengths of stretches, drawn by lot: many short ones, some as long as a step, some empty.
class StretchLots {
 public:
  StretchLots(int draw, std::size_t longest, const std::string& what = "stretches")
      : longest_(longest),
        stream_{.seed = 17, .purpose = purpose_of(what), .sample = static_cast<std::uint32_t>(draw)} {}
  std::size_t below(std::size_t end) { return stream_.word(draws_++) % end; }
  std::size_t length() {
    switch (below(8)) {
      case 0:
        return 0;
      case 1:
      case 2:
      case 3:
        return 1 + below(5);
      default:
        return 1 + below(longest_);
    }
  }

 private:
  std::size_t longest_;
  RandomStream stream_;
  std::uint64_t draws_ = 0;
};

/// How the steps of a worker are run in stretches.
struct InStretches {
  bool cut_at_steps = false;  ///< nothing is open between two steps, and an evaluation runs there
  std::size_t at_once = 1024;
  std::function<void(Script& script, StretchLots& lots)> between = [](Script&, StretchLots&) {};
};

/// What train_some does, but that the steps are cut at places drawn for each rank, extended and run piece by
/// piece. Inputs of three steps are held at a time.
class StretchedTraining {
 public:
  StretchedTraining(Worker& worker, int steps, const InStretches& how)
      : worker_(worker),
        how_(how),
        script_(worker.executor().make_open_script(worker.plan().outline, worker.steps(), how.at_once)),
        list_(without_end(worker.training().list, steps, !how.cut_at_steps)),
        of_step_(worker.training().list.size()),
        lots_(worker.world().rank, of_step_, to_yaml(worker.config())) {
    for (int i = 0; i < inputs_ahead; ++i)
      feeds_.push_back(std::make_unique<BatchFeed>(
          worker.config(), worker.layout(), worker.backend().host_may_read() ? nullptr : &worker.backend()));
    inputs_.resize(inputs_ahead);
  }

  void run(Outcome& outcome) {
    std::size_t step_end = of_step_;
    for (std::size_t first = 0, ran = 0; first < list_.size();) {
      std::size_t last = std::min({list_.size(), first + lots_.length(), ran + of_step_});
      if (how_.cut_at_steps) last = std::min(last, step_end);
      feed(last);
      const Memory::Closed closed(worker_.memory());
      Executor::extend(script_, Unproved::taken(cut_out(list_, first, last)));
      first = last;
      const bool at_step_end = how_.cut_at_steps && first == step_end;
      if (!at_step_end && first < std::min(list_.size(), ran + of_step_) && lots_.below(4) == 0) {
        if (lots_.below(2) == 0) worker_.executor().recorder(script_);
        continue;  // two stretches before a run
      }
      ran = first;
      worker_.executor().run(script_, inputs_);
      how_.between(script_, lots_);
      if (!at_step_end) continue;
      worker_.executor().finish(script_, inputs_);
      keep(outcome);
      step_end += of_step_;
      evaluate(outcome);
    }
    worker_.executor().finish(script_, inputs_);
    keep(outcome);
    evaluate(outcome);
  }
  Script& script() { return script_; }
  const std::vector<Action>& list() const { return list_; }

 private:
  static constexpr int inputs_ahead = 3;

  /// Loads the inputs of all steps that begin before `last`.
  void feed(std::size_t last) {
    for (; static_cast<std::size_t>(fed_) * of_step_ < last; ++fed_)
      inputs_[fed_ % inputs_ahead] = feeds_[fed_ % inputs_ahead]->at(fed_);
  }
  void keep(Outcome& outcome) {
    while (const std::optional<StepScalars> known = worker_.steps().remaining()) {
      MP_CHECK(known->step == static_cast<std::int64_t>(outcome.losses.size()),
               "step {} is answered as number {}", known->step, outcome.losses.size());
      outcome.losses.push_back(known->loss);
      outcome.norms.push_back(known->gradient_norm);
    }
  }
  void evaluate(Outcome& outcome) {
    const StepInput& input = feeds_[fed_ % inputs_ahead]->at(fed_);
    const Evaluation found = worker_.evaluator().evaluate(input);
    outcome.evaluation = found.losses;
    outcome.evaluated = found.targets;
    outcome.hits = found.hits;
  }

  Worker& worker_;
  InStretches how_;
  Script script_;
  std::vector<Action> list_;
  std::size_t of_step_;
  StretchLots lots_;
  std::vector<std::unique_ptr<BatchFeed>> feeds_;
  std::vector<StepInput> inputs_;
  int fed_ = 0;
};

}  // namespace mindpipe
