#include "plans/planned_attention.h"

#include <gtest/gtest.h>

namespace mindpipe {
namespace {

AttentionCall some_call() {
  AttentionCall call;
  call.samples = 2;
  call.query_heads = 4;
  call.key_heads = 2;
  call.queries = 128;
  call.keys = 128;
  call.width = 64;
  return call;
}

TEST(PlannedAttention, TheLibraryIsAskedOnlyWhatItAnswersAsWeDo) {
  const std::int32_t lengths[2] = {};
  const auto asked = [&](auto change, DType dtype = DType::bf16) {
    AttentionCall call = some_call();
    change(call);
    return is_planned(call, dtype);
  };
  EXPECT_TRUE(asked([](AttentionCall&) {}));
  EXPECT_FALSE(asked([](AttentionCall&) {}, DType::f32));
  EXPECT_FALSE(asked([](AttentionCall& c) { c.threshold = 1; })) << "dropout: its mask is another function";
  EXPECT_FALSE(asked([](AttentionCall& c) { c.width = 12; }));
  EXPECT_FALSE(asked([](AttentionCall& c) { c.width = 136; }));
  EXPECT_FALSE(asked([](AttentionCall& c) { c.queries = 1; }));
  EXPECT_FALSE(asked([](AttentionCall& c) { c.keys = 64; })) << "half a tile of keys behind the last one";
  EXPECT_TRUE(asked([&](AttentionCall& c) {
    c.keys = 64;
    c.key_lengths = lengths;
  }));
  EXPECT_TRUE(asked([](AttentionCall& c) {
    c.causal = true;
    c.queries = c.keys = 64;
  }));
  EXPECT_TRUE(asked([&](AttentionCall& c) {
    c.causal = true;
    c.key_lengths = lengths;
  }));
  EXPECT_TRUE(asked([](AttentionCall& c) {
    c.causal = true;
    c.keys = 160;
  }));
  EXPECT_FALSE(asked([](AttentionCall& c) {
    c.causal = true;
    c.keys = 32;
  })) << "rows before any key";
  EXPECT_FALSE(asked([&](AttentionCall& c) {
    c.causal = true;
    c.keys = 160;
    c.key_lengths = lengths;
  })) << "its diagonal would end at each sample's length";
}

TEST(PlannedAttention, APlanIsForAFormAndNotForAddresses) {
  const AttentionCall call = some_call();
  AttentionCall elsewhere = call, wider = call;
  elsewhere.q.data = &elsewhere;
  wider.dq.row = 512;
  EXPECT_EQ(PlannedAttention(call, true), PlannedAttention(elsewhere, true));
  EXPECT_NE(PlannedAttention(call, true), PlannedAttention(wider, true));
  EXPECT_NE(PlannedAttention(call, true), PlannedAttention(call, false));
}

TEST(PlannedAttention, ABackwardMayKeepTheGradientOfAllProbabilitiesUpToFiveGibibytes) {
  AttentionCall call = some_call();
  call.query_heads = call.key_heads = 12;
  call.samples = 32;
  call.queries = call.keys = 1024;
  const double probabilities = 32.0 * 12 * 1024 * 1024 * 2;
  EXPECT_GT(PlannedAttention(call, true).most_bytes(), probabilities);
  EXPECT_LT(PlannedAttention(call, true).most_bytes(), 1.3 * probabilities);
  EXPECT_LT(PlannedAttention(call, false).most_bytes(), 0.01 * probabilities);
  call.samples = 1;
  call.query_heads = 32;
  call.key_heads = 8;
  call.queries = call.keys = 8192;
  call.width = 128;
  EXPECT_GT(PlannedAttention(call, true).most_bytes(), 32.0 * 8192 * 8192 * 2) << "Llama 8B";
  call.samples = 8;
  EXPECT_EQ(PlannedAttention(call, true).most_bytes(), std::size_t{5} << 30);
}

}  // namespace
}  // namespace mindpipe
