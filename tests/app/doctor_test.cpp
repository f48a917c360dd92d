#include "app/verbs/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "app/verbs/tune.h"
#include "config/config.h"
#include "plan/cost_model.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// A machine with nothing to complain about.
Machine sound() {
  Machine m;
  m.host = "node1";
  m.processor = "a processor";
  m.instruction_sets = "avx2 avx512";
  m.messages = "Open MPI";
  m.huge_pages = "madvise";
  m.processors = m.allowed = 16;
  m.memory = m.memory_free = 64ll << 30;
  m.disk_free = 100ll << 30;
  m.shared_memory_free = 8ll << 30;
  m.locked_limit = -1;
  return m;
}

std::string advice(const Machine& machine, const std::string& name) {
  std::string all;
  for (const Finding& finding : examine(machine))
    if (finding.name == name) all += finding.advice;
  return all;
}

TEST(Doctor, HasNothingToSayAboutASoundMachine) {
  EXPECT_THAT(report(examine(sound())), HasSubstr("Nothing to do.\n"));
}

TEST(Doctor, TunesTheProductsOfAGpuWhateverTheKind) {
  const std::string file = std::string(MINDPIPE_SOURCE_DIR) + "/configs/gpt2-124m.yaml";
  const std::vector<std::string> settings{"device.kind=cpu", "grid.data=1"};
  const std::vector<ProductCall> products = products_to_tune(file, settings);
  EXPECT_EQ(products, products_to_tune(file, {"device.kind=cuda", "grid.data=1"}));
  const Config config = read_config(file, settings);
  CostModel processor(config, make_layout(config, {}));
  const auto has = [&](const ProductCall& call) {
    return std::find(products.begin(), products.end(), call) != products.end();
  };
  const std::vector<ProductCall> of_processor = processor.passes().products();
  EXPECT_FALSE(std::all_of(of_processor.begin(), of_processor.end(), has)) << "a processor's are others";
  EXPECT_TRUE(std::any_of(products.begin(), products.end(), [](const ProductCall& call) {
    return call.kind == ProductCall::Kind::first_weight;
  }));
}

TEST(Doctor, SaysForWhichGpusAttentionCouldBePlanned) {
  Machine m = sound();
  EXPECT_THAT(report(examine(m)), testing::Not(HasSubstr("plans on paper")));
  m.attention_plans = "a100, h100 (cuDNN 9.19.0)";
  EXPECT_THAT(report(examine(m)), HasSubstr("plans on paper a100, h100 (cuDNN 9.19.0)\n"));
}

TEST(Doctor, SaysWhatToDoAboutEachThing) {
  Machine m = sound();
  m.allowed = 1;
  EXPECT_THAT(advice(m, "affinity"),
              StartsWith("all threads of a rank share one processor: start with mpirun --bind-to none"));
  m.omp_threads = "8";
  EXPECT_THAT(advice(m, "affinity"), StartsWith("OMP_NUM_THREADS=8 threads share 1 processors"));
  m = sound();
  m.local_ranks = 4;
  m.omp_threads = "8";
  EXPECT_EQ(advice(m, "affinity"), "4 ranks of 8 threads share 16 processors: set device.threads=4");
  m = sound();
  m.memory_free = 1ll << 30;
  EXPECT_THAT(advice(m, "memory"), HasSubstr("memory.device_limit"));
  m.memory_limit = 8ll << 30;
  EXPECT_THAT(advice(m, "memory limit"), HasSubstr("the job is killed above this"));
  m.disk_free = 1 << 20;
  EXPECT_THAT(advice(m, "disk"), HasSubstr("12 bytes per parameter"));
  m.shared_memory_free = 1 << 20;
  EXPECT_THAT(advice(m, "shared memory"), HasSubstr("--shm-size"));
  m.instruction_sets = "baseline only";
  EXPECT_THAT(advice(m, "instructions"), HasSubstr("several times slower"));
  m.huge_pages = "never";
  EXPECT_THAT(advice(m, "huge pages"), HasSubstr("madvise"));
  m.locked_limit = 64 << 10;
  EXPECT_THAT(advice(m, "locked memory"), HasSubstr("ulimit -l unlimited"));
  m.gpus = 1;
  m.local_ranks = 2;
  EXPECT_THAT(advice(m, "graphics"), HasSubstr("2 ranks share 1 GPU"));
  m.graphics_libraries = "cuBLASLt 13.1.0, cuDNN 9.19.0, NCCL not found";
  EXPECT_THAT(advice(m, "its libraries"), HasSubstr("LD_LIBRARY_PATH"));
  EXPECT_THAT(report(examine(m)), HasSubstr(" things to look at, marked ->.\n"));
}

TEST(Doctor, SeesThisMachine) {
  const Machine m = look_at_this_machine();
  EXPECT_GE(m.processors, m.allowed);
  EXPECT_GE(m.allowed, 1);
  EXPECT_GT(m.memory, m.memory_free);
  EXPECT_GT(m.disk_free, 0);
  EXPECT_THAT(m.messages, HasSubstr("MPI"));
}

}  // namespace
}  // namespace mindpipe
