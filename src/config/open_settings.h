#pragma once
#include <set>
#include <string>
#include <vector>

namespace mindpipe {

struct Config;

/// What a file and a command line say of settings: the keys that they name, and those among them that they
/// leave to a search (auto). In a Config an open setting has its default.
struct WrittenKeys {
  std::set<std::string> named, open;
};

/// Reads a configuration, and which settings it names and leaves open.
Config read_config(const std::string& file, const std::vector<std::string>& overrides, WrittenKeys& written);

/// The configuration as YAML, where `open` settings are auto.
std::string to_yaml(const Config& config, const std::set<std::string>& open);

/// The configuration with other settings ("train.zero=1"), resolved.
Config with_settings(const Config& config, const std::vector<std::string>& settings);

}  // namespace mindpipe
