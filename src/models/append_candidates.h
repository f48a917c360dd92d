#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/models/space.h"
#include "models/model.h"
#include "supernet/choice_block.h"
#include "supernet/subnet.h"

namespace mindpipe {

/// A candidate's unit, "blocks.7.3"; nullptr where it has no parameters.
inline Unit* add_unit_of(Model& model, const Space& space, int block, int number) {
  return has_parameters(space.candidates(block)[number]) ? &model.add_unit(candidate_name(block, number))
                                                         : nullptr;
}

/// Appends a block that is one of its candidates, whose layer make(block, number, unit) gives.
template <class Make>
void append_candidate(Model& model, const Space& space, int block, int number, const Make& make) {
  Unit* unit = add_unit_of(model, space, block, number);
  model.add_block(candidate_name(block, number), make(block, number, unit),
                  unit == nullptr ? std::vector<Unit*>{} : std::vector<Unit*>{unit});
}

/// Appends a block that may be any of its candidates, each with a unit of its own.
template <class Make>
void append_choice(Model& model, const Space& space, int block, const Make& make) {
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<Unit*> units;
  for (int number = 0; number < static_cast<int>(space.candidates(block).size()); ++number) {
    units.push_back(add_unit_of(model, space, block, number));
    layers.push_back(make(block, number, units.back()));
  }
  model.add_choice("blocks." + std::to_string(block), std::make_unique<ChoiceBlock>(block, std::move(layers)),
                   {units}, block);
}

}  // namespace mindpipe
