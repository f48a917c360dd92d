#include "config/models/subnet.h"

#include "config/config.h"
#include "config/rules.h"
#include "config/settings.h"

namespace mindpipe::subnet {

std::vector<Setting> settings(Config& config) {
  Settings& m = config.model.subnet;
  std::vector<Setting> all = space_settings(m, config);
  all.insert(
      all.begin() + 1,
      Setting("model.choice", &m.choice,
              "the number of each block's candidate, from 0, blocks of the encoder first; of a block in a "
              "cell three: left, right and combine; left out: 0 where no block has a second candidate",
              Range{0, 255}));
  if (m.space.is_of_pictures() || m.space.blocks() == 0)
    all.emplace_back("model.norm_momentum", &m.norm_momentum,
                     "batch norms: how far running means and variances follow those of a step; evaluations "
                     "use them",
                     Range{0, 1, true});
  return all;
}

void fill_in(Config& config) {
  Settings& m = config.model.subnet;
  fill_in_space(m, config);
  bool is_one_network = m.choice.empty();
  for (int block = 0; block < m.space.blocks(); ++block)
    is_one_network = is_one_network && m.space.candidates(block).size() == 1;
  if (is_one_network) m.choice.assign(m.space.blocks(), 0);
}

void check(const Config& config, const Complaints& complain) {
  const Settings& m = config.model.subnet;
  check_space(m, config, complain);
  const int blocks = m.space.blocks(), chosen = static_cast<int>(m.choice.size());
  complain.require(chosen > 0, "model.choice",
                   "is missing; add it: the number of each block's candidate, from 0 ({} of them)", blocks);
  complain.require(chosen == blocks, "model.choice", "has {} numbers, and model.space, {}, has {} {}", chosen,
                   m.space.name, m.space.layers(),
                   m.space.has_cells() ? fmt::format("blocks in cells (three numbers for each: {})", blocks)
                                       : "blocks (one number for each block)");
  for (int block = 0; block < blocks; ++block) {
    const std::vector<Candidate>& candidates = m.space.candidates(block);
    const int number = m.choice[block], count = static_cast<int>(candidates.size());
    complain.require(number >= 0 && number < count, "model.choice",
                     "says {} for {}, which has {} candidate{} ({})", number, m.space.name_of(block), count,
                     count == 1 ? "" : "s", count == 1 ? "0" : fmt::format("0 to {}", count - 1));
  }
  const std::string misfit = misfit_of(m.space, &m.choice, m.width, config.reproducible.tensor);
  complain.require(misfit.empty(), "model.choice", "makes {}", misfit);
}

std::vector<Extent> split_by_shards(const Config& config) {
  return rows_of_space(config.model.subnet, config);
}

}  // namespace mindpipe::subnet
