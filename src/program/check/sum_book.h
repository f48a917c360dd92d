#pragma once
#include <map>
#include <vector>

#include "program/check/reading.h"

namespace mindpipe {

/// Follows what a list adds up, by symbols, to the end of every gradient: each is the sum of all
/// micro-batches, once and in order, folded shard by shard into the tree's counter (fault_of_tree proves the
/// tree), summed over data in parts that are all there, joined with its other uses in model order. An update
/// makes the next version of what it was decided by; forwards read whole values. Symbols are ranges, so an
/// action costs its blocks' uses. What an action has to wait for is proved by other books.
class SumBook {
 public:
  /// A step's uses are those of the outline.
  explicit SumBook(Reading& reading);
  /// A subnet's passes are to come, over blocks [first, last), which use these units, block by block.
  void expect(std::int64_t subnet, int first, int last, const std::vector<UnitUse>& uses);
  void see();
  void end();

 private:
  /// The sum in an accumulator: of micro-batches [first, next), each added behind the one before. Nobody
  /// knows what it is of before it is zeroed.
  struct Chain {
    bool is_known = false;
    int first = 0, next = 0;
  };
  /// The gradients that are made at once, or put off: they have sums of their own.
  struct Half {
    Chain chain;
    int folded = 0;  ///< shards, from the first on
  };
  /// Parts of a transfer, each of which has come behind the one before.
  struct Parts {
    int next = 0, all = 0;
    bool add(const Action& action);
    bool is_whole() const { return all > 0 && next == all; }
  };
  struct Block {
    std::vector<int> units = {};
    std::map<int, Parts> summed = {};  ///< over data, by unit
    Half at_once, later;
  };
  struct Network {
    int first = 0;
    std::vector<Block> blocks;
    std::vector<char> has_loss = {};  ///< by micro-batch, where the head is
    /// A block that its passes go over; null: it is none.
    Block* block(int number) {
      const int place = number - first;
      return place < 0 || place >= std::ssize(blocks) ? nullptr : &blocks[place];
    }
  };
  /// A unit's values on the data ranks that share them: whole once all shares have come, until the update.
  struct Values {
    bool is_whole = true, is_updated = false;
    Parts gathered;
    ListEntry gathered_at;
  };

  bool is_summed_apart(int unit) const;
  Network* network();
  Values& values_of(int unit) {
    return values_.try_emplace(unit, Values{.is_whole = !reading_.outline.sharded_optimizer}).first->second;
  }
  void pass(Network& network);
  void reads(Network& network);
  void adds(int number, Block& block, Half& half);
  void folds(int number, Block& block, Half& half);
  void reduce();
  void exchange();
  void sum_scalar();
  void update();
  void update_subnet();
  void gather();
  void require_gradient(Network& network, const UnitUse& use);
  void require_losses(const Network& network);
  template <class... Words>
  void wrong_gradient(const UnitUse& use, fmt::format_string<Words...> sentence, Words&&... words);

  Reading& reading_;
  std::map<std::int64_t, Network> networks_;
  std::map<UnitUse, Parts> arrived_;               ///< gradients of uses on other ranks
  std::map<std::pair<UnitUse, int>, Parts> sent_;  ///< gradients of uses here, to ranks
  std::map<int, Values> values_;
  bool is_decided_ = false;
};

}  // namespace mindpipe
