#pragma once
#include <ostream>

#include "program/checked_lists.h"

// What can be wrong with a list, and helpers that spoil one.
namespace mindpipe {

struct WrongList {
  const char* name;
  std::function<Lists()> make;
  std::function<void(Lists&)> spoil;
  const char* sentence;
};
inline void PrintTo(const WrongList& wrong, std::ostream* out) { *out << wrong.name; }

inline SuchAction of_kind(ActionKind kind) {
  return [kind](const Action& action) { return action.kind == kind; };
}
inline SuchAction end_of(Payload payload, bool sent) {
  return [=](const Action& action) { return action.payload == payload && sends(action) == sent; };
}
/// Another number in a field of the `nth` action that is such.
inline std::function<void(Lists&)> naming(const SuchAction& is_such, int Action::*field, int number,
                                          int nth = 0) {
  return [=](Lists& lists) { lists.at(is_such, nth).*field = number; };
}
/// The action waits for nothing any more.
inline std::function<void(Lists&)> without_waits(const SuchAction& is_such, int nth = 0) {
  return [=](Lists& lists) { lists.at(is_such, nth).after.clear(); };
}
/// No action waits for anything, but for what queues imply.
inline std::function<void(Lists&)> none_waits(const SuchAction& is_such) {
  return [=](Lists& lists) {
    for (Action& action : lists.list())
      if (is_such(action)) action.after.clear();
  };
}
/// Takes what is such from what an action waits for.
inline std::function<void(Lists&)> without_waits_for(const SuchAction& is_such, const SuchAction& is_awaited,
                                                     int nth) {
  return [=](Lists& lists) {
    std::erase_if(lists.at(is_such, nth).after,
                  [&](int earlier) { return is_awaited(lists.list()[earlier]); });
  };
}

}  // namespace mindpipe
