#pragma once
#include <map>
#include <string>

namespace mindpipe {

/// Names of a model's tensors in files that others read, by unit and part: {"layers.N.mlp.mlp.up",
/// "encoder.layer.N.intermediate.dense"}. N is the number of a layer; ".weight" or ".bias" follows on both
/// sides, unless an entry ends in it.
using NameTable = std::map<std::string, std::string>;

/// What a table says of a part of a unit. The mark of a piece, "#1", stays at the end.
std::string name_from(const NameTable& table, const std::string& unit, const std::string& part);

}  // namespace mindpipe
