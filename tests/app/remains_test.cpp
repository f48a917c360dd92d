#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/the_program.h"

// What a program that fails leaves behind: its words, its exit code, and no half of a file.
namespace mindpipe {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class Remains : public TheProgram {
 protected:
  /// The training on a disk of so many KiB of its own that is gone afterwards, and what stands on it at the
  /// end.
  Answer on_small_disk(int kibibytes, const std::string& settings) const {
    const std::string run = (root_ / "run").string();
    return run_command(
        "mkdir -p " + run + " && unshare -rm bash -c 'mount -t tmpfs -o size=" + std::to_string(kibibytes) +
        "k none " + run + " || exit 99; " MINDPIPE_BINARY " --config " + (root_ / "tiny.yaml").string() +
        " " + settings + "; rc=$?; ls " + run + "; cat " + run + "/status.json; exit $rc'");
  }
  std::vector<std::string> files_in(const std::string& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(root_ / folder)) names.push_back(entry.path().filename());
    return names;
  }
};

constexpr int refused_by_the_machine = 99;

TEST_F(Remains, WeightsThatCannotBeWrittenLeaveNothing) {
  // Longer than any file of the run but the weights; the shell's limit is in KiB, and a write beyond it fails
  // as one on a full disk does.
  const Answer full = run_command("trap \"\" XFSZ; ulimit -f 40; " MINDPIPE_BINARY " --config " +
                                  (root_ / "tiny.yaml").string() + " checkpoint.on_error=warn");
  EXPECT_EQ(full.code, 74) << full.text;
  EXPECT_THAT(full.text, ContainsRegex("model.safetensors: writing failed: .*nothing was left"));
  EXPECT_THAT(files_in("run"), Not(testing::Contains(HasSubstr("partial"))));
  EXPECT_EQ(nlohmann::json::parse(read("run/status.json"))["state"], "failed");
}

TEST_F(Remains, AFullDiskHasRoomForTheReason) {
  const Answer at_the_weights = on_small_disk(80, "checkpoint.on_error=warn");
  if (at_the_weights.code == refused_by_the_machine || at_the_weights.text.find("unshare") == 0)
    GTEST_SKIP() << "no disk of one's own here: " << at_the_weights.text;
  EXPECT_EQ(at_the_weights.code, 74) << at_the_weights.text;
  EXPECT_THAT(at_the_weights.text, HasSubstr("model.safetensors: writing failed: No space left on device"));
  EXPECT_THAT(at_the_weights.text, HasSubstr("\n{\"state\": \"failed\", \"step\": 4, "));
  EXPECT_THAT(at_the_weights.text, Not(HasSubstr(".partial\n")));
  const Answer among_steps = on_small_disk(40, "train.steps=5000 train.evaluate_every=0");
  EXPECT_EQ(among_steps.code, 74) << among_steps.text;
  EXPECT_THAT(among_steps.text, HasSubstr("\n{\"state\": \"failed\", "))
      << "written over the old one, where there is no room for another";
  EXPECT_THAT(among_steps.text, Not(HasSubstr(".partial\n")));
}

TEST_F(Remains, AnImportThatFailsLeavesNothingAndOneThatWorksEndsItsLine) {
  fs::create_directories(root_ / "texts");
  std::ofstream(root_ / "empty.txt") << "";
  std::ofstream(root_ / "bad.jsonl") << "{\"text\": \"one\"}\n{\"text\"\n";
  std::ofstream(root_ / "good.txt") << "some text";
  const auto import = [&](const std::string& input) {
    return run("data import " + (root_ / input).string() + " --output " + (root_ / "texts/out").string());
  };
  for (const auto& [input, code] : {std::pair{"empty.txt", 65}, {"bad.jsonl", 65}, {"missing.txt", 66}}) {
    const Answer failed = import(input);
    EXPECT_EQ(failed.code, code) << failed.text;
    EXPECT_TRUE(files_in("texts").empty()) << input << ": " << files_in("texts")[0];
  }
  const Answer imported = import("good.txt");
  EXPECT_EQ(imported.code, 0) << imported.text;
  EXPECT_THAT(imported.text, testing::EndsWith("the vocabulary is 256\n"));
  EXPECT_THAT(files_in("texts"), testing::UnorderedElementsAre("out.bin", "out.idx", "out.json"));
  EXPECT_THAT(
      run("data synthesize arithmetic --documents 3 --output " + (root_ / "texts/sums.txt").string()).text,
      testing::EndsWith("\n"));
}

TEST_F(Remains, OfAProcessThatWasKilledAreRemovedByTheNextRun) {
  fs::create_directories(root_ / "run/replay");
  std::ofstream(root_ / "run/replay/trace.safetensors.4711.partial") << "half";
  for (const char* name : {"model.safetensors.4711.partial", "status.json.stopped.partial", "notes.partial"})
    std::ofstream(root_ / "run" / name) << "half";
  ASSERT_EQ(tiny("train.steps=1 train.evaluate_every=0").code, 0);
  EXPECT_THAT(files_in("run"), testing::IsSupersetOf({"notes.partial", "model.safetensors", "status.json"}));
  EXPECT_THAT(files_in("run"), Not(testing::Contains(testing::ContainsRegex("(4711|stopped).partial"))));
  EXPECT_THAT(files_in("run/replay"), testing::ElementsAre("trace.safetensors"));
}

}  // namespace
}  // namespace mindpipe
