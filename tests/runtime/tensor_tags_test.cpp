// Sums inside passes, followed by tags: a program of its own, alone
#include "runtime/tensor_tags.h"

#include <gtest/gtest.h>

#include <set>

#include "config/settings.h"
#include "plan/block_passes.h"
#include "program/check/tree_proof.h"
#include "runtime/styles.h"

namespace mindpipe {
namespace {

/// An exchange that a layer would have left out, or done twice.
struct Mistake {
  int number = -1;
  bool doubled = false;
};

/// What a pass over all blocks asks of the tensor group on one rank, and where its tags do not fit.
struct Followed {
  std::vector<std::string> exchanges, faults;
  int sums = 0;  ///< exchanges that are sums
  std::set<std::string> operations;
};

class Pass {
 public:
  Pass(const Config& config, int rank, Mistake mistake, Tape::WeightGradients weight_gradients)
      : layout_(make_layout(config, {.tensor = rank})),
        memory_(Memory::Kind::host),
        backend_(memory_),
        tensor_(backend_, layout_.tensor_shards, OnPaper{layout_.grid.tensor, rank}),
        passes_(config, layout_, backend_, memory_, tensor_),
        mistake_(mistake) {
    constexpr std::size_t room = std::size_t{48} << 20;
    const int blocks = static_cast<int>(passes_.model().blocks().size());
    for (auto& unit : passes_.model().units()) {
      unit->allocate_values(memory_);
      unit->gradients().allocate(memory_);
    }
    passes_.stage().allocate_statistics({{0, blocks}});
    passes_.allocate({room, room, room});
    know_what_is_there();
    tensor_.on_asked([this](const AskedExchange& asked) { hear(asked); });
    passes_.train(0, blocks, weight_gradients, [](BlockPasses::Part) {});
    require_gradients();
    followed.faults = backend_.faults();
  }
  Followed followed;

 private:
  void know_what_is_there() {
    for (Arena* arena : {&passes_.kept(), &passes_.scratch(), &passes_.outside()}) {
      backend_.know(arena->take({static_cast<std::int64_t>(arena->size())}, DType::u8), Tag::nothing);
      arena->forget();
    }
    for (auto& unit : passes_.model().units())
      for (int p = 0; p < static_cast<int>(unit->params().size()); ++p) {
        for (int s = 0; s < unit->local_shards(p); ++s)
          backend_.know_weight(unit->value(p, s), unit->params()[p].split);
        for (int use = 0; use < unit->uses(); ++use)
          backend_.know(unit->gradients().accumulators(use), Tag::zero);
      }
  }
  void hear(const AskedExchange& asked) {
    const std::string operation = asked.operation;
    const bool is_sum = operation.starts_with("sum"), is_wrong = is_sum && followed.sums == mistake_.number;
    followed.exchanges.push_back(fmt::format("{} of {} {} to {}", operation, to_string(asked.from.shape),
                                             name_of(asked.from.dtype), to_string(asked.to.shape)));
    followed.operations.insert(operation);
    followed.sums += is_sum ? 1 : 0;
    if (!is_wrong || mistake_.doubled) backend_.join(asked);
    // What is left out leaves what the rank has where the sum would be.
    if (is_wrong && !mistake_.doubled) backend_.know(asked.to, backend_.tag_of(asked.from));
    if (is_wrong && mistake_.doubled) backend_.join({asked.operation, asked.to, asked.to});
  }
  /// A weight that all ranks have alike gets its gradient from all rows.
  void require_gradients() {
    for (auto& unit : passes_.model().units())
      for (int p = 0; p < static_cast<int>(unit->params().size()); ++p) {
        const ParamSpec& spec = unit->params()[p];
        for (int use = 0; use < unit->uses() && spec.is_learned(); ++use) {
          const Tag tag = backend_.tag_of(unit->gradients().of(p, use, 0));
          const bool fits = spec.split != Split::none || spec.form != Form::whole
                                ? tag != Tag::part && tag != Tag::nothing
                                : tag == Tag::whole || tag == Tag::zero;
          if (!fits)
            backend_.fault(fmt::format("the gradient of {} is {}", tensor_name(*unit, p), name_of(tag)));
        }
      }
  }

  Layout layout_;
  Memory memory_;
  TagBackend backend_;
  Communicator tensor_;
  BlockPasses passes_;
  Mistake mistake_;
};

/// Logical shards of as many ranks.
int logical_for(int ranks) { return ranks > 4 ? ranks : 4; }

Config config_of(Style style, int ranks, bool sequence_parallel, bool recomputes = false) {
  Config config = tiny(style, logical_for(ranks), 1, 1, 4);
  config.grid.tensor = ranks;
  config.train.sequence_parallel = sequence_parallel;
  if (recomputes) config.train.recompute = WhichBlocks::block;
  return resolve(config);
}
Followed follow(const Config& config, int rank, Mistake mistake = {},
                Tape::WeightGradients gradients = Tape::WeightGradients::now) {
  return Pass(config, rank, mistake, gradients).followed;
}

class TensorTags : public testing::TestWithParam<int> {
 protected:
  Style style() const { return static_cast<Style>(GetParam()); }
};

TEST_P(TensorTags, OfAllRanksFitAndTheirExchangesAreEqual) {
  for (const int ranks : {1, 2, 4, 8})
    for (const bool sequence_parallel : {false, true})
      for (const bool recomputes : {false, true}) {
        const Config config = config_of(style(), ranks, sequence_parallel, recomputes);
        EXPECT_EQ(fault_of_tree(logical_for(ranks), ranks), "");
        const Followed first = follow(config, 0);
        for (int rank = 0; rank < ranks; ++rank)
          for (const auto gradients : {Tape::WeightGradients::now, Tape::WeightGradients::later}) {
            const Followed other = follow(config, rank, {}, gradients);
            EXPECT_EQ(other.exchanges, first.exchanges) << ranks << ' ' << rank << ' ' << sequence_parallel;
            EXPECT_EQ(other.faults, std::vector<std::string>{})
                << ranks << ' ' << rank << ' ' << sequence_parallel;
          }
      }
}

TEST_P(TensorTags, FindEachSumThatIsLeftOutOrDoubled) {
  int tried = 0;
  for (const auto& [ranks, sequence_parallel] : {std::pair(2, false), {2, true}, {8, false}, {8, true}}) {
    const Config config = config_of(style(), ranks, sequence_parallel);
    const Followed sound = follow(config, 1);
    const int sums = sound.sums;
    EXPECT_GT(sums, 0);
    ASSERT_TRUE(sound.faults.empty());
    for (int number = 0; number < sums; ++number)
      for (const bool doubled : {false, true}) {
        EXPECT_FALSE(follow(config, 1, {number, doubled}).faults.empty())
            << (doubled ? "doubled: " : "left out: ") << follow(config, 0).exchanges[0] << " number "
            << number;
        ++tried;
      }
  }
  std::cout << tried << " mistakes\n";
}

INSTANTIATE_TEST_SUITE_P(Of, TensorTags, testing::Range(0, style_count), [](const auto& style) {
  return std::string(name_of(static_cast<Style>(style.param)));
});

}  // namespace
}  // namespace mindpipe
