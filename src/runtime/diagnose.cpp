#include "runtime/diagnose.h"

#include <algorithm>
#include <cmath>

namespace mindpipe {
namespace {

/// The first place with a count on any rank, and the ranks' counts together; places.size() when there is
/// none.
std::pair<std::size_t, std::int64_t> first_of_all_ranks(Worker& worker, std::vector<std::int64_t> places) {
  worker.wiring().sum_over_grid(places);
  const auto found = std::find_if(places.begin(), places.end(), [](std::int64_t count) { return count > 0; });
  return {static_cast<std::size_t>(found - places.begin()), found == places.end() ? 0 : *found};
}

/// How many elements that live here are not finite, of every tensor in model order.
std::vector<std::int64_t> bad_weights(Worker& worker) {
  worker.settle();
  const Stage& stage = worker.stage();
  const std::vector<int>& local = stage.local_units();
  std::vector<std::int64_t> counts;
  for (int u = 0; u < static_cast<int>(stage.model().units().size()); ++u) {
    const Unit& unit = *stage.model().units()[u];
    const bool here = std::binary_search(local.begin(), local.end(), u);
    if (here) worker.residency().whole().require(u);
    for (int p = 0; p < static_cast<int>(unit.params().size()); ++p) {
      counts.push_back(0);
      for (int s = 0; here && s < unit.local_shards(p); ++s)
        counts.back() += worker.backend().count_not_finite(unit.value(p, s));
    }
  }
  return counts;
}

std::string name_of_tensor(const Model& model, std::size_t place) {
  for (const auto& unit : model.units()) {
    if (place < unit->params().size()) return tensor_name(*unit, static_cast<int>(place));
    place -= unit->params().size();
  }
  fail(Exit::internal, "the model has no tensor {} places on", place);
}

/// The first weight that is not finite, in words; empty where all are.
std::string bad_weight(Worker& worker) {
  const auto [weight, elements] = first_of_all_ranks(worker, bad_weights(worker));
  if (elements == 0) return "";
  return fmt::format("the first that is not finite is the weight {} ({} of its elements, over all ranks); {}",
                     name_of_tensor(worker.stage().model(), weight), elements,
                     worker.plan().purpose == Purpose::reading
                         ? "it was read like that: take the file of another run, one with a lower "
                           "optimizer.rate.peak or with train.clip"
                         : "the last update went wrong: lower optimizer.rate.peak or turn on train.clip");
}

/// The first block whose output of the last batch is not finite, in words; empty where all are.
std::string bad_output(Worker& worker) {
  const Model& model = worker.stage().model();
  std::vector<std::int64_t> counts(model.blocks().size(), 0);
  worker.evaluator().inspect([&](int block, const Boundary& out) {
    if (out.activation) counts[block] += worker.backend().count_not_finite(out.activation);
  });
  const auto [block, outputs] = first_of_all_ranks(worker, std::move(counts));
  if (outputs == 0) return "";
  return fmt::format(
      "weights are finite; the first output that is not is that of block {} ({} elements, over all ranks)",
      model.blocks()[block].name, outputs);
}

/// The first tensor whose gradient of the newest step is not finite, in words; empty where all are.
std::string bad_gradient(Worker& worker) {
  if (worker.plan().purpose != Purpose::training || !worker.plan().trains_steps()) return "";
  const Tensor squares = worker.updates().decisions().squares_of_step();
  std::vector<double> numbers(static_cast<std::size_t>(squares.count()));
  worker.backend().download(squares, numbers.data());
  const auto bad =
      std::find_if(numbers.begin(), numbers.end(), [](double square) { return !std::isfinite(square); });
  if (bad == numbers.end()) return "";
  return "weights and outputs of blocks are finite; the first gradient that is not is that of " +
         name_of_tensor(worker.stage().model(), static_cast<std::size_t>(bad - numbers.begin()));
}

constexpr const char* nothing_found =
    "weights and activations are finite; look at the head's logits and at the targets";

}  // namespace

std::string diagnose_weights(Worker& worker) {
  const std::string weight = bad_weight(worker);
  return weight.empty()
             ? "all weights are finite, but what comes of them is not (mindpipe-train eval names the block)"
             : weight;
}

std::string diagnose(Worker& worker) {
  for (auto* look : {bad_weight, bad_output, bad_gradient})
    if (std::string found = look(worker); !found.empty()) return found;
  return nothing_found;
}

Evaluation finite_evaluation(Worker& worker, Corpus& corpus, std::int64_t batches, const std::string& what,
                             const std::function<void(std::int64_t)>& before) {
  const Evaluation evaluation = worker.evaluator().evaluate(
      corpus, batches, before);  // the same on every rank, so that all go on or all fail
  if (std::isfinite(evaluation.loss())) return evaluation;
  std::string found = bad_weight(worker);
  for (std::int64_t batch = 0; batch < batches && found.empty(); ++batch) {
    worker.inputs().load(corpus, batch * worker.layout().batch);
    found = bad_output(worker);
    if (!found.empty()) found = fmt::format("in batch {} of {}, {}", batch + 1, batches, found);
  }
  fail(Exit::diverged, "{} is {}; {}", what, number_text(evaluation.loss()),
       found.empty() ? nothing_found : found);
}

std::string number_text(double number) { return std::isnan(number) ? "nan" : fmt::format("{}", number); }

}  // namespace mindpipe
