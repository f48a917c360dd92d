// ranks: 1 2 4
#include "state/decisions.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "comm/group.h"
#include "core/random.h"
#include "make_backend.h"

// What is decided for units, each by itself, on several tensor ranks with the bits of one.
namespace mindpipe {
namespace {

constexpr int logical = 4, units = 3;
using Numbers = std::array<double, Decision::places>;

/// Units of split and whole tensors on one rank's shards, with gradients that follow from names alone.
class Sample {
 public:
  Sample(Communicator& tensor, Backend& backend) : backend_(backend), tensor_(tensor) {
    for (int number = 0; number < units; ++number) {
      Unit& unit = *units_.emplace_back(std::make_unique<Unit>("blocks." + std::to_string(number)));
      unit.add({{{"up.weight", 64 * (number + 1)}}, 600, Split::out, Form::whole, {}, true});
      unit.add({{{"norm.weight", 40}}, 0, Split::none, Form::whole, {}, false});
      unit.lay_out({logical, tensor.local_shards(), tensor.first_shard()}, 1, 0, DType::f32);
      unit.allocate_values(backend.memory());
      unit.gradients().allocate(backend.memory());
      optimizers_[number] = std::make_unique<UnitOptimizer>(unit, OptimizerConfig{}, 0, 1);
      optimizers_[number]->allocate(backend.memory());
    }
    decisions_.emplace(backend, Groups{tensor, alone_, alone_}, Decisions::of_each(optimizers_), 2 * units,
                       false);
  }

  void make_gradients(int turn) {
    for (const auto& unit : units_)
      for (int param = 0; param < 2; ++param)
        for (int shard = 0; shard < unit->local_shards(param); ++shard) {
          const Tensor gradient =
              unit->gradients().of(param, 0, shard).reshaped({unit->shard_shape(param).count()});
          const int whole = param == 0 ? tensor_.first_shard() + shard : 0;
          RandomStream{static_cast<std::uint64_t>(turn), purpose_of(unit->name() + std::to_string(param))}
              .normals(whole * gradient.count(), gradient.count(), 1e-3f, gradient.as<float>());
        }
  }
  void spoil(int unit) {
    if (tensor_.rank() == 0)
      units_[unit]->gradients().of(0, 0, 0).as<float>()[7] = std::numeric_limits<float>::infinity();
  }
  Numbers decision(int unit) const {
    Numbers numbers{};
    backend_.download(decisions_->of(unit), numbers.data());
    return numbers;
  }
  Decisions& decisions() { return *decisions_; }

 private:
  Backend& backend_;
  Communicator& tensor_;
  Communicator alone_{backend_, 1};
  std::vector<std::unique_ptr<Unit>> units_;
  Optimizers optimizers_;
  std::optional<Decisions> decisions_;
};

constexpr StepRule rule{.loss_factor = 0.25, .valid = 8, .clip = 0.05, .beta1 = 0.9f, .beta2 = 0.95f};

class DecisionsOfUnits : public testing::Test {
 protected:
  DecisionsOfUnits() {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    if (ranks_ > 1)
      tensor_ = std::make_unique<Communicator>(*backend_, std::make_unique<Group>(MPI_COMM_WORLD, waiting_),
                                               logical, Axis::tensor, nullptr);
    else tensor_ = std::make_unique<Communicator>(*backend_, logical);
    here_.emplace(*tensor_, *backend_);
    whole_.emplace(alone_, *backend_);
  }
  /// All units' decisions have the bits that they have where all shards are.
  void expect_the_bits_of_one_rank() const {
    for (int unit = 0; unit < units; ++unit) {
      const Numbers here = here_->decision(unit), whole = whole_->decision(unit);
      EXPECT_EQ(std::memcmp(here.data(), whole.data(), sizeof(here)), 0) << "unit " << unit;
    }
  }
  void decide(std::vector<int> chosen) {
    std::vector<UnitUse> uses;
    for (const int unit : chosen) uses.push_back({unit, 0});
    here_->decisions().decide(uses, rule);
    whole_->decisions().decide(uses, rule);
  }

  int ranks_ = 1;
  Memory memory_{Memory::Kind::host};
  std::unique_ptr<Backend> backend_ = make_cpu_backend(memory_, 1, "auto");
  Waiting waiting_;
  std::unique_ptr<Communicator> tensor_;
  Communicator alone_{*backend_, logical};
  std::optional<Sample> here_, whole_;
};

TEST_F(DecisionsOfUnits, CountTheirOwnStepsAndNormsWhateverTheLayout) {
  const std::vector<std::vector<int>> turns{{0, 1, 2}, {1}, {2, 0}, {1}};
  for (int turn = 0; turn < static_cast<int>(turns.size()); ++turn) {
    here_->make_gradients(turn);
    whole_->make_gradients(turn);
    decide(turns[turn]);
    expect_the_bits_of_one_rank();
  }
  EXPECT_EQ(here_->decision(0)[Decision::applied_steps], 2);
  EXPECT_EQ(here_->decision(1)[Decision::applied_steps], 3);
  EXPECT_EQ(here_->decision(2)[Decision::applied_steps], 2);
}

TEST_F(DecisionsOfUnits, ClipEachUnitByItsOwnNorm) {
  whole_->make_gradients(1);
  decide({0, 1, 2});
  for (int unit = 0; unit < units; ++unit) {
    // 64 x 600 numbers for each of unit + 1, of deviation 1e-3, and half of it undone by the constant.
    const double norm = 1e-3 * std::sqrt(64 * 600.0 * (unit + 1)) / 2;
    const Numbers decided = whole_->decision(unit);
    EXPECT_NEAR(decided[Decision::gradient_norm], norm, 0.01 * norm);
    EXPECT_NEAR(decided[Decision::gradient_factor], 0.5 * std::min(1.0, 0.05 / norm), 0.01);
  }
}

TEST_F(DecisionsOfUnits, AGradientThatIsNotFiniteSkipsItsOwnUnitAlone) {
  here_->make_gradients(1);
  whole_->make_gradients(1);
  here_->spoil(1);
  whole_->spoil(1);
  decide({0, 1, 2});
  for (int unit = 0; unit < units; ++unit) {
    EXPECT_EQ(here_->decision(unit)[Decision::skipped], unit == 1 ? 1 : 0);
    EXPECT_EQ(here_->decision(unit)[Decision::applied_steps], unit == 1 ? 0 : 1);
  }
}

}  // namespace
}  // namespace mindpipe
