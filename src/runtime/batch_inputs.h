#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "corpus/corpus.h"
#include "runtime/step_input.h"
#include "state/stage.h"

namespace mindpipe {

/// Brings batches of a corpus to where this rank's blocks read them: what a step is fed, and batches that
/// many forwards read, which stay there. Copies go through the queue copy_in; steps that have two rooms take
/// them in turn, so a batch is copied beside the step before.
class BatchInputs {
 public:
  /// Takes room for `held` batches. `fields`: of the model. `all`: whatever blocks here read now, others may
  /// come that read other fields.
  BatchInputs(const Stage& stage, const std::vector<Field>& fields, int held, bool all = false);

  /// Samples [first, first + batch) of the corpus, of these this rank's micro-batches, for a step.
  StepInput& load(Corpus& corpus, std::int64_t first);
  /// What `load` brought last.
  StepInput& loaded() { return held_[loaded_].input; }
  /// Batch number `batch` of the corpus; it is there already where it was asked for since `forget` and no
  /// other has come into its place.
  StepInput& hold(Corpus& corpus, std::int64_t batch) {
    return hold(corpus, batch, batch, layout_.coord.data);
  }
  /// What data rank `data` has of batch number `batch` of the corpus, which is known by `name` here.
  StepInput& hold(Corpus& corpus, std::int64_t name, std::int64_t batch, int data);
  /// Forgets which batches are there: another corpus is read.
  void forget();
  /// How many times a batch was brought.
  std::int64_t brought() const { return brought_; }

  /// Samples [first, first + batch) for an input that lies elsewhere, which counts the targets of all ranks.
  void load_whole(Corpus& corpus, std::int64_t first, StepInput& input);
  /// The targets of such samples that count.
  std::int64_t count_whole(Corpus& corpus, std::int64_t first);

 private:
  struct Held {
    StepInput input;
    std::int64_t name = -1;  ///< name of a batch that was asked for by one; or -1
    /// Event behind the step that has read it, where another has been brought since.
    std::optional<std::uint64_t> read = {};
  };
  /// Brings what data rank `data` has of the batch that begins with sample `first`. The copy is behind the
  /// event `read`.
  void bring(Corpus& corpus, std::int64_t first, int data, StepInput& input, std::uint64_t read);
  /// An event behind all that computes so far.
  std::uint64_t now() { return backend_.record(Queue::compute); }

  Backend& backend_;
  const Layout& layout_;
  Arena arena_;
  std::vector<Held> held_;
  std::size_t loaded_ = 0;  ///< the room that the newest step reads
  std::vector<std::vector<std::byte>> memory_;
  bool is_read_ = false;                   ///< whether batches of evaluations are: here, or their targets
  FieldTensors drawn_;                     ///< this rank's samples, on their way
  std::vector<std::int32_t> all_targets_;  ///< targets of a whole batch, where this rank has a part of it
  std::int64_t brought_ = 0;
};

}  // namespace mindpipe
