// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <utility>

#include "app/plan/open_choice.h"
#include "app/plan/plan_search.h"
#include "plan/layout_search.h"
#include "plan/run_plan.h"

// How long searches take on one core. Budgets hold on a machine that is shared, and half as fast.
namespace mindpipe {
namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Seconds that a search takes, which finds something, and its text.
double seconds_of_search(const std::string& file, std::vector<std::string> settings, int ranks) {
  settings.emplace_back("grid=auto");
  WrittenKeys written;
  Config config = read_config(file, settings, written);
  config.device.threads = 1;
  const double begin = processor_seconds();
  const SearchFreedom free = freedom_of(config, written);
  LayoutSearch search = search_layouts(config, ranks, free, 5);
  EXPECT_THAT(search_text(config, ranks, free, search, 5, ""), testing::HasSubstr("why not another value"));
  const double seconds = processor_seconds() - begin;
  EXPECT_FALSE(search.best.empty()) << file;
  const auto count = [&](LayoutCandidate::Fate fate) { return search.count(fate); };
  std::printf("%s, %d ranks: %.1f s; %zu layouts, %d simulated, %d bounded, %d too large\n", file.c_str(),
              ranks, seconds, search.all.size(), count(LayoutCandidate::Fate::simulated),
              count(LayoutCandidate::Fate::slower), count(LayoutCandidate::Fate::too_large));
  return seconds;
}

TEST(SearchScale, SearchesOf64RanksTakeSeconds) {
  const std::string configs = MINDPIPE_SOURCE_DIR "/configs/";
  for (const std::string name : {"llama-8b", "gpt2-1.5b", "evolved-transformer-deep"})
    for (const auto& [device, limit] :
         {std::pair{"h200", "0"}, {"a100", "60GiB"}, {"core", "0"}, {"core", "60GiB"}})
      EXPECT_LT(seconds_of_search(configs + name + ".yaml",
                                  {"device.kind=cuda", std::string("device.description=") + device,
                                   std::string("memory.device_limit=") + limit, "train.batch=512"},
                                  64),
                40)
          << device << ' ' << limit;
}

TEST(SearchScale, AnyPlanOf16384RanksTakesSeconds) {
  for (const auto& [stages, tensor] : {std::pair{16, 8}, {2, 8}, {8, 1}}) {
    const int data = 16384 / stages / tensor;
    const Config config =
        read_config(MINDPIPE_SOURCE_DIR "/configs/llama-8b.yaml",
                    {"device.kind=cuda", "train.batch=4096", "reproducible.data=auto",
                     "reproducible.tensor=auto", "grid.pipeline=" + std::to_string(stages),
                     "grid.tensor=" + std::to_string(tensor), "grid.data=" + std::to_string(data)});
    const double begin = processor_seconds();
    make_run_plan(config);
    const double seconds = processor_seconds() - begin;
    std::printf("llama-8b, %d x %d x %d: %.2f s\n", stages, data, tensor, seconds);
    EXPECT_LT(seconds, 4) << stages << " stages";
  }
}

}  // namespace
}  // namespace mindpipe
