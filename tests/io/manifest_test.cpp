#include "io/manifest.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "core/crc32c.h"
#include "io/checkpoint_sample.h"

namespace mindpipe {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

constexpr std::size_t ending = sizeof(",\n\"crc32c\": \"01234567\"\n}\n") - 1;

/// A text with the right CRC behind it, as somebody would make it who knows the format.
std::string sealed(const std::string& body) {
  return fmt::format("{},\n\"crc32c\": \"{:08x}\"\n}}\n", body, crc32c(body.data(), body.size()));
}

Json sample_json() { return Json::parse(text_of(sample_manifest())); }

/// The manifest that says this, with the right CRC.
std::string manifest_of(Json json) {
  json.erase("crc32c");
  std::string body = json.dump(1);
  body.resize(body.size() - 2);
  return sealed(body);
}

std::string complaint(const std::string& text) {
  const std::string said = refusal([&] { parse_manifest(text, "DIR/manifest.json"); });
  EXPECT_THAT(said, testing::AnyOf("accepted", HasSubstr("DIR/manifest.json: ")));
  return said;
}

/// The complaint about the sample's manifest after a change.
std::string complaint_after(const std::function<void(Json&)>& change) {
  Json json = sample_json();
  change(json);
  return complaint(manifest_of(json));
}

void expect_sample(const Manifest& got) {
  const Manifest wanted = sample_manifest();
  const RunProgress &p = got.progress, &q = wanted.progress;
  EXPECT_EQ(std::tie(p.step, p.applied, p.samples, p.planned_samples, p.tokens, p.best_loss, p.best_step),
            std::tie(q.step, q.applied, q.samples, q.planned_samples, q.tokens, q.best_loss, q.best_step));
  EXPECT_EQ(std::tie(got.restarts, got.choices, got.created_by, got.arithmetic, got.settings, got.grid,
                     got.file_bytes),
            std::tie(wanted.restarts, wanted.choices, wanted.created_by, wanted.arithmetic, wanted.settings,
                     wanted.grid, wanted.file_bytes));
  EXPECT_EQ(got.crcs, wanted.crcs);
  EXPECT_EQ(got.units, wanted.units);
  ASSERT_EQ(got.tensors.size(), wanted.tensors.size());
  for (std::size_t i = 0; i < got.tensors.size(); ++i) {
    const CheckpointTensor &a = got.tensors[i], &b = wanted.tensors[i];
    EXPECT_EQ(std::tie(a.path, a.shape, a.offset, a.bytes), std::tie(b.path, b.shape, b.offset, b.bytes));
  }
}

TEST(ManifestText, ReadsWhatWasWritten) {
  const std::string text = text_of(sample_manifest());
  expect_sample(parse_manifest(text, "a"));
  EXPECT_EQ(text_of(parse_manifest(text, "a")), text);
  EXPECT_EQ(manifest_of(sample_json()), text) << "the tests below change what stands there, and nothing else";

  Manifest without = sample_manifest();
  without.progress.best_loss.reset();
  EXPECT_FALSE(parse_manifest(text_of(without), "a").progress.best_loss.has_value());
}

TEST(ManifestText, RemembersEarlierStepsOfOtherArithmeticOrSettings) {
  Manifest manifest = sample_manifest();
  manifest.earlier = {{4, "kernels: cpu: baseline\n", {{"seed", "7"}}},
                      {9, "kernels: cuda\n", {{"seed", "8"}}}};
  const std::string text = text_of(manifest);
  EXPECT_EQ(parse_manifest(text, "a").earlier, manifest.earlier);
  EXPECT_EQ(text_of(parse_manifest(text, "a")), text);
  for (const auto& [first, second] : {std::pair(0, 9), {4, 4}, {9, 4}, {4, 13}}) {
    manifest.earlier[0].end = first;
    manifest.earlier[1].end = second;
    EXPECT_THAT(complaint(text_of(manifest)), HasSubstr("earlier steps end at ")) << first << ' ' << second;
  }
}

TEST(ManifestText, EveryChangeOfAByteIsFound) {
  const std::string text = text_of(sample_manifest());
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const int mask : {1, 2, 4, 8, 16, 32, 64, 128, 255, text[i] ^ ' ', text[i] ^ '0'}) {
      if (mask == 0) continue;
      std::string other = text;
      other[i] = static_cast<char>(other[i] ^ mask);
      ASSERT_NE(complaint(other), "accepted") << "byte " << i << " with " << mask;
    }
}

TEST(ManifestText, EveryTruncationAndEveryByteTooManyIsFound) {
  const std::string text = text_of(sample_manifest());
  for (std::size_t size = 0; size < text.size(); ++size)
    ASSERT_NE(complaint(text.substr(0, size)), "accepted") << size;
  for (const char* more : {" ", "\n", "}"}) EXPECT_NE(complaint(text + more), "accepted");
  EXPECT_NE(complaint(" " + text), "accepted");
  EXPECT_NE(complaint(text + text), "accepted");
}

TEST(ManifestText, TensorsBeyondTheFileOrOverEachOtherAreRefused) {
  const std::int64_t end = sample_manifest().file_bytes;
  for (const std::int64_t offset : {end - 20 + 1, end, INT64_MAX - 20, INT64_MAX})
    EXPECT_THAT(complaint_after([&](Json& j) { j["tensors"][1]["offset"] = offset; }),
                HasSubstr("tensor /model/a.bias would lie at"))
        << offset;
  EXPECT_EQ(complaint_after([&](Json& j) { j["tensors"][1]["offset"] = end - 20; }), "accepted");
  for (const std::int64_t offset : {4096 - 19, 4096, (24 << 20) + 4095})
    EXPECT_THAT(complaint_after([&](Json& j) { j["tensors"][1]["offset"] = offset; }),
                HasSubstr("lie over each other"))
        << offset;
  for (const std::int64_t offset : {4096 - 20, (24 << 20) + 4096})
    EXPECT_EQ(complaint_after([&](Json& j) { j["tensors"][1]["offset"] = offset; }), "accepted") << offset;
  EXPECT_THAT(complaint_after([](Json& j) { j["tensors"][2] = j["tensors"][1]; }),
              HasSubstr("lie over each other"));
}

TEST(ManifestText, ExtentsThatNoTensorHasAreRefused) {
  const auto with_shape = [](const Json& shape, std::int64_t bytes) {
    return complaint_after([&](Json& j) {
      j["tensors"][1]["shape"] = shape;
      j["tensors"][1]["bytes"] = bytes;
    });
  };
  EXPECT_EQ(with_shape({5, 1}, 20), "accepted");
  constexpr std::uint64_t two_to_63 = std::uint64_t{1} << 63;
  constexpr std::int64_t two_to_31 = std::int64_t{1} << 31, two_to_62 = std::int64_t{1} << 62;
  for (const Json& shape : std::vector<Json>{{two_to_63}, {two_to_63, 2}})
    EXPECT_THAT(with_shape(shape, 20), HasSubstr("number where a whole number was")) << shape;
  for (const Json& shape : std::vector<Json>{{-5},
                                             {-5, -1},
                                             {0},
                                             {0, 5},
                                             Json::array(),
                                             {5, 1, 1},
                                             {1, 1, 5, 1},
                                             {4},
                                             {6},
                                             {two_to_31, two_to_31},
                                             {two_to_62, two_to_62},
                                             {two_to_62 + 5, 4},
                                             {INT64_MAX, INT64_MAX}}) {
    EXPECT_THAT(with_shape(shape, 20), HasSubstr("do not follow from its shape")) << shape;
    EXPECT_NE(with_shape(shape, 0), "accepted") << shape;
  }
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{19}, std::int64_t{21}, INT64_MAX})
    EXPECT_THAT(with_shape({5}, bytes), HasSubstr("do not follow from its shape")) << bytes;
}

TEST(ManifestText, AFileHasOneCrcForEachBlock) {
  const auto with_file = [](const Json& bytes, std::size_t crcs) {
    return complaint_after([&](Json& j) {
      j["tensors"] = Json::array();
      j["file"]["bytes"] = bytes;
      j["file"]["crc32c"] = std::vector<std::string>(crcs, "00000000");
    });
  };
  EXPECT_EQ(with_file(3 * Manifest::block + 24, 4), "accepted");
  EXPECT_EQ(with_file(3 * Manifest::block, 3), "accepted");
  EXPECT_EQ(with_file(0, 0), "accepted");
  for (const std::size_t crcs : {0, 1, 3, 5, 100'000})
    EXPECT_THAT(with_file(3 * Manifest::block + 24, crcs), HasSubstr("one for every 16 MiB")) << crcs;
  EXPECT_THAT(with_file(std::int64_t{1'000'000'000} * Manifest::block, 4), HasSubstr("one for every 16 MiB"));
  for (const std::int64_t bytes : {std::int64_t{1} << 60, INT64_MAX, INT64_MAX - Manifest::block})
    EXPECT_NE(with_file(bytes, 4), "accepted") << bytes;
  EXPECT_NE(with_file(-1, 0), "accepted");
  EXPECT_NE(with_file(-Manifest::block, 0), "accepted");
}

TEST(ManifestText, ANewerVersionAndAnotherFormatAreNamed) {
  Json newer = sample_json();
  newer["version"] = 3;
  EXPECT_THAT(
      refusal([&] { parse_manifest(manifest_of(newer), "DIR/manifest.json"); }, Exit::bad_configuration),
      HasSubstr("it is of format version 3 (this program reads up to 2; take a newer one)"));
  EXPECT_THAT(complaint_after([](Json& j) { j["format"] = "another"; }),
              HasSubstr("it is no manifest of a checkpoint"));
  EXPECT_NE(complaint_after([](Json& j) { j["version"] = 0; }), "accepted");
  EXPECT_NE(complaint_after([](Json& j) { j["version"] = -1; }), "accepted");
}

/// Every place in the manifest, as JSON has it.
std::vector<Json::json_pointer> places_of(const Json& json) {
  std::vector<Json::json_pointer> places;
  const Json flat = json.flatten();
  for (const auto& [place, value] : flat.items())
    for (Json::json_pointer at(place); !at.empty(); at = at.parent_pointer())
      if (std::find(places.begin(), places.end(), at) == places.end()) places.push_back(at);
  return places;
}

/// Members of these may be any: each has a name of its own.
bool is_free(const Json::json_pointer& place) {
  const std::string parent = place.parent_pointer().to_string();
  return parent == "/settings" || parent == "/grid";
}

TEST(ManifestText, EveryMissingMemberIsRefused) {
  const Json sample = sample_json();
  for (const Json::json_pointer& place : places_of(sample)) {
    if (is_free(place) || place.to_string() == "/crc32c") continue;
    const Json& parent = sample.at(place.parent_pointer());
    if (parent.is_array() && place.to_string().rfind("/tensors/0/shape", 0) != 0 &&
        place.to_string().rfind("/file/crc32c", 0) != 0)
      continue;  // one tensor or unit less is another manifest, which may be
    EXPECT_NE(complaint_after([&](Json& j) {
                Json& from = j.at(place.parent_pointer());
                if (from.is_array()) from.erase(static_cast<std::size_t>(std::stoul(place.back())));
                else from.erase(place.back());
              }),
              "accepted")
        << place.to_string();
  }
}

TEST(ManifestText, EveryMemberOfAnotherTypeIsRefused) {
  const Json sample = sample_json();
  const std::vector<Json> others{nullptr,       true,           1.5,     -1,      "text", 1e300,
                                 Json::array(), Json::object(), Json(7), "0x7fff"};
  for (const Json::json_pointer& place : places_of(sample)) {
    if (place.to_string() == "/crc32c") continue;
    for (const Json& other : others) {
      const Json& was = sample.at(place);
      const bool may_be =
          other.type() == was.type() || (other.is_number_integer() && was.is_number_integer()) ||
          (other.is_null() && place.to_string() == "/best_loss") ||
          (other.is_number() && was.is_number_float()) || (other.is_array() && was.is_array());
      if (may_be) continue;
      EXPECT_NE(complaint_after([&](Json& j) { j.at(place) = other; }), "accepted")
          << place.to_string() << " is " << other;
    }
  }
}

/// The sample of a run that has gone back twice and compares losses.
Manifest guarded_manifest() {
  Manifest m = sample_manifest();
  m.progress.left_out = {{64, 128}, {160, 224}};
  m.progress.rollbacks = 2;
  m.progress.skipped_in_a_row = 1;
  m.progress.accepted_losses = {0.1, 2.5, 1.0 / 3};
  return m;
}

TEST(ManifestText, SamplesThatAreLeftOutAndLossesComeBack) {
  const RunProgress got = parse_manifest(text_of(guarded_manifest()), "m").progress,
                    want = guarded_manifest().progress;
  EXPECT_EQ(got.left_out, want.left_out);
  EXPECT_EQ(got.accepted_losses, want.accepted_losses);
  EXPECT_EQ(std::tie(got.rollbacks, got.skipped_in_a_row), std::tie(want.rollbacks, want.skipped_in_a_row));
  EXPECT_EQ(sample_json()["version"], 1) << "older programs read what they understand";
  EXPECT_EQ(Json::parse(text_of(guarded_manifest()))["version"], 2);
}

TEST(ManifestText, SamplesThatAreLeftOutLieApartAndAscend) {
  const Json sample = Json::parse(text_of(guarded_manifest()));
  const auto complaint_about = [&](const Json& ranges) {
    Json json = sample;
    json["left_out"] = ranges;
    return complaint(manifest_of(json));
  };
  EXPECT_EQ(complaint_about({{64, 128}, {160, 224}}), "accepted");
  for (const char* wrong :
       {"[[64, 64]]", "[[64, 60]]", "[[-1, 60]]", "[[64, 128], [128, 160]]", "[[64, 128], [100, 160]]",
        "[[160, 224], [64, 128]]", "[[64]]", "[[64, 128, 160]]", "[64, 128]", "7", "[[1.5, 2]]",
        "[[0, 99999999999999999]]", "{}"})
    EXPECT_NE(complaint_about(Json::parse(wrong)), "accepted") << wrong;
  for (const auto& [key, wrong] : {std::pair{"rollbacks", "-1"},
                                   {"rollbacks", "1.5"},
                                   {"skipped_in_a_row", "13"},
                                   {"accepted_losses", "[\"a\"]"},
                                   {"accepted_losses", "{}"}}) {
    Json json = sample;
    json[key] = Json::parse(wrong);
    EXPECT_NE(complaint(manifest_of(json)), "accepted") << key << " " << wrong;
  }
  Json json = sample;
  json["accepted_losses"] = std::vector<double>(RunProgress::most_losses + 1, 1.0);
  EXPECT_THAT(complaint(manifest_of(json)), HasSubstr("losses to compare with"));
}

TEST(ManifestText, CountsAreNeverNegativeNorFractions) {
  const Json sample = sample_json();
  for (const Json::json_pointer& place : places_of(sample)) {
    if (!sample.at(place).is_number_integer() || place.parent_pointer().to_string() == "/grid") continue;
    for (const Json& other : std::vector<Json>{-1, INT64_MIN, std::uint64_t{1} << 63, UINT64_MAX, 1.0, 0.5,
                                               18446744073709551616.0})
      EXPECT_NE(complaint_after([&](Json& j) { j.at(place) = other; }), "accepted")
          << place.to_string() << " is " << other;
  }
}

TEST(ManifestText, CrcsAreEightDigits) {
  for (const char* crc : {"", "0", "0000000", "000000000", "0000000G", "0000000A", " 0000001", "+0000001",
                          "-0000001", "0x000001"})
    EXPECT_NE(complaint_after([&](Json& j) { j["file"]["crc32c"][0] = crc; }), "accepted") << crc;
}

/// While this lives the process may hold no more memory than what it has and so much.
class MostMemory {
 public:
  explicit MostMemory(std::size_t more) {
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0;
    statm >> pages;
    getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + more, before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~MostMemory() { setrlimit(RLIMIT_AS, &before_); }
  MostMemory(const MostMemory&) = delete;
  MostMemory& operator=(const MostMemory&) = delete;

 private:
  rlimit before_{};
};

TEST(ManifestText, NoSizeThatItNamesIsTaken) {
  std::string said;
  {
    const MostMemory at_most(std::size_t{32} << 20);
    said = complaint_after([](Json& j) {
      j["file"]["bytes"] = std::int64_t{1} << 59;
      j["tensors"][0] = {{"path", "/model/a.weight"},
                         {"shape", {1 << 28, 1 << 29}},
                         {"dtype", "f32"},
                         {"offset", 0},
                         {"bytes", std::int64_t{1} << 59}};
    });
  }
  EXPECT_THAT(said, HasSubstr("one for every 16 MiB"));
}

TEST(ManifestText, DeepNestingIsRefusedNotFollowed) {
  constexpr int levels = 1'000'000;
  const auto nested = [&](const std::string& open, const std::string& close) {
    std::string text = "{\"format\": ";
    for (int i = 0; i < levels; ++i) text += open;
    text += "1";
    for (int i = 0; i < levels; ++i) text += close;
    return text;
  };
  EXPECT_NE(complaint(sealed(nested("[", "]"))), "accepted");
  EXPECT_NE(complaint(sealed(nested("{\"a\":", "}"))), "accepted");
  EXPECT_NE(complaint(sealed(nested("[", ""))), "accepted");
  std::string settings;
  for (int i = 0; i < levels; ++i) settings += "[";
  for (int i = 0; i < levels; ++i) settings += "]";
  std::string text = text_of(sample_manifest());
  text.resize(text.size() - ending);
  const std::size_t at = text.find("\"settings\": ") + std::string("\"settings\": ").size();
  text = text.substr(0, at) + settings + ", \"others\": " + text.substr(at);
  EXPECT_NE(complaint(sealed(text)), "accepted");
}

TEST(ManifestText, WhatIsNoJsonOrNoObjectIsRefused) {
  for (const char* body :
       {"", "{", "[1, 2", "{\"a\": 1", "nonsense that is long enough to have a CRC", "{\"format\": \"\xff\""})
    EXPECT_NE(complaint(sealed(body)), "accepted") << body;
}

class ManifestFile : public CheckpointFolder {};

TEST_F(ManifestFile, IsReadFromTheDirectory) {
  put("manifest.json", text_of(sample_manifest()));
  expect_sample(read_manifest(folder_));
}

TEST_F(ManifestFile, ThatIsMissingALinkADirectoryOrEmptyIsRefused) {
  const auto complaint = [&] { return refusal([&] { read_manifest(folder_); }); };
  EXPECT_THAT(complaint(), HasSubstr("cannot be read: No such file"));
  put("elsewhere.json", text_of(sample_manifest()));
  std::filesystem::create_symlink("elsewhere.json", path("manifest.json"));
  EXPECT_THAT(complaint(), HasSubstr("cannot be read"));
  std::filesystem::remove(path("manifest.json"));
  std::filesystem::create_directory(path("manifest.json"));
  EXPECT_THAT(complaint(), HasSubstr("is no file of a size that a manifest has"));
  std::filesystem::remove(path("manifest.json"));
  put("manifest.json", "");
  EXPECT_THAT(complaint(), HasSubstr("it is cut short at 0 bytes"));
}

TEST_F(ManifestFile, OfAnEnormousSizeIsNotTakenIn) {
  put("manifest.json", "{");
  std::filesystem::resize_file(path("manifest.json"), std::uintmax_t{1} << 40);
  EXPECT_THAT(refusal([&] { read_manifest(folder_); }),
              HasSubstr("is no file of a size that a manifest has"));
}

}  // namespace
}  // namespace mindpipe
