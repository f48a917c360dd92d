#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "comm/paper_ports.h"

namespace mindpipe {

/// Holds what an out port says of itself to the rule, entry by entry: it begins when it is free and something
/// stands ready, with the highest class, then with who came first, and nobody interrupts.
inline void expect_leaves_by_rule(const std::vector<PaperPorts::Passed>& record) {
  using Passed = PaperPorts::Passed;
  const auto turn = [](const Passed& each) {
    return std::tuple(static_cast<int>(each.traffic), each.offered, each.peer, each.order);
  };
  for (const Level level : {Level::node, Level::net, Level::copies}) {
    std::vector<Passed> all;
    std::copy_if(record.begin(), record.end(), std::back_inserter(all),
                 [&](const Passed& each) { return each.level == level; });
    std::int64_t free = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::int64_t first = all[i].offered;
      for (std::size_t j = i; j < all.size(); ++j) first = std::min(first, all[j].offered);
      ASSERT_EQ(all[i].began, std::max(free, first)) << "entry " << i;
      ASSERT_EQ(all[i].left, all[i].began + all[i].takes) << "entry " << i;
      for (std::size_t j = i + 1; j < all.size(); ++j)
        if (all[j].offered <= all[i].began) {
          ASSERT_LT(turn(all[i]), turn(all[j])) << i << " before " << j;
        }
      free = all[i].left;
    }
  }
}

/// The rule is held to what the port had: of some transfers the host tells late. On a machine that runs
/// nothing else these were 16 % at most.
inline void expect_mostly_in_time(const std::vector<PaperPorts::Passed>& record) {
  const auto late = std::count_if(record.begin(), record.end(),
                                  [](const PaperPorts::Passed& each) { return each.offered > each.said; });
  EXPECT_LE(late, static_cast<std::ptrdiff_t>(record.size() / 4));
}

/// Holds an in port to the rule: what streams in while it leaves is late by no more than what others took of
/// the port meanwhile.
inline void expect_arrives_by_rule(const std::vector<PaperPorts::Passed>& record) {
  std::array<std::int64_t, levels> in_free{};
  for (std::size_t i = 0; i < record.size(); ++i) {
    const PaperPorts::Passed& each = record[i];
    std::int64_t& free = in_free[static_cast<std::size_t>(each.level)];
    std::int64_t others = 0;
    for (std::size_t j = 0; j < i; ++j)
      if (record[j].level == each.level && record[j].left > each.began && record[j].left <= each.left)
        others += record[j].takes;
    ASSERT_EQ(each.left, each.began + each.takes) << "entry " << i;
    ASSERT_EQ(each.arrived, std::max(each.left, std::min(free + each.takes, each.left + others)))
        << "entry " << i;
    free = std::max(free, each.arrived);
  }
}

}  // namespace mindpipe
