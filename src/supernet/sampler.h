#pragma once
#include <memory>
#include <string>
#include <vector>

#include "config/kinds.h"
#include "supernet/subnet.h"

namespace mindpipe {

struct Config;

/// A stream of networks of a space, in the order of their ids: a function of what it is made with, wherever
/// it is asked to begin.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// The network that is next, and then the one behind it.
  virtual Subnet next() = 0;
  /// How many there are; 0: they have no end.
  virtual std::int64_t count() const { return 0; }
};

/// What a stream is drawn with. A block of c candidates has groups of c networks each, of its own.
struct Draws {
  SamplerKind kind = SamplerKind::uniform;
  std::uint64_t seed = 1;
  /// spaced: a candidate comes again this many networks later at the earliest, if a block has others; 0: two
  /// thirds of a block's candidates.
  int spacing = 0;
};

/// Draws networks from id `first` on.
///   uniform      each block's candidate for itself
///   permutation  within a block's group no candidate comes twice
///   spaced       neither that, nor again before its spacing, across the edges of groups too
/// Each draw is a word of the stream (seed, "subnet", block, group); what was drawn before counts for the
/// last one, so that a stream which begins late goes through what came before.
std::unique_ptr<Sampler> draw_subnets(const Space& space, const Draws& draws, std::int64_t first = 0);

/// Networks of a file from id `first` on, a line for each: the number of each block's candidate, from 0,
/// between commas.
std::unique_ptr<Sampler> read_subnets(const Space& space, const std::string& file, std::int64_t first = 0);

/// Both, by the word of a setting: a kind of draws, or else a file.
std::unique_ptr<Sampler> make_sampler(const Space& space, const std::string& word, Draws draws,
                                      std::int64_t first = 0);

/// The stream that a supernet's run trains, from id `first` on.
std::unique_ptr<Sampler> stream_of(const Config& config, std::int64_t first = 0);
/// The first subnets of that stream, as many as tell how they go together.
std::vector<Subnet> first_subnets(const Config& config);
/// SHA-256 of the first subnets of that stream, in words, where a file names them; empty where settings say
/// all of it.
std::string hash_of_choices(const Config& config, std::int64_t subnets);
/// The networks that its evaluations ask, always the same.
std::vector<Subnet> subnets_to_evaluate(const Config& config);

}  // namespace mindpipe
