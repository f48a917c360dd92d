#include "paper/kept_planner.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "corpus/files.h"
#include "paper/questions.h"

namespace mindpipe {
namespace {

/// Counts what it is asked.
class Counted final : public AttentionPlanner {
 public:
  explicit Counted(int& asked) : asked_(asked) {}
  int version() const override { return 91900; }
  AttentionAnswer ask(const AttentionGraph& graph) override {
    ++asked_;
    return {true, true, "eng6_k24=26", graph.backward ? 100u : 0u, "", graph.padded};
  }

 private:
  int& asked_;
};

AttentionGraph graph_of_form(bool backward, bool padded = false, std::int64_t keys = 128) {
  return graph_of(
      PlannedAttention(question_of({.keys = keys, .padded = padded}, backward, "a test").question));
}

TEST(KeptAnswers, AreFoundAgainAndOthersAreAsked) {
  const Folder folder;
  const GpuDescription gpu = described_gpus().front();
  int asked = 0;
  const auto planner = [&] { return keeping_answers(std::make_unique<Counted>(asked), gpu); };
  ::setenv("MINDPIPE_KEPT_ANSWERS", (folder / "kept").c_str(), 1);
  planner()->ask(graph_of_form(true));
  const AttentionAnswer kept = planner()->ask(graph_of_form(true));
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(kept.is_planned && kept.is_supported && kept.engine == "eng6_k24=26" && kept.bytes == 100);
  planner()->ask(graph_of_form(false));
  EXPECT_EQ(asked, 2);
  for (int i = 0; i < 2; ++i) planner()->ask(graph_of_form(false, true));
  EXPECT_EQ(asked, 4) << "what is no answer is asked again";
  ::unsetenv("MINDPIPE_KEPT_ANSWERS");
  planner()->ask(graph_of_form(true));
  EXPECT_EQ(asked, 5) << "no folder is named";
}

TEST(KeptAnswers, FollowFromAllThatIsAsked) {
  GpuDescription gpu = described_gpus().front(), other = gpu;
  other.properties += " ";
  const std::set<std::string> keys{key_of_answer(91900, gpu, graph_of_form(true), "a"),
                                   key_of_answer(91901, gpu, graph_of_form(true), "a"),
                                   key_of_answer(91900, other, graph_of_form(true), "a"),
                                   key_of_answer(91900, gpu, graph_of_form(false), "a"),
                                   key_of_answer(91900, gpu, graph_of_form(true, false, 256), "a"),
                                   key_of_answer(91900, gpu, graph_of_form(true), "b")};
  EXPECT_EQ(keys.size(), 6);
  EXPECT_EQ(keys.count(key_of_answer(91900, gpu, graph_of_form(true), "a")), 1);
}

}  // namespace
}  // namespace mindpipe
