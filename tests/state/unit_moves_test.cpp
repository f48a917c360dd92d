#include "state/gradient_updates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>
#include "make_backend.h"
#include "spaces.h"

#include "core/random.h"

// What a unit's state is taken apart into and put together from, without a message: two ranks of a program in
// one process.
namespace mindpipe {
namespace {

/// Whose state travels, and how it is kept.
struct MoveCase {
  Precision precision = Precision::f32;
  OptimizerKind optimizer = OptimizerKind::adamw;
  int tensor = 1;  ///< ranks; the last of them is here
};

Config config_of_moves(const MoveCase& c) {
  Config config;
  config.model.kind = ModelKind::supernet;
  supernet::Settings& m = config.model.supernet;
  m.space =
      space_from("{name: texts, decoder: {blocks: 4, candidates: [attention-4, mlp-2, separable-3, glu]}}");
  m.width = 16;
  m.vocabulary = 67;
  m.context = config.data.sequence = 8;
  config.reproducible.tensor = 4;
  config.reproducible.data = 1;
  config.grid.tensor = c.tensor;
  config.train.precision = c.precision;
  config.train.batch = config.train.micro_batch = 2;
  config.optimizer.kind = c.optimizer;
  config.optimizer.momentum = 0.9;
  return config;
}

/// One unit's state, as bytes.
struct StateOfUnit {
  std::int64_t version = 0;
  double applied = 0;
  std::vector<std::vector<std::byte>> tensors;  ///< values, masters, moments
  bool operator==(const StateOfUnit&) const = default;
};

/// The units of all blocks on one rank of a program, whose values and states follow from a name.
class MovingStage {
 public:
  MovingStage(const MoveCase& c, const char* name, int channels, std::size_t most,
              Memory::Kind kind = Memory::Kind::host)
      : config_(config_of_moves(c)),
        memory_(kind),
        backend_(make_cpu_backend(memory_, 1, "auto")),
        tensor_(*backend_, config_.reproducible.tensor, OnPaper{c.tensor, c.tensor - 1}),
        alone_(*backend_, 1),
        stage_(config_, make_layout(config_, {}),
               LayerContext{*backend_, tensor_, compute_dtype(config_.train), false, config_.seed}, {{0, 6}}),
        residency_(stage_, config_.train, config_.optimizer, groups_),
        updates_(stage_, residency_, config_.train, config_.optimizer, config_.device.kind, groups_) {
    residency_.allocate({.keeps = ResidencyPlan::subnets, .ways = channels, .way = most});
    updates_.allocate_for_subnets(100);
    if (kind == Memory::Kind::host) fill(name);
  }

  /// Units that travel, ascending: those that subnets do not share.
  std::vector<int> movable() const {
    std::vector<int> units;
    for (const int unit : stage_.local_units())
      if (!stage_.model().is_shared(unit) && stage_.model().units()[unit]->flat_count() > 0)
        units.push_back(unit);
    return units;
  }
  StateOfUnit state_of(int unit) {
    StateOfUnit state;
    const Unit& kept = *stage_.model().units()[unit];
    state.version = residency_.values().version(unit);
    backend_->download(updates_.decisions().of(unit).range(Decision::applied_steps, 1), &state.applied);
    const auto add = [&](const Tensor& tensor) {
      const auto* bytes = static_cast<const std::byte*>(tensor.data);
      state.tensors.emplace_back(bytes, bytes + tensor.bytes());
    };
    add(kept.flat_values());
    for (const auto& [name, slot] : residency_.shares().of(unit).states()) add(slot);
    return state;
  }
  std::vector<StateOfUnit> all_states() {
    std::vector<StateOfUnit> states;
    for (const int unit : movable()) states.push_back(state_of(unit));
    return states;
  }
  /// Bytes of a unit's state: two counters, a master and the moments, all f32.
  std::int64_t bytes_of(int unit) const {
    const std::int64_t numbers = stage_.model().units()[unit]->flat_count(),
                       moments = std::ssize(config_.optimizer.moments());
    return 16 + 4 * numbers * (1 + moments);
  }
  Action move(const std::vector<int>& units, bool leaves, int peer, int part, int parts) const {
    Action action = action_of(leaves ? ActionKind::send : ActionKind::receive);
    action.payload = Payload::unit_state;
    action.units = units;
    action.peer = peer;
    action.part = part;
    action.parts = parts;
    std::int64_t all = 0;
    for (const int unit : units) all += bytes_of(unit);
    action.bytes = all * (part + 1) / parts - all * part / parts;
    return action;
  }
  Residency& residency() { return residency_; }
  /// Takes a part, and with the last one the versions that came.
  void take(const Action& arrival) {
    residency_.arrivals().ended(arrival);
    for (const UnitArrivals::Arrival& one : residency_.arrivals().take()) {
      double version = 0;
      backend_->download(one.version, &version);
      residency_.values().set_version(one.unit, static_cast<std::int64_t>(version));
    }
  }
  Stage& stage() { return stage_; }

 private:
  void fill(const char* name) {
    const RandomStream stream{7, purpose_of(name)};
    for (const int number : stage_.local_units()) {
      Unit& unit = stage_.unit(number);
      std::vector<float> numbers(static_cast<std::size_t>(unit.flat_count()));
      const auto draw = [&](int what) {
        RandomStream{7, purpose_of(name + unit.name()), static_cast<std::uint32_t>(what)}.normals(
            0, unit.flat_count(), 1.0f, numbers.data());
        return Tensor{numbers.data(), {unit.flat_count()}, DType::f32};
      };
      if (unit.flat_count() == 0) continue;
      if (unit.dtype() == DType::bf16) backend_->convert({draw(0), unit.flat_values()});
      else backend_->copy(draw(0), unit.flat_values());
      int what = 0;
      for (const auto& [slot, tensor] : residency_.shares().of(number).states())
        backend_->copy(draw(slot == "master" ? 0 : ++what), tensor);
      residency_.values().set_version(number, 1 + static_cast<std::int64_t>(stream.word(2 * number) % 1000));
      updates_.decisions().set_applied(number, static_cast<std::int64_t>(stream.word(2 * number + 1) % 1000));
    }
  }

  Config config_;
  Memory memory_;
  std::unique_ptr<Backend> backend_;
  Communicator tensor_, alone_;
  Groups groups_{tensor_, alone_, alone_};
  Stage stage_;
  Residency residency_;
  GradientUpdates updates_;
};

constexpr std::size_t ample = 1 << 20;

/// Brings the states of units from one rank to another, a part at a time. `between` is called after each part
/// but the last.
void bring(
    MovingStage& from, MovingStage& to, const std::vector<int>& units, int parts,
    const std::function<void()>& between = [] {}) {
  for (int part = 0; part < parts; ++part) {
    const Tensor sent = from.residency().moves().part_of(from.move(units, true, 1, part, parts));
    const Action arrival = to.move(units, false, 0, part, parts);
    const Tensor taken = to.residency().moves().part_of(arrival);
    ASSERT_EQ(sent.bytes(), taken.bytes());
    std::memcpy(taken.data, sent.data, sent.bytes());
    to.take(arrival);
    if (part + 1 < parts) between();
  }
}

class UnitsThatMove : public testing::TestWithParam<MoveCase> {};

TEST_P(UnitsThatMove, ArriveWithEveryBitInHoweverManyParts) {
  for (const int parts : {1, 2, 3, 5, 7, 13, 64, 1001}) {
    MovingStage from(GetParam(), "from", 1, ample), to(GetParam(), "to", 1, ample);
    const std::vector<int> all = from.movable();
    const std::vector<int> units{all[1], all[2], all[6], all[11]};
    const std::vector<StateOfUnit> before = to.all_states();
    bring(from, to, units, parts);
    const std::vector<StateOfUnit> sent = from.all_states(), after = to.all_states();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool moved = std::find(units.begin(), units.end(), all[i]) != units.end();
      EXPECT_NE(sent[i], before[i]);
      EXPECT_EQ(after[i], moved ? sent[i] : before[i])
          << to.stage().unit(all[i]).name() << " of " << parts << " parts";
    }
  }
}

TEST_P(UnitsThatMove, HaveTheirOldVersionAndRoundedValuesUntilTheLastPart) {
  MovingStage from(GetParam(), "from", 1, ample), to(GetParam(), "to", 1, ample);
  const int unit = from.movable()[3];
  const StateOfUnit before = to.state_of(unit);
  int looks = 0;
  bring(from, to, {unit}, 5, [&] {
    ++looks;
    EXPECT_EQ(to.state_of(unit).version, before.version);
    if (GetParam().precision == Precision::bf16) {
      EXPECT_EQ(to.state_of(unit).tensors[0], before.tensors[0]);
    }
  });
  EXPECT_EQ(looks, 4);
  EXPECT_EQ(to.state_of(unit), from.state_of(unit));
}

TEST_P(UnitsThatMove, TravelAtOnceOnChannelsOfTheirOwn) {
  MovingStage here(GetParam(), "here", 4, ample), left(GetParam(), "left", 1, ample),
      right(GetParam(), "right", 1, ample), beyond(GetParam(), "beyond", 2, ample);
  const std::vector<int> all = here.movable();
  const std::vector<int> from_left{all[0], all[4]}, from_right{all[2]}, to_beyond{all[5], all[7]};
  constexpr int parts = 3;
  for (int part = 0; part < parts; ++part) {
    // All parts of the same number are under way at once.
    const Action arrival = here.move(from_left, false, 1, part, parts),
                 other = here.move(from_right, false, 2, part, parts),
                 leaving = here.move(to_beyond, true, 2, part, parts),
                 once_more = here.move(to_beyond, true, 1, part, parts);
    const Tensor one = here.residency().moves().part_of(arrival),
                 two = here.residency().moves().part_of(other),
                 three = here.residency().moves().part_of(leaving),
                 four = here.residency().moves().part_of(once_more);
    const Tensor sent = left.residency().moves().part_of(left.move(from_left, true, 0, part, parts)),
                 also = right.residency().moves().part_of(right.move(from_right, true, 0, part, parts));
    std::memcpy(one.data, sent.data, sent.bytes());
    std::memcpy(two.data, also.data, also.bytes());
    EXPECT_EQ(std::memcmp(three.data, four.data, three.bytes()), 0);
    for (const int peer : {0, 3}) {
      const Action taken = beyond.move(to_beyond, false, peer, part, parts);
      const Tensor place = beyond.residency().moves().part_of(taken), source = peer == 0 ? three : four;
      std::memcpy(place.data, source.data, source.bytes());
      beyond.take(taken);
    }
    here.take(other);
    here.take(arrival);
  }
  for (const int unit : from_left) EXPECT_EQ(here.state_of(unit), left.state_of(unit));
  for (const int unit : from_right) EXPECT_EQ(here.state_of(unit), right.state_of(unit));
  for (const int unit : to_beyond) EXPECT_EQ(beyond.state_of(unit), here.state_of(unit));
}

TEST_P(UnitsThatMove, AMessageOfOtherUnitsThanPlannedIsRefused) {
  MovingStage from(GetParam(), "from", 1, ample);
  const std::vector<int> all = from.movable();
  Action action = from.move({all[1], all[2]}, true, 1, 0, 2);
  action.units.pop_back();
  EXPECT_THROW(from.residency().moves().part_of(action), Error);
}

TEST_P(UnitsThatMove, AChannelThatWasNotCountedIsRefused) {
  MovingStage from(GetParam(), "from", 2, ample);
  const std::vector<int> all = from.movable();
  from.residency().moves().part_of(from.move({all[1]}, true, 1, 0, 1));
  from.residency().moves().part_of(from.move({all[2]}, true, 1, 0, 1));
  from.residency().moves().part_of(from.move({all[3]}, false, 1, 0, 1));
  EXPECT_THROW(from.residency().moves().part_of(from.move({all[4]}, true, 2, 0, 1)), Error);
}

std::vector<MoveCase> cases_of_moves() {
  std::vector<MoveCase> cases;
  for (const Precision precision : {Precision::f32, Precision::bf16})
    for (const int tensor : {1, 2, 4}) cases.push_back({precision, OptimizerKind::adamw, tensor});
  cases.push_back({Precision::f32, OptimizerKind::sgd, 1});
  cases.push_back({Precision::bf16, OptimizerKind::sgd, 2});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Of, UnitsThatMove, testing::ValuesIn(cases_of_moves()), [](const auto& info) {
  return fmt::format("{}_{}_tensor_{}", name_of(info.param.precision), name_of(info.param.optimizer),
                     info.param.tensor);
});

TEST(RoomForMoves, IsNotTakenWhereThereIsNoChannel) {
  MovingStage with(MoveCase{}, "one", 2, 4096), without(MoveCase{}, "one", 0, 0);
  const auto taken = [](MovingStage& stage) {
    return stage.stage().context().backend.memory().allocated(MemoryClass::boundary);
  };
  EXPECT_EQ(taken(without), 0u);
  EXPECT_EQ(taken(with), 2 * 4096 + UnitMoves::bytes(with.stage()));
}

}  // namespace
}  // namespace mindpipe
