#pragma once
#include <string>

namespace mindpipe {

struct Config;

/// Begins the name of a part of the arithmetic that lies in files: "contents of data.train".
inline constexpr const char* part_of_contents = "contents of ";

/// The parts of a configuration that lie in files, a line each: by contents, so a file may move. `beginning`:
/// the line of the weights to begin with where a run goes on, which reads none; empty: those of run.weights.
std::string inputs_of(const Config& config, const std::string& beginning = "");

/// The line of the weights to begin with among those of inputs_of, or of a whole arithmetic; empty: none.
std::string beginning_among(const std::string& lines);

/// Whether a setting names a file, of which the contents count and not the path.
bool counts_by_contents(const std::string& key);

}  // namespace mindpipe
