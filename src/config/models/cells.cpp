#include "config/models/cells.h"

#include <algorithm>

#include "config/models/read_space.h"
#include "config/section.h"

namespace mindpipe {
namespace {

constexpr int most_cells = 1024, most_blocks_of_cell = 64, most_times = 64;

/// The choices of one block.
struct CellChoices {
  std::vector<Candidate> left, right, combine;
  int residual = 0;
};

/// Calls read(node, key) for one value, or for each of a list of values.
template <class Read>
void for_values(const Node& node, const std::string& key, const Read& read) {
  if (node.kind != Node::Kind::list) return read(node, key);
  MP_REQUIRE(!node.items.empty(), Exit::bad_configuration, "{}: {} is an empty list (name one at least)",
             node.where, key);
  for (const Node& item : node.items) read(item, key);
}

template <class Kind>
Kind read_kind(const Node& node, const std::string& key) {
  const auto kind = node.kind == Node::Kind::text ? kind_named<Kind>(node.text) : std::nullopt;
  std::vector<std::string> names;
  for (const auto& row : rows_of(Kind{})) names.emplace_back(row.name);
  if (!kind) refuse(node, key, join(names, ", "));
  return *kind;
}

/// A width as a multiple of the model's: 4, or 1/2.
void read_width(const Node& node, const std::string& key, CellBranch& branch) {
  const bool is_part = node.kind == Node::Kind::text && node.text.starts_with("1/");
  if (!is_part) {
    branch.times = read_number(node, key, 1, most_times, ", or a part of it like 1/2");
    return;
  }
  Node part = node;
  part.text = node.text.substr(2);
  part.quoted = false;  // where a space stands on one line it is in quotes
  branch.part = read_number(part, key, 1, most_times);
}

/// Replaces candidates by each of them with each of the values that a key has.
template <class Set>
void with_each(std::vector<Candidate>& candidates, const Section& branch, const char* name, const Set& set) {
  const Node* values = branch.find(name);
  if (values == nullptr) return;
  std::vector<Candidate> all;
  for (const Candidate& candidate : candidates)
    for_values(*values, branch.key_of(name), [&](const Node& value, const std::string& key) {
      Candidate made = candidate;
      set(made, value, key);
      all.push_back(made);
    });
  candidates = std::move(all);
}

/// Refuses what a branch's layer has no use for.
void check_branch(const Candidate& c, const Node& node, const std::string& key) {
  const bool takes_width = c.kind == CandidateKind::convolution || c.kind == CandidateKind::separable;
  MP_REQUIRE(
      takes_width || (c.branch.times == 1 && c.branch.part == 1), Exit::bad_configuration,
      "{}: {} gives {} a width (conv-K and separable-K take one; it gives as many numbers as it reads)",
      node.where, key, c.word());
  MP_REQUIRE(c.kind != CandidateKind::none || c.branch == CellBranch{}, Exit::bad_configuration,
             "{}: {} has the layer none, which takes no input, norm or activation; remove them", node.where,
             key);
}

/// The candidates of one branch: a word, or a section whose values may be lists; all of them with all.
std::vector<Candidate> read_one_branch(const Node& node, const std::string& key) {
  if (node.kind == Node::Kind::text) return {read_candidate(node, key, WordUse::cells)};
  const std::vector<std::string> keys{"input", "norm", "layer", "width", "activation"};
  if (node.kind != Node::Kind::mapping)
    refuse(node, key, "the word of a layer, or a section with " + join(keys, ", "));
  const Section branch(node, key, keys, "a branch");
  branch.at("layer", "the word of its layer, or a list of words");
  std::vector<Candidate> all(1);
  with_each(all, branch, "layer", [](Candidate& c, const Node& value, const std::string& path) {
    c = read_candidate(value, path, WordUse::cells);
  });
  with_each(all, branch, "width", [](Candidate& c, const Node& value, const std::string& path) {
    read_width(value, path, c.branch);
  });
  with_each(all, branch, "norm", [](Candidate& c, const Node& value, const std::string& path) {
    c.branch.norm = read_kind<CellNorm>(value, path);
  });
  with_each(all, branch, "activation", [](Candidate& c, const Node& value, const std::string& path) {
    c.branch.activation = read_kind<CellActivation>(value, path);
  });
  with_each(all, branch, "input", [](Candidate& c, const Node& value, const std::string& path) {
    c.branch.input =
        read_number(value, path, 1, 2, " (a block reads the state before it, 1, or the one before that, 2)");
  });
  for (const Candidate& candidate : all) check_branch(candidate, node, key);
  return all;
}

/// The candidates of a branch: those of one section, or of a list of sections.
std::vector<Candidate> read_branch(const Node& node, const std::string& key) {
  std::vector<Candidate> all;
  for_values(node, key, [&](const Node& one, const std::string& path) {
    for (const Candidate& candidate : read_one_branch(one, path)) {
      MP_REQUIRE(std::find(all.begin(), all.end(), candidate) == all.end(), Exit::bad_configuration,
                 "{}: {} has {} twice with the same input, norm, width and activation (keep one of them)",
                 one.where, path, candidate.word());
      all.push_back(candidate);
    }
  });
  MP_REQUIRE(all.size() <= most_candidates, Exit::bad_configuration,
             "{}: {} has {} candidates, counting all combinations of its values (a branch has {} at most)",
             node.where, key, all.size(), most_candidates);
  return all;
}

/// A norm that both branches read belongs to a block that is this one network's alone.
void check_shared_norm(const CellChoices& block, const Node& node, const std::string& key) {
  const auto shares = [](const Candidate& c) { return c.branch.norm == CellNorm::shared; };
  const bool any = std::any_of(block.left.begin(), block.left.end(), shares) ||
                   std::any_of(block.right.begin(), block.right.end(), shares);
  if (!any) return;
  const Candidate &left = block.left.front(), &right = block.right.front();
  const auto reads = [](const Candidate& c) {
    return c.kind != CandidateKind::identity && c.kind != CandidateKind::none;
  };
  MP_REQUIRE(block.left.size() == 1 && block.right.size() == 1 && shares(left) && shares(right) &&
                 left.branch.input == right.branch.input && reads(left) && reads(right),
             Exit::bad_configuration,
             "{}: {} has a shared norm, which both branches read: each has one candidate, a layer, the same "
             "input, and norm: shared (or give each its own)",
             node.where, key);
}

CellChoices read_block(const Section& section, const Node& node, const std::string& key) {
  CellChoices block;
  block.left = read_branch(section.at("left", "a branch: the word of a layer, or a section with its layer"),
                           section.key_of("left"));
  const Node* right = section.find("right");
  block.right = right != nullptr ? read_branch(*right, section.key_of("right"))
                                 : std::vector<Candidate>{{CandidateKind::none, {}}};
  for (const Candidate& candidate : block.left)
    MP_REQUIRE(candidate.kind != CandidateKind::none, Exit::bad_configuration,
               "{}: {} is none (a block has a left branch; its right one may be none)", node.where,
               section.key_of("left"));
  if (const Node* combine = section.find("combine"); combine != nullptr)
    for_values(*combine, section.key_of("combine"), [&](const Node& value, const std::string& path) {
      block.combine.push_back(read_candidate(value, path, WordUse::combiner));
    });
  else block.combine.push_back({CandidateKind::add, {}});
  if (const Node* residual = section.find("residual"); residual != nullptr)
    block.residual = read_number(*residual, section.key_of("residual"), 1, 2,
                                 " (the state before the block, 1, or the one before that, 2)");
  check_shared_norm(block, node, key);
  return block;
}

/// The blocks of a cell: a number of equal ones, or each with its own branches.
std::vector<CellChoices> read_cell(const Section& side) {
  const Node& blocks = side.at("blocks", "how many a cell has, or a list of them");
  const std::string key = side.key_of("blocks");
  if (blocks.kind != Node::Kind::list) {
    const int count = read_number(blocks, key, 1, most_blocks_of_cell, ", or a list of blocks");
    return std::vector<CellChoices>(static_cast<std::size_t>(count), read_block(side, blocks, key));
  }
  for (const char* name : {"left", "right", "combine", "residual"})
    MP_REQUIRE(side.find(name) == nullptr, Exit::bad_configuration,
               "{}: {} conflicts with {}, which already lists the branches of each block; remove {}",
               side.find(name)->where, side.key_of(name), key, side.key_of(name));
  MP_REQUIRE(!blocks.items.empty() && blocks.items.size() <= most_blocks_of_cell, Exit::bad_configuration,
             "{}: {} lists {} blocks (from 1 to {})", blocks.where, key, blocks.items.size(),
             most_blocks_of_cell);
  std::vector<CellChoices> all;
  for (std::size_t i = 0; i < blocks.items.size(); ++i) {
    const Node& item = blocks.items[i];
    const std::string path = fmt::format("{}[{}]", key, i);
    const std::vector<std::string> keys{"left", "right", "combine", "residual"};
    if (item.kind != Node::Kind::mapping) refuse(item, path, "a section with " + join(keys, ", "));
    all.push_back(read_block(Section(item, path, keys, "a block of a cell"), item, path));
  }
  return all;
}

/// Before the first block of a cell there is one state, what enters the cell: candidates that read another
/// one are left out where others are there.
void enter_cell(CellChoices& first, const Node& node, const std::string& key) {
  const auto reads_second = [](const Candidate& c) { return c.branch.input == 2; };
  for (auto* branch : {&first.left, &first.right}) std::erase_if(*branch, reads_second);
  MP_REQUIRE(!first.left.empty() && !first.right.empty() && first.residual != 2, Exit::bad_configuration,
             "{}: {} begins with a block that reads state 2, but one state alone enters a cell; take 1",
             node.where, key);
}

}  // namespace

bool has_cells(const Node& side) {
  return side.kind == Node::Kind::mapping &&
         std::any_of(side.entries.begin(), side.entries.end(),
                     [](const Entry& entry) { return entry.key.text == "cells"; });
}

std::vector<std::string> keys_of_cells() {
  return {"cells", "blocks", "left", "right", "combine", "residual"};
}

std::vector<std::vector<Candidate>> read_cells(const Section& side, const std::string& no_cross,
                                               CellSide& cell) {
  const Node& blocks = side.at("blocks", "how many a cell has, or a list of them");
  const int cells = read_number(side.at("cells", "how many there are"), side.key_of("cells"), 1, most_cells);
  std::vector<CellChoices> choices = read_cell(side);
  enter_cell(choices.front(), blocks, side.key_of("blocks"));
  cell.blocks = static_cast<int>(choices.size());
  for (const CellChoices& block : choices) {
    cell.residual.push_back(block.residual);
    for (const auto* branch : {&block.left, &block.right})
      for (const Candidate& candidate : *branch)
        MP_REQUIRE(no_cross.empty() || candidate.kind != CandidateKind::cross, Exit::bad_configuration,
                   "{}: {} has {} in block {} of a cell ({})", blocks.where, side.key_of("blocks"),
                   candidate.word(), cell.residual.size() - 1, no_cross);
  }
  std::vector<std::vector<Candidate>> places;
  for (int number = 0; number < cells; ++number)
    for (const CellChoices& block : choices)
      places.insert(places.end(), {block.left, block.right, block.combine});
  return places;
}

}  // namespace mindpipe
