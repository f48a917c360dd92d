// thorough
#include "app/golden_models.h"
#include "corpus/files.h"
#include "runtime/python.h"

// A file of weights as MindSpore reads it. `make test-peers` installs it.
namespace mindpipe {
namespace {

TEST(MindSpore, LoadsAFileWhoseLayersGiveOurLogits) {
  const std::string python = python_with("mindspore", {MINDPIPE_SOURCE_DIR "/.venv-mindspore/bin/python"});
  if (python.empty())
    GTEST_SKIP() << "no interpreter that imports mindspore (make test-peers installs it in .venv-mindspore "
                    "where it is "
                    "made for this Python and processor)";
  const std::string golden = golden_folder + "bert";
  const Folder folder;
  Config config = imported(golden);
  config.exported.names = ExportNames::mindspore;
  Worker worker(config, {});
  begin_with_weights(worker);
  save_weights_for_others(worker, folder / "");
  const SafetensorsFile file(folder / "model.safetensors");
  EXPECT_NE(file.find("bert.encoder.layer.1.output.LayerNorm.gamma"), nullptr);
  const std::string answer = folder / "answer.safetensors";
  ASSERT_TRUE(runs("'" + python + "' '" + MINDPIPE_SOURCE_DIR + "/tests/oracle/bert_in_mindspore.py' '" +
                   (folder / "") + "' '" + golden + "' '" + answer + "'"));
  const SafetensorsFile theirs(answer);
  const auto classes = theirs.tensor("logits").shape.back();
  const double apart = largest_difference(log_probabilities(worker, batch_in(golden, config), classes),
                                          log_probabilities(theirs));
  EXPECT_LE(apart, 1e-4);
  fmt::print("MindSpore: logits of two layers are {:.1e} away\n", apart);
}

}  // namespace
}  // namespace mindpipe
