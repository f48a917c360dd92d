#pragma once
#include <string>
#include <string_view>

#include "core/check.h"
#include "tokenize/json_fields.h"

namespace mindpipe {

/// Runs `make` and puts the file's name before the sentence of an error.
template <class Make>
auto of_file(const std::string& path, Make make) {
  try {
    return make();
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(path)) throw;
    throw Error(error.code, path + ": " + error.what());
  } catch (const Json::exception& error) {
    throw Error(Exit::bad_data, path + ": it is not as such files are (" + error.what() + ")");
  }
}

}  // namespace mindpipe
