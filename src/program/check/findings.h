#pragma once
#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

namespace mindpipe {

/// Gathers what is wrong with lists, one readable line each.
class Findings {
 public:
  template <class... Parts>
  void add(fmt::format_string<Parts...> sentence, Parts&&... parts) {
    lines_.push_back(fmt::format(sentence, std::forward<Parts>(parts)...));
  }
  bool empty() const { return lines_.empty(); }
  std::vector<std::string> take() { return std::exchange(lines_, {}); }

 private:
  std::vector<std::string> lines_;
};

}  // namespace mindpipe
