#include "config/profile.h"

#include <charconv>

#include "config/section.h"
#include "config/settings.h"
#include "core/text.h"

namespace mindpipe {
namespace {

const std::vector<std::string> names{"machine", "instructions", "kernels", "program", "threads", "ranks",
                                     "factor",  "update",       "clear",   "links",   "count",   "passes"};
const std::vector<std::string> names_of_links{"latency", "rate", "latency_between_nodes",
                                              "rate_between_nodes", "ranks_per_node"};
const std::vector<std::string> names_of_pass{"block", "forward", "input", "weight", "spread"};
constexpr Range any_time{0, 1e6}, a_time{0, 1e6, true}, a_rate{0, 1e18, true}, any_rate{0, 1e18},
    a_factor{0, 1e9, true}, any_spread{0, 1e6}, a_count{1, 1 << 20}, any_count{0, 1 << 20};

template <class T>
void read_into(T& member, const Section& section, const char* name, const char* meaning, const Range& range) {
  Setting(section.key_of(name), &member, meaning, range).read(section.at(name, meaning));
}
void read_into(std::string& member, const Section& section, const char* name, const char* meaning) {
  Setting(section.key_of(name), &member, meaning).read(section.at(name, meaning));
}

std::uint64_t key_of(const Node& key) {
  std::uint64_t number = 0;
  const char* end = key.text.data() + key.text.size();
  const auto [stop, problem] = std::from_chars(key.text.data() + 1, end, number, 16);
  MP_REQUIRE(key.text.size() == 17 && key.text[0] == 'w' && problem == std::errc{} && stop == end,
             Exit::bad_data, "{}: {} is no digest of a block's work (w and 16 hexadecimal digits)", key.where,
             shown(key));
  return number;
}

void read_links(Profile& profile, const Node& node) {
  const Section links(node, "links", names_of_links, "links of a profile");
  read_into(profile.latency, links, "latency", "seconds before a message arrives", any_time);
  read_into(profile.rate, links, "rate", "bytes a second between ranks of a node", any_rate);
  read_into(profile.latency_between_nodes, links, "latency_between_nodes", "seconds", any_time);
  read_into(profile.rate_between_nodes, links, "rate_between_nodes", "bytes a second", any_rate);
  read_into(profile.ranks_per_node, links, "ranks_per_node", "ranks of a node, or 0", any_count);
}

}  // namespace

Profile read_profile(const std::string& file) try {
  const Node root = read_document(file);
  const Section section(root, "", names, "a profile");
  Profile profile;
  read_into(profile.machine, section, "machine", "where it was measured");
  read_into(profile.instructions, section, "instructions", "of the processor that kernels used, or the GPU");
  read_into(profile.kernels, section, "kernels", "the digest of the table of device.kernels, or empty");
  read_into(profile.program, section, "program", "the version that measured it");
  read_into(profile.threads, section, "threads", "threads of a rank", a_count);
  read_into(profile.ranks, section, "ranks", "ranks that were busy at once", a_count);
  read_into(profile.factor, section, "factor", "measured over described times", a_factor);
  read_into(profile.update, section, "update", "bytes a second in an update", a_rate);
  read_into(profile.clear, section, "clear", "bytes a second in zeroing", a_rate);
  read_links(profile, section.at("links", "what messages between ranks take"));
  int count = 0;
  read_into(count, section, "count", "how many passes there are", any_count);
  for (const auto& [key, value] : section.at("passes", "what passes take").entries) {
    const Section pass(value, key.text, names_of_pass, "a pass of a profile");
    MeasuredPass& measured = profile.passes[key_of(key)];
    read_into(measured.block, pass, "block", "one of the blocks that do this work");
    read_into(measured.forward, pass, "forward", "seconds", a_time);
    read_into(measured.input, pass, "input", "seconds", a_time);
    read_into(measured.weight, pass, "weight", "seconds", any_time);
    read_into(measured.spread, pass, "spread", "how far times scatter", any_spread);
  }
  MP_REQUIRE(std::cmp_equal(profile.passes.size(), count), Exit::bad_data,
             "{}: it should have {} passes and has {}: it was cut off or changed; measure it again", file,
             count, profile.passes.size());
  return profile;
} catch (const Error& error) {
  if (error.code == Exit::bad_configuration) fail(Exit::bad_data, "{}", error.what());
  throw;
}

std::string text_of(const Profile& profile) {
  std::string text = fmt::format(
      "# What blocks of a model take on this machine, in seconds: device.profile of plans\nmachine: "
      "{}\ninstructions: {}\nkernels: {}\nprogram: {}\nthreads: {}\nranks: {}\n"
      "factor: {}\nupdate: {}\nclear: {}\nlinks:\n  latency: {}\n  rate: {}\n  latency_between_nodes: "
      "{}\n  rate_between_nodes: {}\n  ranks_per_node: {}\ncount: {}\npasses:\n",
      quoted_if_needed(profile.machine), quoted_if_needed(profile.instructions),
      quoted_if_needed(profile.kernels), quoted_if_needed(profile.program), profile.threads, profile.ranks,
      shortest(profile.factor), shortest(profile.update), shortest(profile.clear), shortest(profile.latency),
      shortest(profile.rate), shortest(profile.latency_between_nodes), shortest(profile.rate_between_nodes),
      profile.ranks_per_node, profile.passes.size());
  for (const auto& [key, pass] : profile.passes)
    text += fmt::format("  w{:016x}: {{block: {}, forward: {}, input: {}, weight: {}, spread: {}}}\n", key,
                        quoted_if_needed(pass.block), shortest(pass.forward), shortest(pass.input),
                        shortest(pass.weight), shortest(pass.spread));
  return text;
}

}  // namespace mindpipe
