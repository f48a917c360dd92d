#include "supernet/sampler.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "config/config.h"
#include "core/check.h"
#include "core/line_reader.h"
#include "core/random.h"
#include "core/sha256.h"

namespace mindpipe {
namespace {

/// One block's candidates, drawn in order.
class BlockDraws {
 public:
  /// `apart`: how many networks later a candidate may come again, if each comes once in a group; 0: any time.
  BlockDraws(std::uint64_t seed, int block, int candidates, int apart)
      : stream_{seed, purpose_of("subnet"), static_cast<std::uint32_t>(block), 0},
        candidates_(candidates),
        apart_(apart),
        last_(candidates, -apart) {}

  std::uint8_t at(std::int64_t id) {
    const std::int64_t group = id / candidates_, begin = group * candidates_;
    stream_.sample = static_cast<std::uint32_t>(group);
    const std::uint64_t word = stream_.word(static_cast<std::uint64_t>(id - begin));
    if (apart_ == 0) return static_cast<std::uint8_t>(word * static_cast<std::uint64_t>(candidates_) >> 32);
    const auto may_come = [&](std::int64_t last) { return last < begin && id - last >= apart_; };
    const auto left = static_cast<std::uint64_t>(std::count_if(last_.begin(), last_.end(), may_come));
    auto found = std::find_if(last_.begin(), last_.end(), may_come);
    for (std::uint64_t skip = word * left >> 32; skip > 0; --skip)
      found = std::find_if(found + 1, last_.end(), may_come);
    *found = id;
    return static_cast<std::uint8_t>(found - last_.begin());
  }
  /// The first id whose draw must be known for that of `id`.
  std::int64_t known_from(std::int64_t id) const {
    return apart_ == 0 ? id : apart_ == 1 ? id / candidates_ * candidates_ : 0;
  }

 private:
  RandomStream stream_;
  std::int64_t candidates_, apart_;
  std::vector<std::int64_t> last_;  ///< the network that had each candidate last
};

class DrawnSubnets final : public Sampler {
 public:
  DrawnSubnets(std::vector<BlockDraws> blocks, std::int64_t first)
      : blocks_(std::move(blocks)), next_(first) {
    for (BlockDraws& block : blocks_)
      for (std::int64_t id = block.known_from(first); id < first; ++id) block.at(id);
  }
  Subnet next() override {
    Subnet subnet{next_++, {}};
    for (BlockDraws& block : blocks_) subnet.choice.push_back(block.at(subnet.id));
    return subnet;
  }

 private:
  std::vector<BlockDraws> blocks_;
  std::int64_t next_;
};

class WrittenSubnets final : public Sampler {
 public:
  WrittenSubnets(std::vector<std::vector<std::uint8_t>> choices, std::string file, std::int64_t first)
      : choices_(std::move(choices)), file_(std::move(file)), next_(first) {}
  Subnet next() override {
    MP_REQUIRE(next_ < count(), Exit::bad_data, "{}: has {} choices, and number {} is asked for", file_,
               count(), next_ + 1);
    Subnet subnet{next_, choices_[static_cast<std::size_t>(next_)]};
    ++next_;
    return subnet;
  }
  std::int64_t count() const override { return std::ssize(choices_); }

 private:
  std::vector<std::vector<std::uint8_t>> choices_;
  std::string file_;
  std::int64_t next_;
};

/// How far apart a candidate of a block comes again, at least.
int spacing_of(const Space& space, int block, const Draws& draws) {
  const int candidates = static_cast<int>(space.candidates(block).size());
  if (draws.kind == SamplerKind::uniform) return 0;
  if (draws.kind == SamplerKind::permutation || candidates == 1) return 1;
  const int usual = std::max(1, 2 * candidates / 3);
  MP_REQUIRE(
      draws.spacing < candidates, Exit::bad_configuration,
      "spacing: {} networks, but block {} has {} candidates (a candidate comes again after {} at most; "
      "the usual spacing is {})",
      draws.spacing, block, candidates, candidates - 1, usual);
  return draws.spacing > 0 ? draws.spacing : usual;
}

}  // namespace

std::unique_ptr<Sampler> draw_subnets(const Space& space, const Draws& draws, std::int64_t first) {
  std::vector<BlockDraws> blocks;
  for (int block = 0; block < space.blocks(); ++block)
    blocks.emplace_back(draws.seed, block, static_cast<int>(space.candidates(block).size()),
                        spacing_of(space, block, draws));
  return std::make_unique<DrawnSubnets>(std::move(blocks), first);
}

std::unique_ptr<Sampler> read_subnets(const Space& space, const std::string& file, std::int64_t first) {
  LineReader in(file, longest_own_line);
  std::vector<std::vector<std::uint8_t>> choices;
  for (std::string line; in.next(line);)
    choices.push_back(read_choice(space, line, fmt::format("{}:{}", file, in.number())));
  MP_REQUIRE(!choices.empty(), Exit::bad_data, "{}: is empty (a line is a choice, like 3, 0, 7)", file);
  return std::make_unique<WrittenSubnets>(std::move(choices), file, first);
}

std::unique_ptr<Sampler> make_sampler(const Space& space, const std::string& word, Draws draws,
                                      std::int64_t first) {
  const auto kind = kind_named<SamplerKind>(word);
  if (!kind) return read_subnets(space, word, first);
  draws.kind = *kind;
  return draw_subnets(space, draws, first);
}

std::unique_ptr<Sampler> stream_of(const Config& config, std::int64_t first) {
  const SupernetConfig& s = config.supernet;
  auto stream = make_sampler(config.model.supernet.space, s.sampler,
                             {.seed = config.seed, .spacing = s.spacing}, first);
  MP_REQUIRE(stream->count() == 0 || stream->count() >= config.train.steps, Exit::bad_data,
             "{}: has {} choices, and train.steps asks for {} subnets (add lines, or train fewer)", s.sampler,
             stream->count(), config.train.steps);
  return stream;
}

std::vector<Subnet> first_subnets(const Config& config) {
  constexpr int enough = 256;
  const auto stream = stream_of(config);
  std::vector<Subnet> subnets;
  for (int id = 0; id < std::clamp(config.train.steps, 1, enough); ++id) subnets.push_back(stream->next());
  return subnets;
}

std::string hash_of_choices(const Config& config, std::int64_t subnets) {
  if (!row_of(config.model.kind).trains_subnets || kind_named<SamplerKind>(config.supernet.sampler))
    return "";
  const auto stream = stream_of(config);
  Sha256 sha;
  for (std::int64_t id = 0; id < subnets; ++id) {
    const Subnet subnet = stream->next();
    sha.add(reinterpret_cast<const std::byte*>(subnet.choice.data()), subnet.choice.size());
  }
  return to_string(sha.end());
}

std::vector<Subnet> subnets_to_evaluate(const Config& config) {
  // Another seed than the stream's, so that what is asked is not what was trained last or first.
  const auto drawn = draw_subnets(config.model.supernet.space, {.seed = ~config.seed});
  std::vector<Subnet> subnets;
  for (int i = 0; i < config.supernet.evaluate_subnets; ++i) subnets.push_back(drawn->next());
  return subnets;
}

}  // namespace mindpipe
