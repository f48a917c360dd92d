#pragma once
#include <map>

#include "program/check/reading.h"

namespace mindpipe {

/// Follows the units that a moving step hands over: the state of a unit goes from its old home to the new one
/// whole, and so does its gradient; both have come when the new home makes the next version.
class MoveBook {
 public:
  explicit MoveBook(Reading& reading) : reading_(reading) {}
  void see();
  void end();

 private:
  /// What has been handed over of a unit; of parts the last.
  struct Handed {
    ListEntry state, gradient;
  };

  bool is_on_way(int unit) const;
  void state();
  void gradient();
  void update();

  Reading& reading_;
  std::map<int, Handed> handed_;
};

}  // namespace mindpipe
