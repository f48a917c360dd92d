#include "comm/mutation.h"

#include <string>

namespace mindpipe {
namespace {

std::string& mutation() {
  static std::string name;
  return name;
}

}  // namespace

void set_mutation(std::string_view name) { mutation() = name; }

bool is_mutated(std::string_view axis, std::string_view operation) {
  const std::string_view name = mutation();
  return !name.empty() && name.size() == axis.size() + 1 + operation.size() && name.starts_with(axis) && name[axis.size()] == '.' &&
         name.ends_with(operation);
}

}  // namespace mindpipe
