#pragma once
#include "app/train/subnet_end_report.h"
#include "app/train/training_loop.h"

namespace mindpipe {

/// A training over a supernet's subnets, from drain to drain. These lie between windows, and nothing is under
/// way there, so that ranks may wait for each other.
class SubnetTraining final : public TrainingLoop, private SubnetCalls {
 public:
  /// Takes what TrainingLoop does, but for the report.
  SubnetTraining(Run& run, RunDirectory* directory, Corpus& corpus, HeldOut* validation, Saves& saves,
                 const RunProgress& begun, RunEnergy* energy = nullptr)
      : TrainingLoop(std::make_unique<SubnetEndReport>(run), run, directory, corpus, validation, saves, begun,
                     energy) {}

  std::string why_untraced() const override { return ""; }

 private:
  void begin() override;
  void train() override;
  std::string newest() const override { return fmt::format("subnet {}", done_ - 1); }
  std::string place() const override { return "after " + newest(); }
  std::string of_what_evaluated() const override;
  void agree() override;

  void load(const Subnet& subnet, StepInput& input) override;
  std::int64_t count(std::int64_t subnet) override;
  void admits(std::int64_t first, std::int64_t end) override;
  bool wishes_to_drain() override;
  void hear(const SubnetScalars& scalars) override;

  void tell_costs() const;
  std::int64_t ahead() const;
  std::int64_t next_drain() const;
};

}  // namespace mindpipe
