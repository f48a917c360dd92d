// ranks: 4
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "app/train/trace_file.h"
#include "runtime/python.h"
#include "runtime/supernet_runs.h"
#include "trace/sound_tracks.h"

// A supernet's trace names every unit with the version that it was found in, and a script proves from it that
// subnets met in causal order.
namespace mindpipe {
namespace {

/// Whether `make test-supernets` asks: 480 subnets, on as many stages as there are ranks.
bool audits_all() { return std::getenv("MINDPIPE_ALL_SUBNETS") != nullptr; }

class SubnetTrace : public ::testing::Test {
 protected:
  /// Trains, and leaves trace and choices in files; on the first rank.
  void train(SupernetCase c, ScheduleKind schedule = ScheduleKind::causal, int traced = 0) {
    c.subnets = audits_all() ? 480 : 60;
    c.whole = audits_all();
    Config config = config_of(c);
    config.schedule.kind = schedule;
    config.supernet.admission = 2 * c.pipeline * c.lanes;
    config.supernet.slots = 6 * make_layout(config, {}).micro_batches();
    config.trace.steps = traced > 0 ? traced : c.subnets;
    mindpipe::trained(config, world, 0, {.after = [&](Worker& worker) { write_trace(worker, trace()); }});
    std::ofstream file(choices());
    for (const Subnet& subnet : first_of_stream(config))
      for (std::size_t block = 0; block < subnet.choice.size(); ++block)
        file << int{subnet.choice[block]} << (block + 1 < subnet.choice.size() ? "," : "\n");
  }
  bool is_sound(bool quiet = false, int overtaken = 1, const char* more = "") const {
    return runs(
        fmt::format("python3 {}/scripts/audit_subnets.py {} --choices {} --window 8 --overtaken {} {}",
                    MINDPIPE_SOURCE_DIR, trace(), choices(), overtaken, more),
        quiet);
  }
  static std::string path(const char* ending) {
    return (std::filesystem::temp_directory_path() /
            fmt::format("subnet_trace_mpi_test.{}.{}", getppid(), ending))
        .string();
  }
  static std::string trace() { return path("json"); }
  static std::string choices() { return path("txt"); }
  static nlohmann::json read() { return nlohmann::json::parse(std::ifstream(trace())); }
  static void write(const nlohmann::json& file) { std::ofstream(trace()) << file; }
  void TearDown() override {
    if (world.rank != 0) return;
    std::filesystem::remove(trace());
    std::filesystem::remove(choices());
  }

  World world = all_ranks();
};

/// Two forwards of one rank whose subnets use the same unit.
std::pair<nlohmann::json*, nlohmann::json*> two_users(nlohmann::json& file) {
  std::map<std::string, nlohmann::json*> first;
  for (auto& event : file["traceEvents"]) {
    if (event.value("cat", "") != "forward" || event["args"]["micro_batch"] != 0) continue;
    if (!event["args"].contains("units")) continue;
    for (const auto& [unit, version] : event["args"]["units"].items()) {
      const auto [found, is_first] =
          first.try_emplace(fmt::format("{} {}", event["pid"].get<int>(), unit), &event);
      if (!is_first) return {found->second, &event};
    }
  }
  return {nullptr, nullptr};
}

TEST_F(SubnetTrace, OfCellsPassesTheAuditThatKnowsOfSharedUnits) {
  if (world.size != 4) GTEST_SKIP() << "a space of nine blocks, on four stages";
  train({.pipeline = 4, .cells = true});
  if (world.rank != 0) return;
  EXPECT_TRUE(is_sound(false, 0, "--cells"));
  nlohmann::json file = read();
  const auto [one, other] = two_users(file);
  ASSERT_NE(other, nullptr);
  std::swap((*one)["args"]["subnet"], (*other)["args"]["subnet"]);
  write(file);
  EXPECT_FALSE(is_sound(true, 0, "--cells")) << "two users of a unit have changed places";
}

TEST_F(SubnetTrace, OfCausalOrderPassesTheAudit) {
  for (const SupernetCase& c : {SupernetCase{.pipeline = world.size, .micro_batches = 2},
                                {.pipeline = world.size / 2, .data = 2, .pairs = true},
                                {.pipeline = world.size / 2, .tensor = 2}}) {
    train(c);
    if (world.rank != 0) continue;
    EXPECT_TRUE(is_sound(false, c.pipeline == world.size ? 1 : 0));
    const nlohmann::json file = read();
    expect_sound_tracks(file);
    std::map<std::string, int> arrows;
    for (const auto& event : file["traceEvents"])
      if (event["ph"] == "s" || event["ph"] == "f") arrows[event["id"]] += event["ph"] == "s" ? 1 : -1;
    for (const auto& [id, open] : arrows) EXPECT_EQ(open, 0) << id;
    EXPECT_GT(arrows.size(), 60u);
  }
}

/// What moved units on some rank, and the last that had an effect there.
nlohmann::json* a_move(nlohmann::json& file, const char* kind) {
  nlohmann::json* found = nullptr;
  for (auto& event : file["traceEvents"])
    if (event.value("cat", "") == kind && event["args"].contains("moved") && !event["args"].contains("home"))
      found = &event;
  return found;
}

TEST_F(SubnetTrace, OfLanesAndCutsOfTheirOwnPassesTheAuditOverAllRanks) {
  const int half = world.size / 2;
  for (const SupernetCase& c : {SupernetCase{.pipeline = half, .micro_batches = 2, .lanes = 2},
                                {.pipeline = half / 2, .lanes = 4},
                                {.pipeline = half, .pairs = true, .lanes = 2, .own_cuts = true},
                                {.pipeline = half, .tensor = 2, .pairs = true, .own_cuts = true},
                                {.pipeline = half / 2, .data = 2, .lanes = 2}}) {
    train(c);
    if (world.rank != 0) continue;
    EXPECT_TRUE(is_sound(false, 0, c.lanes > 1 ? "--moved 40" : "--moved 4"));
    expect_sound_tracks(read());
  }
}

TEST_F(SubnetTrace, OfLanesThatIsWrongInOnePlaceIsFoundOut) {
  train({.pipeline = world.size / 2, .lanes = 2});
  if (world.rank != 0) return;
  const nlohmann::json right = read();
  ASSERT_TRUE(is_sound(false, 0));
  const auto is_found = [&](const char* kind, const std::function<void(nlohmann::json&)>& spoil) {
    nlohmann::json wrong = right;
    spoil(*a_move(wrong, kind));
    write(wrong);
    return !is_sound(true, 0);
  };
  EXPECT_TRUE(is_found("receive", [](nlohmann::json& move) { move["cat"] = "other"; })) << "a move left out";
  EXPECT_TRUE(is_found("send", [](nlohmann::json& move) { move["ts"] = 0.0; })) << "before the update";
  EXPECT_TRUE(is_found("receive", [](nlohmann::json& move) {
    move["dur"] = move["dur"].get<double>() + 1e9;
  })) << "after the forward";
  for (const char* kind : {"send", "receive"})
    EXPECT_TRUE(is_found(kind, [](nlohmann::json& move) { move["args"]["moved"].clear(); })) << "a unit";
}

TEST_F(SubnetTrace, HoldsTheLastSubnetsAlone) {
  train({.pipeline = world.size}, ScheduleKind::causal, 20);
  if (world.rank != 0) return;
  std::map<int, std::set<int>> seen;
  const nlohmann::json file = read();
  for (const auto& event : file["traceEvents"])
    if (event.value("cat", "") == "forward") seen[event["pid"]].insert(event["args"]["subnet"].get<int>());
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(world.size));
  for (const auto& [rank, subnets] : seen) {
    EXPECT_EQ(subnets.size(), 20u) << rank;
    EXPECT_EQ(*subnets.begin(), (audits_all() ? 480 : 60) - 20) << rank;
  }
  EXPECT_TRUE(is_sound(false, 0)) << "versions count what was before";
}

TEST_F(SubnetTrace, OfAnotherOrderIsFoundOut) {
  train({.pipeline = world.size}, ScheduleKind::free);
  if (world.rank == 0) {
    EXPECT_FALSE(is_sound(true));
  }
}

TEST_F(SubnetTrace, ThatIsWrongInOnePlaceIsFoundOut) {
  train({.pipeline = world.size});
  if (world.rank != 0) return;
  const nlohmann::json right = read();
  ASSERT_TRUE(is_sound());
  const auto is_found = [&](const std::function<void(nlohmann::json&)>& spoil) {
    nlohmann::json wrong = right;
    spoil(wrong);
    write(wrong);
    return !is_sound(true);
  };
  const auto nth = [](nlohmann::json& file, const char* kind, int which) -> nlohmann::json& {
    for (auto& event : file["traceEvents"])
      if (event.value("cat", "") == kind && event["args"].contains("units") && which-- == 0) return event;
    throw std::runtime_error("no such event");
  };
  EXPECT_TRUE(is_found([](nlohmann::json& file) {
    const auto [one, other] = two_users(file);
    std::swap((*one)["ts"], (*other)["ts"]);
    std::swap((*one)["dur"], (*other)["dur"]);
  })) << "a swapped pair";
  EXPECT_TRUE(is_found([](nlohmann::json& file) {
    const auto [one, other] = two_users(file);
    std::swap((*one)["args"], (*other)["args"]);
  })) << "a swapped pair, with its versions";
  EXPECT_TRUE(is_found([&](nlohmann::json& file) {
    auto units = nth(file, "backward", 7)["args"]["units"];
    nth(file, "backward", 7)["args"]["units"][units.begin().key()] = units.begin().value().get<int>() + 1;
  })) << "a version";
  EXPECT_TRUE(is_found([&](nlohmann::json& file) { nth(file, "update", 5)["cat"] = "other"; }))
      << "an update";
  EXPECT_TRUE(is_found([&](nlohmann::json& file) {
    auto& units = nth(file, "forward", 9)["args"]["units"];
    units.erase(units.begin().key());
  })) << "a unit";
}

}  // namespace
}  // namespace mindpipe
