#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "app/golden_models.h"
#include "app/run/weights_source.h"
#include "corpus/files.h"

// Directories of models that promise more than they have, or were damaged: a sentence, an exit code, and no
// memory for what is not there.
namespace mindpipe {
namespace {

using ::testing::HasSubstr;

/// Lets this process take no more than so many bytes beside what it has.
class LittleMemory {
 public:
  explicit LittleMemory(std::size_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + bytes;
    setrlimit(RLIMIT_AS, &limit);
  }
  ~LittleMemory() { setrlimit(RLIMIT_AS, &before_); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  rlimit before_{};
};

/// What a call is refused with; everything but a sentence for bad data, or for a configuration, fails.
template <class Call>
std::string refusal_of(Exit code, Call call) {
  const LittleMemory limit(std::size_t{16} << 20);
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, code) << error.what();
    return error.what();
  }
  return "accepted";
}

std::string with_length(std::uint64_t length, const std::string& rest) {
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + rest;
}

std::string one_tensor(const std::string& shape, const std::string& offsets) {
  const std::string header =
      fmt::format(R"({{"a":{{"dtype":"F32","shape":{},"data_offsets":{}}}}})", shape, offsets);
  return with_length(header.size(), header + std::string(16, '\0'));
}

TEST(DamagedModels, TakeNoMemoryForWhatTheirFilesPromise) {
  const Folder folder;
  const auto refusal = [&](const std::string& bytes) {
    write_file(folder / "file", bytes);
    return refusal_of(Exit::bad_data, [&] { SafetensorsFile(folder / "file").floats("a"); });
  };
  EXPECT_THAT(refusal(with_length(9'000'000, "{" + std::string(1000, ' '))),
              HasSubstr("gives a header of 9000000 bytes, and the file has 1001"));
  EXPECT_THAT(refusal(with_length(~std::uint64_t{0}, "{}")), HasSubstr("at most 16777216"));
  EXPECT_THAT(refusal(one_tensor("[1000000000]", "[0,4000000000]")), HasSubstr("the file has 16"));
  EXPECT_THAT(refusal(one_tensor("[4611686018427387904,4]", "[0,16]")),
              HasSubstr("not the size of its shape"));
  EXPECT_THAT(refusal(one_tensor("[4]", "[0,18446744073709551615]")), HasSubstr("whole number from 0"));
  EXPECT_THAT(refusal(one_tensor("[0,9223372036854775807]", "[0,0]")), HasSubstr("the file has 16"));
  EXPECT_EQ(refusal(one_tensor("[4]", "[0,16]")), "accepted");
}

/// Writes a model as two parts with an index; the text of the index.
std::string split_in_two(const std::string& directory) {
  const std::string golden = golden_folder + "llama";
  Config config = imported(golden);
  config.exported.part = 12'000;
  Worker worker(config, {});
  begin_with_weights(worker);
  save_weights_for_others(worker, directory);
  return read_file(directory + "/model.safetensors.index.json");
}

TEST(DamagedModels, HaveAnIndexThatIsReadOrRefused) {
  const Folder folder;
  const std::string whole = split_in_two(folder / "");
  const Config config = imported(folder / "");
  Worker worker(config, {});
  std::mt19937 random(11);
  const std::vector<std::string> pieces{"null", "-1",          "1e999",           "[]",       "{}", "\"\"",
                                        "true", "\"..\"",      "\"/etc/passwd\"", "[[[[[[[[", "}",  "\"",
                                        ",",    "\"\\u0000\"", "\"config.json\"", "\".\""};
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::string text = whole;
    const std::size_t at = random() % text.size(), end = std::min(text.find_first_of(",\n", at), text.size());
    if (i % 3 == 0) text[at] = static_cast<char>(random());
    else if (i % 3 == 1) text.replace(at, end - at, pieces[random() % pieces.size()]);
    else text.resize(at);
    write_file(folder / "model.safetensors.index.json", text);
    refused += refusal_of(Exit::bad_data, [&] { begin_with_weights(worker); }) != "accepted" ? 1 : 0;
  }
  EXPECT_GT(refused, 300);
}

TEST(DamagedModels, HaveSizesThatAreReadOrRefused) {
  const Folder folder;
  for (const std::string& name : golden_models()) {
    const auto json = nlohmann::json::parse(read_file(golden_folder + name + "/config.json"));
    for (const auto& [key, value] : json.items())
      for (const char* number : {"0", "-1", "65537", "2147483647", "9223372036854775807", "1e30"}) {
        if (!value.is_number()) continue;
        nlohmann::json other = json;
        other[key] = nlohmann::json::parse(number);
        write_file(folder / "config.json", other.dump());
        refusal_of(Exit::bad_configuration, [&] { their_model(folder / "config.json"); });
      }
  }
}

/// The exit code of the program, and what it says.
std::pair<int, std::string> answer_of(const std::string& arguments, const Folder& folder) {
  const int status = std::system(
      (std::string(MINDPIPE_BINARY) + " " + arguments + " > '" + (folder / "said") + "' 2>&1").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder / "said")};
}

TEST(DamagedModels, EndTheProgramWithAnExitCodeOfTheirKind) {
  const Folder folder;
  std::filesystem::create_directories(folder / "model");
  const auto json = nlohmann::json::parse(read_file(golden_folder + "llama/config.json"));
  const auto imported_with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json other = json;
    other[key] = value;
    write_file(folder / "model/config.json", other.dump());
    return answer_of("import '" + (folder / "model") + "' --output '" + (folder / "train.yaml") + "'",
                     folder);
  };
  const auto refused = [](int code, const std::string& sentence) {
    return testing::Pair(code, HasSubstr(sentence));
  };
  EXPECT_THAT(imported_with("architectures", {"MambaForCausalLM"}),
              refused(78, "MambaForCausalLM, which is not built"));
  EXPECT_THAT(imported_with("hidden_act", "mish"), refused(78, "hidden_act is mish, which is not built"));
  EXPECT_THAT(imported_with("rope_parameters", {{"rope_type", "yarn"}}),
              refused(78, "is yarn, which is not built"));
  EXPECT_THAT(imported_with("mlp_bias", true),
              refused(78, "attention_bias, mlp_bias is false true, which is not built"));
  EXPECT_THAT(imported_with("num_hidden_layers", 2), refused(0, "LlamaForCausalLM of"));

  split_in_two(folder / "model");
  const std::string settings = fmt::format(
      "--config '{0}/train.yaml' data.train={1} data.sequence=2 train.batch=1 train.micro_batch=1 "
      "train.steps=1 "
      "device.threads=1 run.dir='{0}/run'",
      folder / "", write_golden(folder));
  const auto trained = [&] { return answer_of(settings, folder); };
  const std::string index = read_file(folder / "model/model.safetensors.index.json");
  const auto with_index = [&](const std::string& from, const std::string& to) {
    std::string text = index;
    for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
      text.replace(at, from.size(), to);
    write_file(folder / "model/model.safetensors.index.json", text);
    return trained();
  };
  EXPECT_THAT(with_index("model-00001", "model-00009"), refused(65, "model-00009-of-"));
  EXPECT_THAT(with_index("model-00001", "../model-00001"), refused(65, "lies outside the directory"));
  EXPECT_THAT(with_index("model.norm.weight", "model.normal.weight"), refused(65, "where the index puts it"));
}

}  // namespace
}  // namespace mindpipe
