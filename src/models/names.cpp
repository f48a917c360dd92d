#include "models/names.h"

#include "core/check.h"

namespace mindpipe {
namespace {

/// Takes the number of a layer out of a path of words: N stands there instead. Empty: there is none.
std::string take_number(std::string& path) {
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    const std::size_t end = path.find_first_not_of("0123456789", dot + 1);
    if (end == dot + 1 || (end != std::string::npos && path[end] != '.')) continue;
    const std::string number = path.substr(dot + 1, end == std::string::npos ? end : end - dot - 1);
    path.replace(dot + 1, number.size(), "N");
    return number;
  }
  return {};
}

/// Puts the number where ".N." stands, and the ending before the mark of a piece.
std::string filled_in(std::string name, const std::string& number, const std::string& ending) {
  const std::size_t place = name.find(".N.");
  MP_CHECK((place != std::string::npos) == !number.empty(), "{} is the name of layer \"{}\"", name, number);
  if (place != std::string::npos) name.replace(place + 1, 1, number);
  return name.insert(std::min(name.find('#'), name.size()), ending);
}

}  // namespace

std::string name_from(const NameTable& table, const std::string& unit, const std::string& part) {
  std::string path = unit + "." + part;
  const std::string number = take_number(path);
  if (const auto whole = table.find(path); whole != table.end()) return filled_in(whole->second, number, "");
  const std::size_t dot = path.rfind('.');
  const auto found = table.find(path.substr(0, dot));
  MP_CHECK(found != table.end(), "no name for others is given to {}", path);
  return filled_in(found->second, number, path.substr(dot));
}

}  // namespace mindpipe
