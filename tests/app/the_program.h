#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace mindpipe {

namespace fs = std::filesystem;

struct Answer {
  std::string text;
  int code;
};

/// The real binary in a directory of its own, with a network that trains in a moment.
class TheProgram : public testing::Test {
 protected:
  TheProgram() : root_(fs::temp_directory_path() / ("mindpipe_program_" + std::to_string(getpid()))) {
    fs::create_directories(root_);
    std::ofstream(root_ / "tiny.yaml")
        << "seed: 3\n"
           "run: {dir: "
        << (root_ / "run").string()
        << "}\n"
           "model: {kind: gpt, layers: 1, width: 32, heads: 2, context: 32, vocabulary: 256}\n"
           "data: {train: [" MINDPIPE_SOURCE_DIR "/data/alice.txt], validation: [" MINDPIPE_SOURCE_DIR
           "/data/alice.txt]}\n"
           "train: {steps: 4, batch: 4, micro_batch: 2, evaluate_every: 2, evaluate_batches: 1}\n"
           "optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}\n"
           "generate: {prompt: \"Alice\", tokens: 20}\n"
           "device: {threads: 1}\n";
  }
  ~TheProgram() override { fs::remove_all(root_); }

  Answer run(const std::string& arguments) const {
    return run_command(std::string(MINDPIPE_BINARY) + " " + arguments);
  }
  std::string generate_command() const {
    return std::string(MINDPIPE_BINARY) + " generate --config " + (root_ / "tiny.yaml").string();
  }
  Answer run_command(const std::string& command) const {
    std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    std::string text;
    for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    return {text, WEXITSTATUS(pclose(pipe))};
  }
  Answer tiny(const std::string& settings, const std::string& verb = "train") const {
    return run(verb + " --config " + (root_ / "tiny.yaml").string() + " " + settings);
  }
  std::string read(const std::string& path) const {
    std::ostringstream text;
    text << std::ifstream(root_ / path).rdbuf();
    return text.str();
  }
  std::vector<double> losses(const std::string& directory) const {
    std::vector<double> all;
    std::istringstream lines(read(directory + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line)["loss"]);
    return all;
  }

  fs::path root_;
};

}  // namespace mindpipe
