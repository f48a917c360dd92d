#include "app/verbs/options.h"

#include <charconv>

#include "config/kinds.h"
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

void declare_foreign_profile(CLI::App& app, Arguments& a) {
  app.add_flag("--foreign-profile", a.foreign_profile,
               "take the prices of device.profile though another machine measured them");
}

void declare_ranks(CLI::App& app, Arguments& a) {
  app.add_option("--ranks", a.ranks, "plan, dry run, or name the arithmetic, for this many ranks")
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
  const auto add = [&](const char* name, const char* setting, const char* of, const std::string& shown) {
    return app
        .add_option_function<std::string>(
            name, [&a, setting](const std::string& value) { a.overrides.push_back(setting + ("=" + value)); },
            fmt::format("--search: {}, short for {}", of, setting))
        ->needs(search)
        ->option_text(shown);
  };
  add("--objective", "plan.objective", "what the best plan has least of, for what its step is worth",
      join(goals, "|"))
      ->check(CLI::IsMember(goals));
  app.add_option_function<std::string>(
         "--batches",
         [&a](const std::string& list) {
           a.overrides.push_back(list == "auto" ? "plan.batches=auto" : "plan.batches=[" + list + "]");
         },
         "--search: compare these train.batch (needs --noise-scale), short for plan.batches")
      ->needs(search)
      ->option_text("B,B,...");
  add("--noise-scale", "plan.noise_scale", "the noise scale in samples, or a run with train.noise_every",
      "N|RUN");
}

}  // namespace

void declare_plan(CLI::App& app, Arguments& a) {
  declare_config(app, a);
  declare_foreign_profile(app, a);
  app.add_flag("--simulate", a.simulate,
               "run the step in virtual time on device.description and device.links: its length, tokens/s, "
               "and the idle share of every stage");
  CLI::Option* search = app.add_flag(
      "--search", a.layouts.search,
      "find the best layout by the simulator: free is what the file leaves out or calls auto of grid, "
      "schedule, train.zero, train.recompute, train.swap and train.sequence_parallel");
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
  app.add_option(
         "--from", a.layouts.from,
         "--search: take prices from the trace of this run directory; with --measure its layout runs, "
         "too, and stays unless another is surely faster")
      ->needs(search)
      ->option_text("RUN");
  app.add_option("--output", a.layouts.output, "--search: write the configuration with the best layout")
      ->needs(search)
      ->option_text("FILE");
  app.add_option(
         "--json", a.layouts.json,
         "--search: write all layouts, each with its time, bound or reason; --simulate: the figures of "
         "the step, and which traffic delays which, pair by pair; -: print them, and nothing else")
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
