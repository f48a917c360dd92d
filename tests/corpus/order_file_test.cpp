#include "corpus/order_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <numeric>

#include "core/random.h"
#include "corpus/dataset.h"
#include "corpus/files.h"
#include "corpus/sample_order.h"

namespace mindpipe {
namespace {

constexpr std::int64_t some = 100000;

/// Numbers from `first` on, and how often they were worked out.
struct Counting {
  std::int64_t first = 7;
  int times = 0;
  OrderFile::Fill fill() {
    return [this](std::span<std::int64_t> numbers) {
      ++times;
      std::iota(numbers.begin(), numbers.end(), first);
    };
  }
};

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  return names;
}

void expect_counted(const OrderFile& file) {
  ASSERT_EQ(std::ssize(file.numbers()), some);
  EXPECT_EQ(file.numbers().front(), 7);
  EXPECT_EQ(file.numbers().back(), 7 + some - 1);
}

TEST(OrderFile, IsMadeOnceAndMappedAfterwards) {
  const Folder folder;
  Counting counting;
  const OrderFile made(folder / "orders", "a", some, counting.fill());
  const OrderFile mapped(folder / "orders", "a", some, counting.fill());
  EXPECT_EQ(counting.times, 1);
  expect_counted(made);
  expect_counted(mapped);
  EXPECT_EQ(made.path(), mapped.path());
  EXPECT_EQ(names_in(folder / "orders").size(), 1u);  // neither a lock nor half a file stays
}

TEST(OrderFile, OfAnotherCauseIsAnotherFile) {
  const Folder folder;
  Counting counting;
  const OrderFile a(folder / "orders", "a", some, counting.fill()),
      b(folder / "orders", "b", some, counting.fill());
  EXPECT_EQ(counting.times, 2);
  EXPECT_NE(a.path(), b.path());
}

TEST(OrderFile, ThatIsNotWholeIsMadeAnew) {
  const Folder folder;
  std::string path, whole;
  {
    Counting counting;
    const OrderFile made(folder / "orders", "a", some, counting.fill());
    path = made.path();
    whole = read_file(path);
  }
  const auto changed = [&](std::size_t at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    return bytes;
  };
  const std::string foreign = [&] {
    Counting counting{1};
    return read_file(OrderFile(folder / "others", "b", some, counting.fill()).path());
  }();
  for (const std::string& bytes :
       {std::string(), whole.substr(0, 30), whole.substr(0, whole.size() - 8), whole + "x", changed(0),
        changed(9), changed(40), changed(53), changed(whole.size() / 2), foreign}) {
    write_file(path, bytes);
    Counting counting;
    expect_counted(OrderFile(folder / "orders", "a", some, counting.fill()));
    EXPECT_EQ(counting.times, 1);
    EXPECT_EQ(read_file(path), whole);
  }
}

TEST(OrderFile, WithoutRoomOnTheDiskIsInMemory) {
  const Folder folder;
  Counting counting;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  testing::internal::CaptureStderr();
  const OrderFile file(folder / "orders", "a", some, counting.fill());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("every rank works it out in its own memory"),
            std::string::npos);
  EXPECT_EQ(file.path(), "");
  expect_counted(file);
  EXPECT_TRUE(names_in(folder / "orders").empty());
}

TEST(OrderFile, WhereNoFolderCanBeIsInMemory) {
  const Folder folder;
  write_file(folder / "orders", "a file");
  Counting counting;
  expect_counted(OrderFile(folder / "orders", "a", some, counting.fill()));
}

TEST(OrderFile, LeftHalfByAMakerThatWasKilledIsRemoved) {
  const Folder folder;
  Counting counting;
  std::string path = OrderFile(folder / "orders", "a", some, counting.fill()).path();
  std::filesystem::remove(path);
  write_file(path + ".elsewhere.12.unfinished", "half");
  expect_counted(OrderFile(folder / "orders", "a", some, counting.fill()));
  EXPECT_EQ(names_in(folder / "orders").size(), 1u);
}

TEST(OrderFile, ThatFourProcessesAskForAtOnceIsMadeOnce) {
  const Folder folder;
  void* shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* times = new (shared) std::atomic<int>(0);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    const OrderFile file(folder / "orders", "a", some, [&](std::span<std::int64_t> numbers) {
      ++*times;
      usleep(200000);  // all others come meanwhile
      std::iota(numbers.begin(), numbers.end(), 7);
    });
    _exit(file.path().empty() || file.numbers().back() != 7 + some - 1 ? 1 : 0);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(times->load(), 1);
  munmap(shared, 4096);
}

/// A million documents of 0 to 15 tokens.
class Million : public Documents {
 public:
  std::int64_t count() const override { return 1000000; }
  std::int64_t length(std::int64_t d) const override { return d * d % 16; }
  void read(std::int64_t, std::int64_t first, std::int64_t tokens, std::int32_t* out) const override {
    std::iota(out, out + tokens, static_cast<std::int32_t>(first));
  }
  std::string name() const override { return "million"; }
};

TEST(SampleOrder, OfAMillionDocumentsIsTheSameFromAFile) {
  const Folder folder;
  const Million documents;
  const SampleOrder alone(documents, 64, 5, {2, true}), made(documents, 64, 5, {2, true}, folder / "orders"),
      mapped(documents, 64, 5, {2, true}, folder / "orders");
  EXPECT_EQ(alone.path(), "");
  EXPECT_NE(made.path(), "");
  ASSERT_EQ(alone.samples(), mapped.samples());
  ASSERT_EQ(alone.positions(), mapped.positions());
  for (std::int64_t k = 0; k < alone.samples(); k += 7) {
    ASSERT_EQ(alone.drawn(k), mapped.drawn(k));
    ASSERT_EQ(alone.start(k), made.start(k));
  }
  for (std::int64_t p = 0; p < alone.positions(); ++p) ASSERT_EQ(alone.document(p), mapped.document(p));
}

TEST(SampleOrder, FollowsFromSeedSequenceEpochsAndLengths) {
  const Folder folder;
  const Million documents;
  class Other : public Million {
    std::int64_t length(std::int64_t d) const override { return Million::length(d < 2 ? 1 - d : d); }
  };
  const std::string orders = folder / "orders";
  SampleOrder(documents, 64, 5, {}, orders);
  SampleOrder(documents, 64, 6, {}, orders);
  SampleOrder(documents, 65, 5, {}, orders);
  SampleOrder(documents, 64, std::nullopt, {}, orders);
  SampleOrder(documents, 64, 5, {2, false}, orders);
  SampleOrder(documents, 64, 5, {2, true}, orders);
  SampleOrder(Other(), 64, 5, {}, orders);  // the lengths of two documents have changed places
  EXPECT_EQ(names_in(orders).size(), 7u);
}

TEST(DocumentDataset, KeepsTheFileOfTheOpenRoundAlone) {
  const Folder folder;
  DocumentDataset dataset(std::make_unique<Million>(), 64, 5, 0, folder / "orders");
  std::vector<std::int32_t> tokens(65);
  for (int round = 0; round < 3; ++round) {
    dataset.text(round * dataset.count(), tokens.data());
    EXPECT_EQ(names_in(folder / "orders").size(), 1u);
  }
}

}  // namespace
}  // namespace mindpipe
