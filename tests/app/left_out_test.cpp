#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/changed_models.h"
#include "app/run/weights_source.h"
#include "app/saved_weights.h"

// What of the files of others is not taken: heads of other tasks, buffers, tensors that may be missing.
namespace mindpipe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ViTOfOthers, KeepsADrawnHeadWhereANewOneIsAskedFor) {
  Config config = imported(golden_folder + "vit");
  config.model.vit.classes = 5;
  EXPECT_THAT(refusal_of_weights(config, Exit::bad_data),
              HasSubstr("classifier.bias ([7] there, [5] in the model)"));
  config.run.new_head = true;
  Worker drawn(config, {}), worker(config, {});
  begin_with_weights(worker);
  const Folder folder;
  save_weights(drawn, folder / "drawn");
  save_weights(worker, folder / "taken");
  const LooseTensors before = tensors_in(folder / "drawn"), after = tensors_in(folder / "taken"),
                     theirs = tensors_in(golden_folder + "vit/model.safetensors");
  for (const auto& [name, loose] : after)
    EXPECT_TRUE(loose.bytes == (name.starts_with("classifier.") ? before : theirs).at(name).bytes) << name;
  write_file(folder / "manifest.json", "{}");
  config.run.weights = folder / "";
  EXPECT_THAT(refusal_of_weights(config, Exit::bad_configuration),
              AllOf(HasSubstr("run.new_head"), HasSubstr("is a checkpoint; name its run")));
}

/// The tensors of a BERT as classes of other tasks write them.
Config bert_of_another_task(const Folder& folder, const std::string& head) {
  return changed_model(
      "bert", folder, [&](LooseTensors& made, const std::string& tensor, const Loose& loose) {
        if (!tensor.starts_with("cls.")) made[tensor] = loose;
        if (head.empty()) return;
        made[head + ".weight"] = {StoredType::f32, {3, 16}, std::vector<std::byte>(std::size_t{3} * 16 * 4)};
        made[head + ".bias"] = {StoredType::f32, {3}, std::vector<std::byte>(std::size_t{3} * 4)};
      });
}

TEST(BertOfOthers, KeepsADrawnHeadWhereItsFileHasThatOfAnotherTaskOrNone) {
  for (const std::string head : {"", "classifier", "qa_outputs", "cls.seq_relationship"}) {
    const Folder folder;
    Config config = bert_of_another_task(folder, head);
    EXPECT_THAT(refusal_of_weights(config, Exit::bad_data), HasSubstr("has no cls.predictions.bias, "))
        << head;
    config.run.new_head = true;
    Worker drawn(config, {}), worker(config, {});
    begin_with_weights(worker);
    save_weights(drawn, folder / "drawn");
    save_weights(worker, folder / "taken");
    const LooseTensors before = tensors_in(folder / "drawn"), after = tensors_in(folder / "taken"),
                       theirs = tensors_in(folder / "model.safetensors");
    int heads = 0;
    for (const auto& [name, loose] : after) {
      heads += name.starts_with("cls.") ? 1 : 0;
      EXPECT_TRUE(loose.bytes == (name.starts_with("cls.") ? before : theirs).at(name).bytes) << name;
    }
    EXPECT_EQ(heads, 5);
  }
}

TEST(BertOfOthers, KeepsItsVocabularyWhichIsInItsTable) {
  Config config = imported(golden_folder + "bert");
  config.run.new_head = true;
  config.model.bert.vocabulary += 4;
  config = resolve(config);
  EXPECT_THAT(refusal_of_weights(config, Exit::bad_data),
              HasSubstr("bert.embeddings.word_embeddings.weight ("));
}

TEST(MarianOfOthers, AddsNothingToItsLogitsWhereNoFileSaysWhat) {
  const Folder folder;
  const auto with = [&](bool bias, float value) {
    return changed_model("marian", folder,
                         [&](LooseTensors& made, const std::string& tensor, const Loose& loose) {
                           Loose& own = made[tensor] = loose;
                           if (tensor != "final_logits_bias") return;
                           if (!bias) made.erase(tensor);
                           else
                             for (std::size_t at = 0; at < own.bytes.size(); at += sizeof value)
                               std::memcpy(own.bytes.data() + at, &value, sizeof value);
                         });
  };
  const std::string directory = golden_folder + "marian";
  const auto losses = [&](bool bias, float value) { return losses_of(with(bias, value), directory).all; };
  EXPECT_EQ(losses(false, 0), losses(true, 0));
  EXPECT_NE(losses(true, 0), losses_of(imported(directory), directory).all) << "its own are not zeros";
}

TEST(WeightsOfOthers, NameAllThatIsLeftOut) {
  const Folder folder;
  const Config config =
      changed_model("bert", folder, [&](LooseTensors& made, const std::string& tensor, const Loose& loose) {
        made[tensor] = loose;
        for (const char* other : {"bert.embeddings.position_ids", "bert.pooler.dense.weight",
                                  "bert.pooler.dense.bias", "cls.seq_relationship.bias", "classifier.weight"})
          made[other] = {StoredType::boolean, {2}, std::vector<std::byte>(2)};
      });
  Worker worker(config, {});
  const WeightsSource source(config.run.weights, worker.stage().model());
  EXPECT_EQ(
      kinds_of(source.left_out()),
      "bert.embeddings.position_ids, bert.pooler.dense.bias, bert.pooler.dense.weight, classifier.weight, "
      "cls.seq_relationship.bias");
  testing::internal::CaptureStderr();
  begin_with_weights(worker);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("left out: " + kinds_of(source.left_out())));
  EXPECT_EQ(kinds_of({"h.0.attn.bias", "h.11.attn.bias", "h.2.attn.masked_bias"}),
            "h.N.attn.bias (2 of them), h.N.attn.masked_bias");
}

TEST(WeightsOfOthers, NameTensorsByPatternsInATimeThatFollowsTheirLength) {
  for (const auto& [pattern, name] : {std::pair{"a.*", "a."},
                                      {"a.*", "a.b"},
                                      {"a.*.b", "a.x.b"},
                                      {"a.*.b", "a..b"},
                                      {"a*b*c", "aXbYc"},
                                      {"a*b*c", "abc"},
                                      {"a", "a"},
                                      {"*", ""}})
    EXPECT_TRUE(matches(pattern, name)) << pattern << " " << name;
  for (const auto& [pattern, name] : {std::pair{"a.*", "a"},
                                      {"a.*.b", "a.b"},
                                      {"a*b*c", "acb"},
                                      {"a", "ab"},
                                      {"aba*aba", "aba"},
                                      {"a*b*b", "ab"},
                                      {"", "a"}})
    EXPECT_FALSE(matches(pattern, name)) << pattern << " " << name;
  const std::string longest(std::size_t{8} << 20, 'b');
  EXPECT_TRUE(matches("bert.pooler.*", "bert.pooler." + longest));
  EXPECT_FALSE(matches("b*b*b*c", longest));
}

}  // namespace
}  // namespace mindpipe
