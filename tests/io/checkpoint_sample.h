#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "core/check.h"
#include "io/manifest.h"

namespace mindpipe {

/// A folder of its own for one test of checkpoints, gone afterwards.
class CheckpointFolder : public testing::Test {
 protected:
  CheckpointFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "mindpipe-checkpoint-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
  }
  ~CheckpointFolder() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string put(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  static std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string folder_;
};

/// The sentence with which `act` fails, which must have this exit code; "accepted" where it does not fail.
inline std::string refusal(const std::function<void()>& act, Exit expected = Exit::checkpoint_corrupt) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, expected) << error.what();
    return error.what();
  }
  return "accepted";
}

/// All that a manifest says, of a file of three blocks and 24 bytes.
inline Manifest sample_manifest() {
  Manifest m;
  m.progress = {.step = 12,
                .applied = 11,
                .samples = 384,
                .planned_samples = 3200,
                .tokens = 49152,
                .best_loss = 0.1,  // which has no end in binary
                .best_step = 10};
  m.restarts = 2;
  m.created_by = "mindpipe \"1\"\n";
  m.arithmetic = "cpu, avx512";
  m.choices = "0123456789abcdef";
  m.settings = {{"seed", "7"}, {"data.train", "[{path: \"a b\\\\c\", weight: 1}]"}};
  m.grid = {{"tensor", 2}, {"data", 4}, {"pipeline", 1}, {"supernet", 1}};
  m.file_bytes = 3 * Manifest::block + 24;
  m.crcs = {0x00000001u, 0xffffffffu, 0xe3069283u, 0u};
  m.tensors = {{"/model/a.weight", {6, 1 << 20}, 4096, std::int64_t{24} << 20},
               {"/model/a.bias", {5}, 2048, 20},
               {"/optim/m/a.weight", {1000, 5}, 3 * Manifest::block - 20000, 20000}};
  m.units = {{"a", 11, 1}, {"b", 0, 2}};
  return m;
}

}  // namespace mindpipe
