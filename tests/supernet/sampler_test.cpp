#include "supernet/sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "core/check.h"
#include "spaces.h"

namespace mindpipe {
namespace {

/// A space whose blocks have 1, 4 and 24 candidates, and 7 for three more.
Space uneven_space() {
  const auto block = [](int candidates) {
    std::string words = "[glu";
    for (int i = 1; i < candidates; ++i) words += fmt::format(", mlp-{}", i);
    return words + "]";
  };
  std::string blocks;
  for (const int candidates : {1, 4, 24, 7, 7, 7}) blocks += (blocks.empty() ? "" : ", ") + block(candidates);
  return space_from("{name: uneven, decoder: {blocks: [" + blocks + "]}}");
}
int candidates_of(const Space& space, int block) { return static_cast<int>(space.candidates(block).size()); }

std::vector<Subnet> some(Sampler& sampler, int count) {
  std::vector<Subnet> subnets;
  for (int i = 0; i < count; ++i) subnets.push_back(sampler.next());
  return subnets;
}
std::vector<Subnet> drawn(SamplerKind kind, int count, int spacing = 0, std::uint64_t seed = 1) {
  return some(*draw_subnets(uneven_space(), {kind, seed, spacing}), count);
}

TEST(Samplers, CountIdsFromZeroAndStayWithinEachBlock) {
  const Space space = uneven_space();
  for (const SamplerKind kind : all_kinds<SamplerKind>()) {
    std::int64_t id = 0;
    for (const Subnet& subnet : drawn(kind, 200)) {
      EXPECT_EQ(subnet.id, id++);
      ASSERT_EQ(static_cast<int>(subnet.choice.size()), space.blocks());
      for (int block = 0; block < space.blocks(); ++block)
        EXPECT_LT(subnet.choice[block], candidates_of(space, block));
    }
  }
}

/// The largest distance of a frequency, of all `of`, from the mean, in deviations of a fair draw.
template <class Key>
double farthest(const std::map<Key, int>& times, int of, int draws) {
  const double share = 1.0 / of, mean = draws * share, deviation = std::sqrt(mean * (1 - share));
  double most = static_cast<int>(times.size()) < of ? mean / deviation : 0;
  for (const auto& [key, count] : times) most = std::max(most, std::abs(count - mean) / deviation);
  return most;
}

TEST(Samplers, GiveEachCandidateAndEachPairAsOften) {
  constexpr int draws = 16800;
  for (const SamplerKind kind : all_kinds<SamplerKind>()) {
    const std::vector<Subnet> subnets = drawn(kind, draws);
    std::map<int, int> of_four, of_24;
    std::map<std::pair<int, int>, int> of_neighbours, of_alike, of_later;
    for (int i = 0; i < draws; ++i) {
      const std::vector<std::uint8_t>& choice = subnets[i].choice;
      ++of_four[choice[1]];
      ++of_24[choice[2]];
      ++of_neighbours[{choice[1], choice[2]}];
      ++of_alike[{choice[3], choice[4]}];
      if (i > 0) ++of_later[{subnets[i - 1].choice[2], choice[2]}];
    }
    EXPECT_LT(farthest(of_four, 4, draws), 4) << name_of(kind);
    EXPECT_LT(farthest(of_24, 24, draws), 4.5) << name_of(kind);
    EXPECT_LT(farthest(of_neighbours, 96, draws), 5) << name_of(kind) << ": blocks are drawn apart";
    EXPECT_LT(farthest(of_alike, 49, draws), 5) << name_of(kind) << ": blocks alike too";
    if (kind == SamplerKind::uniform) {
      EXPECT_LT(farthest(of_later, 576, draws), 5) << "and so are networks";
    }
  }
}

TEST(Samplers, GiveTheFirstOfAGroupAnyCandidateAndAllOrders) {
  std::map<std::vector<std::uint8_t>, int> orders;
  const std::vector<Subnet> subnets = drawn(SamplerKind::permutation, 4 * 2400);
  for (std::size_t i = 0; i < subnets.size(); i += 4)
    ++orders[{subnets[i].choice[1], subnets[i + 1].choice[1], subnets[i + 2].choice[1],
              subnets[i + 3].choice[1]}];
  EXPECT_EQ(orders.size(), 24u);
  EXPECT_LT(farthest(orders, 24, 2400), 4.5);
}

TEST(Samplers, ThatPermuteGiveEachCandidateOnceInEachGroup) {
  const Space space = uneven_space();
  for (const SamplerKind kind : {SamplerKind::permutation, SamplerKind::spaced}) {
    const std::vector<Subnet> subnets = drawn(kind, 24 * 7 * 10);
    for (int block = 0; block < space.blocks(); ++block) {
      const int group = candidates_of(space, block);
      for (std::size_t begin = 0; begin < subnets.size(); begin += static_cast<std::size_t>(group)) {
        std::set<int> seen;
        for (int i = 0; i < group; ++i)
          seen.insert(subnets[begin + static_cast<std::size_t>(i)].choice[block]);
        ASSERT_EQ(static_cast<int>(seen.size()), group) << name_of(kind) << ", block " << block;
      }
    }
  }
}

/// How many networks later a block's candidate comes again, at the least.
int least_distance(const std::vector<Subnet>& subnets, int block) {
  std::map<int, std::int64_t> last;
  std::int64_t least = std::ssize(subnets);
  for (const Subnet& subnet : subnets) {
    const int number = subnet.choice[block];
    if (const auto before = last.find(number); before != last.end())
      least = std::min(least, subnet.id - before->second);
    last[number] = subnet.id;
  }
  return static_cast<int>(least);
}

TEST(Samplers, ThatSpaceKeepACandidateAwayAcrossTheEdgesOfGroups) {
  const std::vector<Subnet> usual = drawn(SamplerKind::spaced, 5000);
  EXPECT_EQ(least_distance(usual, 0), 1) << "there is nothing else";
  EXPECT_EQ(least_distance(usual, 1), 2);
  EXPECT_EQ(least_distance(usual, 2), 16);
  EXPECT_EQ(least_distance(usual, 3), 4);
  const std::vector<Subnet> three = drawn(SamplerKind::spaced, 5000, 3);
  for (int block = 1; block < 6; ++block) EXPECT_EQ(least_distance(three, block), 3) << block;
  EXPECT_EQ(least_distance(drawn(SamplerKind::permutation, 5000), 2), 1) << "the edge of two groups";
  const Space wide = space_from("{name: w, decoder: {blocks: 1, candidates: [glu, mlp-1, mlp-2, mlp-3]}}");
  for (const int spacing : {1, 2, 3}) {
    const auto sampler = draw_subnets(wide, {SamplerKind::spaced, 5, spacing});
    EXPECT_EQ(least_distance(some(*sampler, 3000), 0), spacing);
  }
}

TEST(Samplers, GoOnFromAnyId) {
  for (const SamplerKind kind : all_kinds<SamplerKind>()) {
    const std::vector<Subnet> all = drawn(kind, 300, kind == SamplerKind::spaced ? 3 : 0);
    for (const int first : {1, 3, 4, 23, 24, 25, 100, 167, 299}) {
      const auto sampler =
          draw_subnets(uneven_space(), {kind, 1, kind == SamplerKind::spaced ? 3 : 0}, first);
      EXPECT_EQ(some(*sampler, 300 - first), std::vector<Subnet>(all.begin() + first, all.end()))
          << name_of(kind) << " from " << first;
    }
    EXPECT_NE(drawn(kind, 300, 0, 2), drawn(kind, 300, 0, 1)) << "another seed, others";
  }
}

TEST(Samplers, HaveTheDrawsThatTheyHadWhenThisWasWritten) {
  const auto text = [](SamplerKind kind) {
    std::string all;
    for (const Subnet& subnet : drawn(kind, 6))
      all += fmt::format("{}-{} ", subnet.choice[1], subnet.choice[2]);
    return all;
  };
  EXPECT_EQ(text(SamplerKind::uniform), "2-17 1-9 0-10 3-12 1-7 2-20 ");
  EXPECT_EQ(text(SamplerKind::permutation), "2-17 1-9 0-10 3-12 1-6 2-21 ");
  EXPECT_EQ(text(SamplerKind::spaced), "2-17 1-9 0-10 3-12 0-6 2-21 ");
}

std::string sentence_of(const std::function<void()>& work, Exit code) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, code) << error.what();
    return error.what();
  }
  return "accepted";
}

TEST(Samplers, RefuseASpacingThatCandidatesDoNotHave) {
  const auto spaced = [](int spacing) {
    return sentence_of(
        [&] {
          draw_subnets(uneven_space(), {SamplerKind::spaced, 1, spacing});
        },
        Exit::bad_configuration);
  };
  EXPECT_EQ(spaced(3), "accepted");
  EXPECT_EQ(spaced(4),
            "spacing: 4 networks, but block 1 has 4 candidates (a candidate comes again after 3 at most; the "
            "usual spacing is 2)");
}

/// Choices in a file, gone after the test.
class ChoicesFile {
 public:
  explicit ChoicesFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("mindpipe_choices_" + std::to_string(getpid()))) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~ChoicesFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

const char* const small_space = "{name: s, decoder: {blocks: 3, candidates: [glu, mlp-2, identity]}}";

TEST(Samplers, ReadChoicesFromAFile) {
  const ChoicesFile file("0, 1, 2\n[2,0,0]\n 1 ,1, 1 \r\n");
  const Space space = space_from(small_space);
  const auto sampler = make_sampler(space, file.path(), {});
  EXPECT_EQ(sampler->count(), 3);
  EXPECT_EQ(some(*sampler, 3), (std::vector<Subnet>{{0, {0, 1, 2}}, {1, {2, 0, 0}}, {2, {1, 1, 1}}}));
  EXPECT_EQ(read_subnets(space, file.path(), 2)->next(), (Subnet{2, {1, 1, 1}}));
  EXPECT_EQ(sentence_of([&] { sampler->next(); }, Exit::bad_data),
            file.path() + ": has 3 choices, and number 4 is asked for");
  EXPECT_EQ(make_sampler(space, "permutation", {})->count(), 0) << "no end";
}

TEST(Samplers, RefuseFilesWithLineBlockAndHowManyCandidatesThereAre) {
  const Space space = space_from(small_space);
  const auto complaint = [&](const std::string& text, Exit code = Exit::bad_data) {
    const ChoicesFile file(text);
    const std::string sentence = sentence_of([&] { read_subnets(space, file.path()); }, code);
    return sentence.starts_with(file.path()) ? sentence.substr(file.path().size()) : sentence;
  };
  EXPECT_EQ(complaint("0, 1, 2\n0, 3, 1\n"), ":2: says '3' for block 1, which has 3 candidates (0 to 2)");
  for (const char* number : {"", "x", "-1", "01", "1.0", "99999999999999999999"})
    EXPECT_EQ(complaint(fmt::format("0, {}, 1\n", number)),
              fmt::format(":1: says '{}' for block 1, which has 3 candidates (0 to 2)", number));
  EXPECT_EQ(complaint("0, 1\n"), ":1: has 2 numbers, and s has 3 blocks (one number for each, like 3, 0, 7)");
  EXPECT_EQ(complaint("0, 1, 2, 0\n"),
            ":1: has 4 numbers, and s has 3 blocks (one number for each, like 3, 0, 7)");
  EXPECT_EQ(complaint("0, 1, 2\n\n"),
            ":2: has 0 numbers, and s has 3 blocks (one number for each, like 3, 0, 7)");
  EXPECT_EQ(complaint(""), ": is empty (a line is a choice, like 3, 0, 7)");
  EXPECT_EQ(complaint("\x7f"
                      "ELF\x1b[2J\xff, 1, 2\n"),
            ":1: says '\\x7fELF\\x1b[2J\\xff' for block 0, which has 3 candidates (0 to 2)");
  EXPECT_EQ(sentence_of([&] { make_sampler(space, "/nowhere/choices", {}); }, Exit::input_missing),
            "/nowhere/choices: there is no such file; check the path");
  EXPECT_EQ(sentence_of([&] { make_sampler(space, "/tmp", {}); }, Exit::bad_data),
            "/tmp: not an ordinary file; name the file itself");
}

TEST(Units, AreThoseOfCandidatesThatHaveParameters) {
  const Space space =
      space_from("{name: s, decoder: {blocks: 1, candidates: [identity, glu, identity, mlp-2]}}");
  std::vector<int> units;
  for (int number = 0; number < 4; ++number) units.push_back(unit_of(space.candidates(0), number));
  EXPECT_EQ(units, (std::vector<int>{-1, 0, -1, 1}));
  EXPECT_EQ(candidate_name(7, 3), "blocks.7.3");
}

}  // namespace
}  // namespace mindpipe
