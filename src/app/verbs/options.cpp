#include "app/verbs/options.h"

#include <charconv>
#include <limits>

#include "core/check.h"
#include "core/text.h"

namespace mindpipe {

std::string refuse_unless_plain(const std::string& text) {
  return is_plain_integer(text) ? "" : "'" + text + "' is not an integer in plain digits (40)";
}

const CLI::Validator& plain_integer() {
  static const CLI::Validator validator(refuse_unless_plain, "");
  return validator;
}

void declare_config(CLI::App& app, Arguments& a) {
  app.add_option("--config", a.config, "the configuration, a YAML file")->option_text("FILE");
  app.add_option("key=value", a.overrides, "settings that override the file's")->option_text("...");
  app.add_flag("--print-config", a.print_config, "print every setting, resolved, and stop");
}

void declare_ranks(CLI::App& app, Arguments& a) {
  app.add_option("--ranks", a.ranks, "plan, or dry run, for this many ranks")
      ->check(plain_integer())
      ->check(CLI::Range(1, 1 << 20))
      ->option_text("N");
}

namespace {

/// "64", or "8..64".
void read_ranks(const std::string& text, Arguments& a) {
  constexpr int most = 1 << 20;
  const auto number = [&](const std::string& digits) {
    const std::string problem = refuse_unless_plain(digits);
    MP_REQUIRE(problem.empty(), Exit::usage, "command line: --ranks: {}", problem);
    int ranks = 0;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), ranks);
    MP_REQUIRE(end.ec == std::errc{} && ranks >= 1 && ranks <= most, Exit::usage,
               "command line: --ranks: {} is no number of ranks from 1 to {}", digits, most);
    return ranks;
  };
  const std::size_t dots = text.find("..");
  a.ranks = number(text.substr(0, dots));
  if (dots == std::string::npos) return;
  a.layouts.most_ranks = number(text.substr(dots + 2));
  MP_REQUIRE(a.layouts.most_ranks >= a.ranks, Exit::usage,
             "command line: --ranks: {} goes down (write it as {}..{})", text, a.layouts.most_ranks, a.ranks);
}

void declare_goal(CLI::App& app, Arguments& a, CLI::Option* search) {
  std::vector<std::string> goals;
  for (const PlanGoalKind goal : all_kinds<PlanGoalKind>()) goals.emplace_back(name_of(goal));
  app.add_option_function<std::string>(
         "--objective", [&a](const std::string& name) { a.layouts.goal = *kind_named<PlanGoalKind>(name); },
         "--search: what the best plan has least of, for what its step is worth (time)")
      ->check(CLI::IsMember(goals))
      ->needs(search)
      ->option_text(join(goals, "|"));
  app.add_option("--batches", a.layouts.batches, "--search: compare these train.batch (needs --noise-scale)")
      ->check(plain_integer())
      ->check(CLI::Range(1, std::numeric_limits<int>::max()))
      ->delimiter(',')
      ->needs(search)
      ->option_text("B,B,...");
  app.add_option("--noise-scale", a.layouts.noise_scale,
                 "--search: the noise scale in samples, or a run with train.noise_every")
      ->needs(search)
      ->option_text("N|RUN");
  const auto add_price = [&](const char* name, double& price, const char* of) {
    app.add_option(name, price, std::string("--search --objective cost: price of ") + of)
        ->check(CLI::NonNegativeNumber)
        ->needs(search)
        ->option_text("PRICE");
  };
  add_price("--rank-hour", a.layouts.rank_hour, "an hour of a rank");
  add_price("--kwh", a.layouts.kwh, "a kilowatt-hour");
  add_price("--carbon-kg", a.layouts.co2_kg, "a kilogram of CO2 equivalent");
}

}  // namespace

void declare_plan(CLI::App& app, Arguments& a) {
  declare_config(app, a);
  app.add_flag("--simulate", a.simulate,
               "run the step in virtual time on device.description and device.links: its length, tokens/s, "
               "and the idle share of every stage");
  CLI::Option* search = app.add_flag(
      "--search", a.layouts.search,
      "find the best layout by the simulator: free is what the file leaves out or calls auto of grid, "
      "schedule, train.zero, train.recompute and train.sequence_parallel");
  app.add_option("--top", a.layouts.top, "--search: list this many layouts (5)")
      ->check(plain_integer())
      ->check(CLI::Range(1, 1000))
      ->needs(search)
      ->option_text("K");
  app.add_option("--measure", a.layouts.measure,
                 "--search: run a few steps of this many layouts in this job, and take the fastest")
      ->check(plain_integer())
      ->check(CLI::Range(0, 100))
      ->needs(search)
      ->option_text("K");
  app.add_option("--output", a.layouts.output, "--search: write the configuration with the best layout")
      ->needs(search)
      ->option_text("FILE");
  app.add_option("--json", a.layouts.json, "--search: write all layouts, each with its time, bound or reason")
      ->needs(search)
      ->option_text("FILE");
  app.add_option("--html", a.layouts.html, "--search: write a page with pictures, whole in itself")
      ->needs(search)
      ->option_text("FILE");
  declare_goal(app, a, search);
  app.add_option_function<std::string>(
         "--ranks", [&a](const std::string& text) { read_ranks(text, a); },
         "plan for this many ranks; --search: compare A, its doubles, and B")
      ->option_text("N|A..B");
}

}  // namespace mindpipe
