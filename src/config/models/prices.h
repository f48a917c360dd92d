#pragma once
#include <optional>
#include <string>
#include <vector>

#include "config/models/space.h"

namespace mindpipe {

/// What passes of a supernet's blocks are said to take, whatever a device on paper would.
struct Prices {
  double unit = 0;                             ///< seconds that price 1 is long: a forward of one micro-batch
  double backward = 0;                         ///< times its forward
  double update = 0;                           ///< update of a unit, times the forward of its block
  double embedding = 0, bridge = 0, head = 0;  ///< forwards of what all subnets share
  /// A move of a unit's state to another rank, times the forward of its block; -1: what its bytes take.
  double move = -1;
  /// Prices are those of whole passes and updates, with all that they wait for and exchange.
  bool measured = false;
  std::vector<double> stages;  ///< times as long as elsewhere passes take on each stage; empty: once
  std::vector<std::vector<double>> candidates;  ///< forward, [block of the space][candidate]
  bool operator==(const Prices&) const = default;
};

/// Whether a table prices a candidate: what combines two branches comes with them.
bool is_priced(const Candidate& candidate);
/// What supernet.prices may be, beside a file: "paper, equal, h200".
std::string words_of_prices();
/// Whether a setting of prices leaves them to the device on paper: it is empty, or paper.
bool are_on_paper(const std::string& word);
/// Whether there are such prices: a word, or a file that is there.
bool are_there(const std::string& word);

/// The prices of a space's candidates: a table's, by its word, or those of a file, which is read as strictly
/// as a configuration. Refuses a table without a word that the space has.
Prices read_prices(const std::string& word, const Space& space);

struct Config;
/// The prices that a run goes by; none where those of the device on paper hold.
std::optional<Prices> prices_of(const Config& config);

}  // namespace mindpipe
