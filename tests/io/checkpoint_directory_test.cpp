#include "io/checkpoint_directory.h"

#include <gmock/gmock.h>

#include "core/crc32c.h"
#include "io/checkpoint_sample.h"

namespace mindpipe {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckpointDirectory : public CheckpointFolder {
 protected:
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> all;
    for (const CheckpointPlace& place : checkpoints_in(folder_)) {
      EXPECT_EQ(place.path, path("checkpoints/" + checkpoint_name(place.step)));
      all.push_back(place.step);
    }
    return all;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(path("checkpoints")))
      all.push_back(entry.path().filename());
    std::sort(all.begin(), all.end());
    return all;
  }
  /// A whole checkpoint of a step, of so many bytes.
  Manifest publish(std::int64_t step, const std::string& bytes) const {
    const NewCheckpoint made(folder_, step);
    made.create();
    std::ofstream(made.file(), std::ios::binary) << bytes;
    made.reserve(static_cast<std::int64_t>(bytes.size()));
    Manifest manifest;
    manifest.progress.step = step;
    manifest.file_bytes = static_cast<std::int64_t>(bytes.size());
    for (std::size_t at = 0; at < bytes.size(); at += Manifest::block)
      manifest.crcs.push_back(
          crc32c(bytes.data() + at, std::min<std::size_t>(Manifest::block, bytes.size() - at)));
    made.publish(manifest, "seed: 1\n");
    return manifest;
  }
  std::string complaint(std::int64_t bytes) const {
    return refusal([&] { CheckpointFile(folder_, bytes); });
  }
};

TEST_F(CheckpointDirectory, NamesSortAsStepsDo) {
  EXPECT_EQ(checkpoint_name(0), "step-00000000");
  EXPECT_EQ(checkpoint_name(1000), "step-00001000");
  EXPECT_EQ(checkpoint_name(123456789012), "step-123456789012");
}

TEST_F(CheckpointDirectory, TheNewestComesFirstAndOtherNamesAreNone) {
  EXPECT_THAT(steps(), IsEmpty());
  for (const char* name : {"step-00000900", "step-00001000", "step-100000000", "step-00000000",
                           ".step-00002000.partial", ".step-00000800.going", "step-00000700.partial",
                           "step-0700", "step-000000700", "step--0000001", "step-+0000007", "step-0000070x",
                           "step- 0000070", "step-", "step-99999999999999999999", "xstep-00000700", "latest"})
    fs::create_directories(path("checkpoints") + "/" + name);
  EXPECT_THAT(steps(), ElementsAre(100000000, 1000, 900, 0));
}

TEST_F(CheckpointDirectory, ACheckpointAppearsWithAllThatBelongsToItAndLatestNamesIt) {
  const std::string bytes = "the state of the run";
  for (const std::int64_t step : {5, 1000}) {
    const Manifest manifest = publish(step, bytes);
    const std::string own = path("checkpoints/" + checkpoint_name(step));
    EXPECT_EQ(bytes_of(own + "/state.h5"), bytes);
    EXPECT_EQ(bytes_of(own + "/manifest.json"), text_of(manifest));
    EXPECT_EQ(bytes_of(own + "/config.yaml"), "seed: 1\n");
    EXPECT_EQ(fs::read_symlink(path("checkpoints/latest")), checkpoint_name(step));
  }
  EXPECT_THAT(names(), ElementsAre("latest", "step-00000005", "step-00001000"));
  EXPECT_THAT(steps(), ElementsAre(1000, 5));
}

TEST_F(CheckpointDirectory, ADamagedCheckpointOfTheSameStepMakesWay) {
  put("checkpoints/step-00000005/state.h5", "damaged");
  put("checkpoints/step-00000005/more", "of it");
  publish(5, "whole");
  EXPECT_EQ(bytes_of(path("checkpoints/step-00000005/state.h5")), "whole");
  EXPECT_FALSE(fs::exists(path("checkpoints/step-00000005/more")));
  EXPECT_THAT(names(), ElementsAre("latest", "step-00000005"));
}

TEST_F(CheckpointDirectory, WhatASaveThatWasCutShortLeftDoesNotStandInItsWay) {
  put("checkpoints/.step-00000005.partial/state.h5", "half of it");
  fs::create_symlink("nowhere", path("checkpoints/.step-latest"));
  publish(5, "whole");
  EXPECT_THAT(names(), ElementsAre("latest", "step-00000005"));
}

TEST_F(CheckpointDirectory, LeftoversAreRemovedAndNothingElse) {
  publish(5, "whole");
  put("checkpoints/.step-00000006.partial/state.h5", "half of it");
  put("checkpoints/.step-00000004.going/state.h5", "old");
  fs::create_symlink("step-00000005", path("checkpoints/.step-latest"));
  put("checkpoints/notes.txt", "mine");
  put("checkpoints/.hidden", "mine, too");
  put("elsewhere/kept", "by a link");
  fs::create_directory_symlink(path("elsewhere"), path("checkpoints/.step-00000007.partial"));
  remove_unfinished_checkpoints(folder_);
  EXPECT_THAT(names(), ElementsAre(".hidden", "latest", "notes.txt", "step-00000005"));
  EXPECT_EQ(bytes_of(path("elsewhere/kept")), "by a link");
  remove_unfinished_checkpoints(path("no such run"));
}

TEST_F(CheckpointDirectory, OneThatIsDiscardedOrRemovedLeavesNothing) {
  publish(4, "older");
  publish(5, "newer");
  const NewCheckpoint failed(folder_, 6);
  failed.create();
  put("checkpoints/.step-00000006.partial/state.h5", "half of it");
  failed.discard();
  EXPECT_THAT(names(), ElementsAre("latest", "step-00000004", "step-00000005"));
  put("checkpoints/.step-00000004.going/state.h5", "of an earlier try");
  remove_checkpoint(path("checkpoints/step-00000004"));
  EXPECT_THAT(names(), ElementsAre("latest", "step-00000005"));
  remove_checkpoint(path("checkpoints/step-00000004"));
}

TEST_F(CheckpointDirectory, RoomThatNoDeviceHasIsRefused) {
  const NewCheckpoint made(folder_, 5);
  made.create();
  std::ofstream(made.file()) << "abc";
  EXPECT_THAT(refusal([&] { made.reserve(std::int64_t{1} << 50); }, Exit::io_error),
              HasSubstr(made.file() + ": taking room failed"));
}

TEST_F(CheckpointDirectory, AStateThatIsALinkADirectoryOrOfAnotherSizeIsRefused) {
  EXPECT_THAT(complaint(3), HasSubstr("state.h5: cannot be opened: No such file"));
  put("elsewhere", "abc");
  fs::create_symlink("elsewhere", path("state.h5"));
  EXPECT_THAT(complaint(3), HasSubstr("it is a link, and a checkpoint's file is never one"));
  fs::remove(path("state.h5"));
  fs::create_directory(path("state.h5"));
  EXPECT_THAT(complaint(3), HasSubstr("is no regular file"));
  fs::remove(path("state.h5"));
  put("state.h5", "abc");
  EXPECT_EQ(complaint(3), "accepted");
  EXPECT_THAT(complaint(4), HasSubstr("has 3 bytes (its manifest says 4)"));
  EXPECT_THAT(complaint(2), HasSubstr("has 3 bytes (its manifest says 2)"));
}

TEST_F(CheckpointDirectory, ReadingBeyondTheEndIsRefusedAndWithinItIsExact) {
  put("state.h5", "abcdef");
  const CheckpointFile file(folder_, 6);
  char got[3] = {};
  file.read(2, got, 3);
  EXPECT_EQ(std::string(got, 3), "cde");
  EXPECT_THAT(refusal([&] { file.read(4, got, 3); }), HasSubstr("reading at 6 failed: the file ends there"));
}

TEST_F(CheckpointDirectory, ABlockWithAnotherByteDoesNotHoldAndAllOthersDo) {
  const std::string bytes(3 * Manifest::block + 100, 'x');
  const Manifest manifest = publish(5, bytes);
  const std::string own = path("checkpoints/step-00000005");
  const auto expect_bad = [&](std::int64_t bad) {
    const CheckpointFile file(own, manifest.file_bytes);
    for (std::int64_t block = 0; block < 4; ++block)
      EXPECT_EQ(file.block_holds(manifest, block), block != bad) << block;
  };
  expect_bad(-1);
  for (const std::int64_t at : {std::int64_t{0}, Manifest::block - 1, Manifest::block,
                                2 * Manifest::block + 5, manifest.file_bytes - 1}) {
    std::fstream file(own + "/state.h5", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at).put('y').flush();
    expect_bad(at / Manifest::block);
    file.seekp(at).put('x').flush();
  }
}

}  // namespace
}  // namespace mindpipe
