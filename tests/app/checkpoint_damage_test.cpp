#include <gmock/gmock.h>

#include <random>

#include "app/the_program.h"
#include "core/check.h"
#include "io/checkpoint_directory.h"
#include "runtime/checkpoint_reader.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;

/// What the program made, damaged bit by bit.
class FlippedCheckpoints : public TheProgram {
 protected:
  std::string damage() const {
    try {
      return damage_of(World{}, read_manifest(place()), place(), 1);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::checkpoint_corrupt);
      return error.what();
    }
  }
  std::string place() const { return (root_ / "run/checkpoints" / checkpoint_name(4)).string(); }
  void put(const std::string& name, const std::string& bytes) const {
    std::ofstream(place() + "/" + name, std::ios::binary) << bytes;
  }
};

TEST_F(FlippedCheckpoints, AreFoundAndNamedWhereverTheBitIs) {
  ASSERT_EQ(tiny("trace.steps=0").code, 0);
  ASSERT_EQ(damage(), "");
  std::mt19937 random(1);
  for (const std::string name : {Manifest::file_name, Manifest::name}) {
    const std::string whole = read("run/checkpoints/" + checkpoint_name(4) + "/" + name);
    ASSERT_GT(whole.size(), 1000u);
    for (int i = 0; i < 200; ++i) {
      std::string flipped = whole;
      const std::size_t at = i < 20 ? i : random() % whole.size();  // the first bytes say what the file is
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << random() % 8));
      put(name, flipped);
      ASSERT_THAT(damage(), HasSubstr(place() + "/" + name + ": ")) << "byte " << at;
    }
    for (const std::size_t length : {whole.size() - 1, whole.size() / 2, std::size_t{0}}) {
      put(name, whole.substr(0, length));
      ASSERT_THAT(damage(), HasSubstr(place() + "/" + name + ": ")) << length << " bytes of it";
    }
    put(name, whole + '\0');
    ASSERT_THAT(damage(), HasSubstr(place() + "/" + name + ": ")) << "a byte more";
    put(name, whole);
  }
  EXPECT_EQ(damage(), "");
}

}  // namespace
}  // namespace mindpipe
