#include "plan/other_subnets.h"

#include <algorithm>

#include "config/config.h"
#include "config/open_settings.h"
#include "core/text.h"
#include "plan/memory_limits.h"
#include "plan/network_on_paper.h"
#include "plan/other_program.h"
#include "program/causal/causal_planner.h"
#include "supernet/sampler.h"
#include "trace/subnet_report.h"

namespace mindpipe {
namespace {

/// Settings that change where and when subnets run, and nothing of what they compute.
constexpr std::string_view order_settings[] = {"grid.supernet", "grid.pipeline",  "grid.data",
                                               "supernet.cuts", "supernet.slots", "supernet.admission",
                                               "device.links."};

/// Subnets that go before those that are timed, so that these find stages at work.
constexpr std::int64_t subnets_before = 64;

}  // namespace

OtherSubnets::OtherSubnets(const StepTrace& trace, const std::string& prices, std::int64_t lasts,
                           const std::string& name)
    : traced_(with_settings(config_of_yaml(trace.configuration, name), {"supernet.prices=" + prices})),
      name_(name),
      lasts_{lasts, lasts, lasts} {
  const std::set<std::int64_t> subnets = subnets_of(trace);
  MP_REQUIRE(!subnets.empty(), Exit::bad_data, "{}: has no pass of a subnet", name);
  first_ = *subnets.begin();
  behind_ = *subnets.rbegin() + 1;
  itself_ = static_cast<double>(planned(traced_));
}

std::int64_t OtherSubnets::planned(const Config& config) const {
  const RunPlan plan = make_run_plan(config);
  require_within(plan, config);
  const SubnetRules& rules = plan.subnets->paper.rules;
  const std::int64_t window = std::max<std::int64_t>(1, rules.window),
                     from = std::max<std::int64_t>(0, first_ - subnets_before) / window * window;
  std::vector<Subnet> subnets;
  const auto stream = stream_of(config, from);
  while (from + std::ssize(subnets) < behind_) subnets.push_back(stream->next());
  std::int64_t begin = -1, end = 0;
  CausalPlanner planner(plan.outline, network_on_paper(config), rules, from);
  planner.next(subnets, true, [&](const Task& task) {
    const bool is_pass = task.kind == TaskKind::forward || task.kind == TaskKind::backward;
    if (!is_pass && task.kind != TaskKind::update) return;
    if (begin < 0 && is_pass && task.owner.number >= first_) begin = task.start;
    end = std::max(end, task.start + task.lasts);
  });
  return end - begin;
}

WhatIfResult OtherSubnets::expect(const std::vector<std::string>& settings) const {
  const Config other = with_what_if(traced_, settings, order_settings, name_);
  WhatIfResult result =
      priced_beside(lasts_, itself_, static_cast<double>(planned(other)), join(settings, " "));
  const int ranks = num_ranks(degrees_of(traced_.grid)), others = num_ranks(degrees_of(other.grid));
  if (ranks != others) result.note += fmt::format("; on {} ranks instead of {}", others, ranks);
  if (traced_.grid.pipeline != other.grid.pipeline)
    result.note += "; what single stages are slower by is left out";
  return result;
}

}  // namespace mindpipe
