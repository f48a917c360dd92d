#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "corpus/corpus.h"
#include "runtime/batch_inputs.h"
#include "runtime/forward_feed.h"
#include "runtime/step_feed.h"

namespace mindpipe {

/// What a search is told of networks and asks of them. Every rank has one that does the same.
struct ScoreStream {
  /// The network that is next; none: no more. It is asked for once `hear` was called for all that are `lag`
  /// networks or more before it in this stream.
  std::function<std::optional<Subnet>()> next;
  /// Hears of each network, in order: what was found of each batch.
  std::function<void(const std::vector<Evaluation>& of_batches)> hear;
  /// Whether this rank wishes the stream to end; where one does, no network is asked for after one place that
  /// is the same on all ranks. Those that are under way are still heard of.
  std::function<bool()> wish = {};
  std::int64_t lag = 0;  ///< 0: as many networks as fill the pipeline
};

/// Evaluates the model of a rank, or scores networks of its space, on batches of a corpus: without dropout
/// and with the weights as they are. All of it is collective.
class Evaluator {
 public:
  /// Hears of each batch before it begins here.
  using Before = std::function<void(std::int64_t batch)>;

  /// `steps`: what else runs over this state; null: nothing.
  Evaluator(const Config& config, const RunPlan& plan, Stage& stage, Executor& executor, BatchInputs& inputs,
            ForwardFeed& forwards, StepFeed* steps);

  /// Batches [0, batches) of the corpus; of a supernet by each of the subnets that its evaluations ask,
  /// calibrated before if it has batch norms.
  Evaluation evaluate(Corpus& corpus, std::int64_t batches, const Before& before = {});
  /// What is found of one batch that lies in an input here.
  Evaluation evaluate(const StepInput& input);
  /// Scores networks, each by batches [0, batches) of the corpus.
  void score(Corpus& corpus, std::int64_t batches, const ScoreStream& stream, const Before& before = {});
  /// The least lag of a stream of scores, each of so many batches, with which all stages have something to
  /// do: as many networks are in flight.
  std::int64_t least_lag(std::int64_t batches) const {
    return scores_in_flight(plan_.outline, calibrations_ + batches);
  }
  /// Passes the last batch through the model again and shows every block's output.
  void inspect(std::function<void(int block, const Boundary& out)> look);

 private:
  void run(const ForwardFeed::Tasks& tasks);
  /// What a task's batches are: those of a corpus by their numbers, from `end` on calibrations.
  StepInput& hold(Corpus& corpus, std::int64_t batch, std::int64_t end);

  const Config& config_;
  const RunPlan& plan_;
  Stage& stage_;
  Executor& executor_;
  BatchInputs& inputs_;
  ForwardFeed& forwards_;
  StepFeed* steps_;
  /// Batches on which each network of a supernet with batch norms is calibrated, on every data rank alike:
  /// the parts of all data ranks, of the first batches of what is trained on.
  std::int64_t calibrations_;
  std::vector<Subnet> evaluated_;      ///< supernet: the subnets of its evaluations
  std::optional<Corpus> calibration_;  ///< supernet with batch norms: the data that calibrates them
};

}  // namespace mindpipe
