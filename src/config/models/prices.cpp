#include "config/models/prices.h"

#include <filesystem>
#include <map>

#include "config/config.h"
#include "config/section.h"
#include "config/settings.h"

namespace mindpipe {

bool is_priced(const Candidate& candidate) {
  return !is_for(row_of(candidate.kind), WordUse::combiner) && candidate.kind != CandidateKind::none;
}

namespace {

constexpr const char* equal = "equal";
constexpr const char* h200 = "h200";

/// Prices of a table, as one number would be that a file gives.
constexpr Range of_a_pass{0, 1000, true}, of_a_backward{0, 100, true}, of_an_update{0, 100},
    of_a_move{0, 1e6}, of_a_stage{0.01, 100}, of_the_unit{0, 10, true};

/// In products of d x d over all tokens, the norm and the sum behind it included. An estimate.
double on_h200(const Candidate& candidate) {
  switch (candidate.kind) {
    case CandidateKind::convolution:
      return candidate.taps() + 0.5;
    case CandidateKind::dilated:
    case CandidateKind::maximum:
    case CandidateKind::average:
      break;
    case CandidateKind::separable:
      return 1.75;
    case CandidateKind::light:
      return 0.75;
    case CandidateKind::attention:
    case CandidateKind::cross:
      return 4.8;
    case CandidateKind::gated:
      return 2.7;
    case CandidateKind::mlp:
    case CandidateKind::normed_mlp:
      return 2 * candidate.times() + 0.5;
    case CandidateKind::identity:
    case CandidateKind::none:
    case CandidateKind::add:
    case CandidateKind::multiply:
    case CandidateKind::concat:
      return 0.05;
  }
  fail(Exit::internal, "a candidate of no kind");
}

/// The text of a table that has a word, for the candidates of a space. On an H200 a product is taken to be
/// one of width 1024 over 65,536 tokens, at 400 TFLOP/s.
std::string text_of(const std::string& word, const Space& space) {
  std::map<std::string, double> prices;
  for (int block = 0; block < space.blocks(); ++block)
    for (const Candidate& candidate : space.candidates(block))
      if (is_priced(candidate)) prices[candidate.word()] = word == h200 ? on_h200(candidate) : 1;
  std::vector<std::string> listed;
  for (const auto& [name, price] : prices) listed.push_back(fmt::format("{}: {}", name, shortest(price)));
  return fmt::format(
      "{{unit: {}, backward: 2, update: 0.01, embedding: 0.05, bridge: 0.05, head: 0.05, candidates: "
      "{{{}}}}}",
      word == h200 ? "344 us" : "700 us", join(listed, ", "));
}

double read_price(const Node& node, const std::string& key, const Range& range) {
  double price = 0;
  Setting(key, &price, "", range).read(node);
  return price;
}

/// The price of each word and each family of candidates that a table has.
std::map<std::string, double> read_prices_of_candidates(const Node& node, const std::string& key,
                                                        WordUse use) {
  const std::string words = candidate_words(use);
  if (node.kind != Node::Kind::mapping) refuse(node, key, "a price for each of " + words);
  std::map<std::string, double> prices;
  for (const auto& [name, value] : node.entries) {
    MP_REQUIRE(kind_named<CandidateKind>(name.text) || candidate_named(name.text), Exit::bad_configuration,
               "{}: {}.{} is no candidate (a price is that of {}, or of all of a kind: conv){}", name.where,
               key, name.text, words, word_meant(name.text));
    prices[name.text] = read_price(value, key + "." + name.text, of_a_pass);
  }
  return prices;
}

/// A candidate's own price, or else that of its kind.
double price_of(const std::map<std::string, double>& prices, const Node& node, const Space& space, int block,
                const Candidate& candidate) {
  const std::string kind(row_of(candidate.kind).name);
  for (const std::string& name : {candidate.word(), kind})
    if (const auto found = prices.find(name); found != prices.end()) return found->second;
  fail(Exit::bad_configuration,
       "{}: candidates has no price of {}, a candidate of {} of model.space, {}; add {}{}", node.where,
       candidate.word(), space.name_of(block), space.name, candidate.word(),
       candidate.word() == kind ? "" : ", or " + kind + " for all of its kind");
}

std::vector<double> read_stages(const Node& node) {
  if (node.kind != Node::Kind::list)
    refuse(node, "stages", "a list, of each stage how many times as slow it is");
  std::vector<double> stages;
  for (const Node& item : node.items) stages.push_back(read_price(item, "stages", of_a_stage));
  return stages;
}

Prices read_table(const Node& root, const Space& space) {
  const Section table(root, "",
                      {"unit", "backward", "update", "embedding", "bridge", "head", "move", "measured",
                       "stages", "candidates"},
                      "a table of prices");
  Prices prices;
  Setting("unit", &prices.unit, "", of_the_unit)
      .in(Setting::Unit::seconds)
      .read(table.at("unit", "how long price 1 is, like 700 us"));
  const auto read = [&](const char* name, const char* meaning, const Range& range) {
    return read_price(table.at(name, meaning), name, range);
  };
  prices.backward = read("backward", "how many times a forward", of_a_backward);
  prices.update = read("update", "of a unit, how many times a forward of its block", of_an_update);
  prices.embedding = read("embedding", "the price of its forward", of_a_pass);
  if (space.has_encoder() || table.find("bridge") != nullptr)
    prices.bridge = read("bridge", "the price of what stands between encoder and decoder", of_a_pass);
  prices.head = read("head", "the price of the last norm and the softmax", of_a_pass);
  if (table.find("move") != nullptr)
    prices.move = read("move", "of a unit's state, how many times a forward of its block", of_a_move);
  if (const Node* measured = table.find("measured"))
    Setting("measured", &prices.measured, "").read(*measured);
  if (const Node* stages = table.find("stages")) prices.stages = read_stages(*stages);
  const Node& node = table.at("candidates", "the price of each");
  const std::map<std::string, double> each =
      read_prices_of_candidates(node, "candidates",
                                space.is_of_pictures() ? WordUse::pictures
                                : space.has_cells()    ? WordUse::cells
                                                       : WordUse::texts);
  for (int block = 0; block < space.blocks(); ++block) {
    std::vector<double>& here = prices.candidates.emplace_back();
    for (const Candidate& candidate : space.candidates(block))
      here.push_back(is_priced(candidate) ? price_of(each, node, space, block, candidate) : 0);
  }
  return prices;
}

}  // namespace

std::string words_of_prices() { return std::string("paper, ") + equal + ", " + h200; }

bool are_on_paper(const std::string& word) { return word.empty() || word == "paper"; }

bool are_there(const std::string& word) {
  std::error_code none;
  return are_on_paper(word) || word == equal || word == h200 ||
         (std::filesystem::exists(word, none) && !std::filesystem::is_directory(word, none));
}

Prices read_prices(const std::string& word, const Space& space) {
  MP_REQUIRE(word != h200 || !space.is_of_pictures(), Exit::bad_configuration,
             "prices {} are those of layers for texts, and {} is a space of pictures (take equal, or a file)",
             word, space.name);
  if (word == equal || word == h200)
    return read_table(parse_document(text_of(word, space), "prices " + word, false), space);
  const Node root = read_document(word);
  MP_REQUIRE(root.kind == Node::Kind::mapping, Exit::bad_configuration,
             "{}: is {} (a table of prices is a mapping of unit, candidates and others)", word, shown(root));
  return read_table(root, space);
}

std::optional<Prices> prices_of(const Config& config) {
  if (!row_of(config.model.kind).trains_subnets || are_on_paper(config.supernet.prices)) return std::nullopt;
  return read_prices(config.supernet.prices, config.model.supernet.space);
}

}  // namespace mindpipe
