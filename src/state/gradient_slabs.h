#pragma once
#include <span>
#include <utility>
#include <vector>

#include "program/place.h"
#include "state/stage.h"

namespace mindpipe {

/// Where the accumulators of a rank's units lie: each unit's own, or slabs in which uses take turns.
class GradientSlabs {
 public:
  explicit GradientSlabs(Stage& stage) : stage_(stage) {}
  /// Takes the memory of a step, whose uses have places until another cut of the model is taken.
  void allocate(const RankMemory& placed);
  /// Takes that of a supernet: accumulators of units that all subnets share are their own, the others' lie in
  /// slabs of so many bytes.
  void allocate(int slabs, std::size_t bytes);

  /// Lets the accumulators of these uses lie one after the other in a slab.
  void bind(std::span<const UnitUse> uses, int slab);
  /// While it lives, the accumulators of one use lie where they were bound in a slab.
  class Bound {
   public:
    Bound(Unit& unit, int use, void* there)
        : unit_(unit), use_(use), before_(unit.gradients().accumulators(use).data) {
      unit_.gradients().place(use_, there);
    }
    ~Bound() { unit_.gradients().place(use_, before_); }
    Bound(const Bound&) = delete;
    Bound& operator=(const Bound&) = delete;

   private:
    Unit& unit_;
    int use_;
    void* before_;
  };
  Bound bound(const UnitUse& use, int slab);

 private:
  struct Slab {
    Arena arena;
    std::vector<std::pair<UnitUse, void*>> places = {};  ///< places of accumulators that were bound here
  };
  void add_slab(std::size_t bytes);
  void place(const UnitUse& use, Slab& slab);

  Stage& stage_;
  std::vector<Slab> slabs_;
};

/// For each use of a unit, whether this rank's share of its gradient needs a place of its own: when it moves
/// out of its slab, or comes from another stage, on a rank whose gradients lie in slabs.
std::vector<char> shares_apart(const Model& model, int unit, const RankMemory& placed);

}  // namespace mindpipe
