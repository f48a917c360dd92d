// Instruction sets of one class: a program of its own, alone
// thorough
#include <fmt/core.h>

#include <set>

#include "app/the_program.h"
#include "core/sha256.h"
#include "cpu/isa.h"
#include "golden_lines.h"

// What a training leaves under all instruction sets of a class is the same, bit for bit.
namespace mindpipe {
namespace {

class InstructionSets : public TheProgram {
 protected:
  void SetUp() override {
    TheProgram::SetUp();
    fs::current_path(MINDPIPE_SOURCE_DIR);  // where configurations look for their files
  }
  void TearDown() override {
    fs::current_path(before_);
    TheProgram::TearDown();
  }
  /// The weights that three steps of a configuration leave.
  std::string weights(const std::string& name, const char* precision, const std::string& set) const {
    const fs::path directory = root_ / (name + "-" + set);
    const Answer answer = run(
        "train --config " MINDPIPE_SOURCE_DIR "/configs/" + name + ".yaml run.dir=" + directory.string() +
        " train.steps=3 train.evaluate_every=0 optimizer.rate.warmup=0 device.threads=1 train.precision=" +
        precision + " device.instructions=" + set);
    EXPECT_EQ(answer.code, 0) << answer.text;
    const std::string bytes = read(directory.filename().string() + "/model.safetensors");
    fs::remove_all(directory);
    return bytes;
  }

 private:
  const fs::path before_ = fs::current_path();
};

std::string digest_of(const std::string& bytes) {
  Sha256 digest;
  digest.add(bytes.data(), bytes.size());
  return to_string(digest.end());
}

// The hashes of tests/golden/tiny_hashes.txt were made on another machine of the class; a line that is not
// there is said as it would stand.
TEST_F(InstructionSets, OfOneClassLeaveTheSameWeights) {
  if (!processor_has(Isa::avx512)) GTEST_SKIP() << "this processor has no avx512";
  const std::set<std::string> golden = golden_lines("tiny_hashes.txt");
  for (const char* name : {"gpt-tiny", "bert-tiny", "vit-tiny", "evolved-transformer-tiny", "supernet-tiny",
                           "wide-resnet-tiny"}) {
    std::string in_f32;
    for (const char* precision : {"bf16", "f32"}) {
      in_f32 = weights(name, precision, "avx2");
      EXPECT_GT(in_f32.size(), 1000U);
      EXPECT_TRUE(in_f32 == weights(name, precision, "avx512")) << name << ' ' << precision;
      const std::string line = fmt::format("{} {}: {}", name, precision, digest_of(in_f32));
      EXPECT_EQ(golden.count(line), 1U) << line;
    }
    for (const Isa isa : {Isa::avx512_bf16, Isa::avx512_amx}) {
      if (!processor_has(isa)) continue;
      EXPECT_TRUE(in_f32 == weights(name, "f32", name_of(isa))) << name;
    }
    EXPECT_FALSE(in_f32 == weights(name, "f32", "baseline")) << name << ": another class";
  }
}

/// A job of two ranks, each with an instruction set of its own.
std::string two_ranks(const std::string& settings, const char* first, const char* second) {
  const std::string rank = "-np 1 " MINDPIPE_BINARY " train " + settings + " device.instructions=";
  return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --bind-to none " +
         rank + first + " : " + rank + second;
}

// Halves of each product, and of each batch, are computed by kernels of two sets.
TEST_F(InstructionSets, OfOneClassMayMeetInOneJob) {
  if (!processor_has(Isa::avx512)) GTEST_SKIP() << "this processor has no avx512";
  const auto settings = [&](const char* folder, const char* more) {
    return "--config " + (root_ / "tiny.yaml").string() + " run.dir=" + (root_ / folder).string() + " " +
           more;
  };
  for (const char* precision : {"train.precision=f32", "train.precision=bf16"})
    for (const char* axis : {"tensor", "data", "pipeline"}) {
      const std::string shards = fmt::format("model.layers=2 reproducible.tensor=2 reproducible.data=2 {}",
                                             precision),
                        grid = fmt::format("{} grid.{}=2", shards, axis);
      const Answer one = run("train " + settings("one", shards.c_str()) + " device.instructions=avx2"),
                   mixed = run_command(two_ranks(settings("mixed", grid.c_str()), "avx2", "avx512"));
      EXPECT_EQ(one.code, 0) << one.text;
      EXPECT_EQ(mixed.code, 0) << mixed.text;
      EXPECT_GT(read("one/model.safetensors").size(), 1000U);
      EXPECT_TRUE(read("one/model.safetensors") == read("mixed/model.safetensors"))
          << precision << ' ' << axis;
      for (const char* folder : {"one", "mixed"}) fs::remove_all(root_ / folder);
    }
  const Answer refused =
      run_command(two_ranks(settings("two", "reproducible.data=2 grid.data=2"), "avx2", "baseline"));
  EXPECT_EQ(refused.code, 78) << refused.text;
  EXPECT_NE(refused.text.find("kernels is cpu: baseline here and cpu: avx2 or avx512 on rank 0; set "
                              "device.instructions to one that all have"),
            std::string::npos)
      << refused.text;
}

// A run goes on with another set of its class, without a word, and with the bits of one that never stopped.
TEST_F(InstructionSets, MayChangeWhereARunGoesOn) {
  if (!processor_has(Isa::avx512)) GTEST_SKIP() << "this processor has no avx512";
  const auto go = [&](const char* folder, const std::string& more) {
    return tiny("run.dir=" + (root_ / folder).string() + " " + more);
  };
  EXPECT_EQ(go("whole", "device.instructions=avx512").code, 0);
  EXPECT_EQ(go("two", "run.stop_after=2 device.instructions=avx512").code, 75);
  const Answer second = go("two", "device.instructions=avx2");
  EXPECT_EQ(second.code, 0) << second.text;
  EXPECT_EQ(second.text.find("bits may differ"), std::string::npos) << second.text;
  EXPECT_TRUE(read("whole/model.safetensors") == read("two/model.safetensors"));
  const Answer other = go("three", "run.stop_after=2 device.instructions=avx512");
  EXPECT_EQ(other.code, 75);
  const Answer baseline = go("three", "device.instructions=baseline");
  EXPECT_NE(
      baseline.text.find("kernels is cpu: baseline here and cpu: avx2 or avx512 in the checkpoint: bits "
                         "may differ"),
      std::string::npos)
      << baseline.text;
  const Answer apart = run("ckpt diff " + (root_ / "whole").string() + " " + (root_ / "three").string());
  EXPECT_NE(apart.text.find("so other bits are no wonder: kernels is "), std::string::npos) << apart.text;
}

}  // namespace
}  // namespace mindpipe
