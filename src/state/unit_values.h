#pragma once
#include <string_view>
#include <vector>

#include "state/readers.h"

namespace mindpipe {

/// The state that a supernet keeps besides, of units that all subnets share: their values a window ago.
inline constexpr std::string_view older_state = "older";

/// The values of a rank's units, and their versions. What all subnets of a supernet share has two copies that
/// take turns: subnets of a window read the version that the window before the one before it has left.
class UnitValues {
 public:
  explicit UnitValues(Stage& stage) : stage_(stage), held_(stage.model().units().size()) {}
  /// `window`: subnets that read one version of what all share. `in_order`: whether `bind` refuses another
  /// version than the one that is due.
  void allocate(std::int64_t window, bool in_order);

  /// Takes memory for a unit that comes, and gives that of a unit back that has left.
  void hold(int unit);
  void drop(int unit) { held_[unit].arena = Arena(); }

  /// Begins before subnet `first`, where a window does, with the newest values; before the first of all both
  /// copies are these.
  void begin(Reader first);
  /// Lets values be those that a subnet is to read; the newest, at a drain.
  void bind(Reader reader);
  void bind_newest();
  /// Opens the next version of a unit with two copies: the one that nobody reads any more becomes that of the
  /// window before, which an update moves on.
  void open(int unit, std::int64_t window);
  /// Hears that a unit has its next version.
  void wrote(int unit) { set_version(unit, version(unit) + 1); }

  /// Updates of a unit so far; in the copy that a reader is to read.
  std::int64_t version(int unit) const { return held_[unit].copies[held_[unit].newest].version; }
  std::int64_t version_read(Reader reader, int unit) const {
    return held_[unit].copies[copy_of(reader)].version;
  }
  Tensor read_by(Reader reader, int unit) const { return held_[unit].copies[copy_of(reader)].values; }
  void set_version(int unit, std::int64_t version) {
    held_[unit].copies[held_[unit].newest].version = version;
  }
  Tensor newest(int unit) const { return held_[unit].copies[held_[unit].newest].values; }
  /// The values of the window before; a unit with one copy follows no windows and has its newest.
  Tensor older(int unit) const {
    const Held& held = held_[unit];
    return held.copies[held.copies.size() - 1 - held.newest].values;
  }

 private:
  struct Copy {
    Tensor values;
    std::int64_t version = 0;
  };
  struct Held {
    Arena arena = {};
    std::vector<Copy> copies = std::vector<Copy>(1);
    std::size_t newest = 0;
    std::int64_t beyond = 0;  ///< updates before this run's windows, of a unit with two copies
  };
  std::size_t copy_of(Reader reader) const { return static_cast<std::size_t>(reader / window_ % 2); }

  Stage& stage_;
  std::vector<Held> held_;   ///< by unit
  std::vector<int> shared_;  ///< units with two copies
  std::int64_t window_ = 1;
  bool in_order_ = false;
};

}  // namespace mindpipe
