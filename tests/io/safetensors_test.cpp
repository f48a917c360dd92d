#include "io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/check.h"
#include "runtime/python.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Safetensors : public testing::Test {
 protected:
  Safetensors() { std::filesystem::create_directories(folder_); }
  ~Safetensors() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name = "file.safetensors") const { return folder_ + "/" + name; }
  static std::string bytes_of_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string put(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary) << bytes;
    return path();
  }
  static std::string with_header(const std::string& header, std::size_t data_bytes = 0) {
    const std::uint64_t size = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &size, 8);
    return bytes + header + std::string(data_bytes, '\1');
  }
  /// The complaint about these bytes; empty if there is none.
  std::string complaint(const std::string& bytes, Exit expected = Exit::bad_data) const {
    try {
      SafetensorsFile file(put(bytes));
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, expected) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(path()));
      return error.what();
    }
  }
  std::string complaint_about_header(const std::string& header, std::size_t data_bytes = 0) const {
    return complaint(with_header(header, data_bytes));
  }

  std::string folder_ = testing::TempDir() + "mindpipe_safetensors_" + std::to_string(::getpid());
};

constexpr float matrix[] = {1, 2, 3, 4, 5, 6};
constexpr std::uint16_t halves[] = {0x3F80, 0xC000};  // 1 and -2 in bf16
constexpr std::int64_t numbers[] = {7, -8};

void write_small(const std::string& path) {
  write_safetensors(path, {{"format", "pt"}},
                    {{"b.half", StoredType::bf16, {2}, halves},
                     {"a.matrix", StoredType::f32, {2, 3}, matrix},
                     {"c.numbers", StoredType::i64, {2}, numbers},
                     {"nothing", StoredType::f32, {0, 4}, nullptr}});
}

TEST_F(Safetensors, AFileHasExactlyTheseBytes) {
  write_small(path());
  std::string header =
      R"({"__metadata__":{"format":"pt"},"c.numbers":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
      R"("a.matrix":{"dtype":"F32","shape":[2,3],"data_offsets":[16,40]},)"
      R"("nothing":{"dtype":"F32","shape":[0,4],"data_offsets":[40,40]},)"
      R"("b.half":{"dtype":"BF16","shape":[2],"data_offsets":[40,44]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string expected = with_header(header);
  expected.append(reinterpret_cast<const char*>(numbers), 16);
  expected.append(reinterpret_cast<const char*>(matrix), 24);
  expected.append(reinterpret_cast<const char*>(halves), 4);
  EXPECT_EQ(bytes_of_file(path()), expected);
}

TEST_F(Safetensors, TheBytesAreThoseOfTheReferenceWriter) {
  write_small(path());
  EXPECT_EQ(bytes_of_file(path()), bytes_of_file(MINDPIPE_SOURCE_DIR "/tests/golden/small.safetensors"));
}

TEST_F(Safetensors, WhatWasWrittenIsRead) {
  write_small(path());
  const SafetensorsFile file(path());
  EXPECT_EQ(file.metadata("format"), "pt");
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.tensors()[0].name, "c.numbers");
  EXPECT_THAT(file.tensor("a.matrix").shape, ElementsAre(2, 3));
  EXPECT_THAT(file.floats("a.matrix"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(file.floats("b.half"), ElementsAre(1, -2));
  EXPECT_THAT(file.integers("c.numbers"), ElementsAre(7, -8));
  EXPECT_TRUE(file.floats("nothing").empty());
  EXPECT_EQ(file.find("d"), nullptr);
}

TEST_F(Safetensors, AnEmptyFileAndAScalarAreLegal) {
  EXPECT_EQ(complaint_about_header("{}"), "");
  EXPECT_EQ(complaint_about_header(R"({"x":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}  )", 4), "");
  write_safetensors(path(), {}, {});
  EXPECT_TRUE(SafetensorsFile(path()).tensors().empty());
  const double one = 1.5;
  write_safetensors(path(), {}, {{"x", StoredType::f64, {}, &one}});
  EXPECT_THAT(SafetensorsFile(path()).floats("x"), ElementsAre(1.5f));
}

TEST_F(Safetensors, TensorsMayStandInAnyOrderAndUnaligned) {
  put(with_header(R"({"z":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
                  R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})") +
      "\x05" + std::string("\0\0\x80\x3f", 4));
  const SafetensorsFile file(path());
  EXPECT_THAT(file.floats("z"), ElementsAre(1));
  EXPECT_THAT(file.integers("a"), ElementsAre(5));
}

TEST_F(Safetensors, HalfPrecisionIsReadExactly) {
  const std::uint16_t half[] = {0x3C00, 0xC000, 0x0001, 0x8000, 0x7BFF, 0x7C00, 0x03FF, 0x0400};
  write_safetensors(path(), {}, {{"x", StoredType::f16, {8}, half}});
  EXPECT_THAT(SafetensorsFile(path()).floats("x"),
              ElementsAre(1, -2, 0x1p-24f, -0.0f, 65504, std::numeric_limits<float>::infinity(),
                          1023 * 0x1p-24f, 0x1p-14f));
}

TEST_F(Safetensors, NamesOfAnyTextComeBack) {
  const float x = 1;
  const std::string name = "quote\" back\\slash \n tab\t gr\xc3\xbc\xc3\x9f";
  write_safetensors(path(), {{name, name}}, {{name, StoredType::f32, {1}, &x}});
  const SafetensorsFile file(path());
  EXPECT_EQ(file.metadata(name), name);
  EXPECT_THAT(file.floats(name), ElementsAre(1));
}

TEST_F(Safetensors, BrokenSizesAreNamed) {
  EXPECT_THAT(complaint(""), HasSubstr("has 0 bytes (a safetensors file has at least 10)"));
  EXPECT_THAT(complaint(std::string(12, '\xff')),
              HasSubstr("a header of 18446744073709551615 bytes (at most 16777216)"));
  EXPECT_THAT(complaint(std::string("\x10\0\0\0\0\0\0\0{}", 10)),
              HasSubstr("a header of 16 bytes, and the file has 2 after it"));
  EXPECT_THAT(complaint_about_header(" {}"), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(complaint_about_header("{}", 3), HasSubstr("the tensors take 0 bytes and the file has 3"));
}

TEST_F(Safetensors, BrokenHeadersAreNamed) {
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"x":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  EXPECT_EQ(complaint_about_header(entry(R"("F32")", "[2]", "[0,8]"), 8), "");
  EXPECT_THAT(complaint_about_header("{\"x\":}"), HasSubstr("is not JSON at byte 14 of the file"));
  EXPECT_THAT(complaint_about_header("{} {}"), HasSubstr("is not JSON"));
  EXPECT_THAT(complaint_about_header("{\"\xff\":{}}"), HasSubstr("is not JSON"));
  EXPECT_THAT(complaint_about_header(entry(R"("F31")", "[2]", "[0,8]"), 8),
              HasSubstr("tensor 'x' has dtype 'F31'"));
  EXPECT_THAT(complaint_about_header(entry("3", "[2]", "[0,8]"), 8),
              HasSubstr("tensor 'x' has no usable 'dtype' (expected a text)"));
  EXPECT_THAT(complaint_about_header(entry(R"("F32")", "2", "[0,8]"), 8),
              HasSubstr("tensor 'x' has no usable 'shape' (expected a list)"));
  EXPECT_THAT(complaint_about_header(entry(R"("F32")", "[-2]", "[0,8]"), 8),
              HasSubstr("tensor 'x' has -2 in its shape"));
  EXPECT_THAT(complaint_about_header(entry(R"("F32")", "[2.0]", "[0,8]"), 8),
              HasSubstr("tensor 'x' has 2.0 in its shape"));
  EXPECT_THAT(complaint_about_header(entry(R"("F32")", "[9223372036854775808]", "[0,8]"), 8),
              HasSubstr("in its shape"));
  EXPECT_THAT(complaint_about_header(entry(R"("F32")", "[4611686018427387905,4]", "[0,16]"), 16),
              HasSubstr("is not the size of its shape"));
  EXPECT_THAT(
      complaint_about_header(entry(R"("F32")", "[3]", "[0,8]"), 8),
      HasSubstr("tensor 'x' takes bytes 0 to 8 of the data, which is not the size of its shape [3] of F32"));
  EXPECT_THAT(complaint_about_header(entry(R"("F32")", "[0]", "[8,0]"), 8), HasSubstr("takes bytes 8 to 0"));
  EXPECT_THAT(complaint_about_header(entry(R"("F32")", "[2]", "[0]"), 8), HasSubstr("has 1 data_offsets"));
  EXPECT_THAT(complaint_about_header(R"({"x":{"dtype":"F32","shape":[2]}})", 8),
              HasSubstr("not described by dtype, shape and data_offsets alone"));
  EXPECT_THAT(complaint_about_header(R"({"x":[]})"), HasSubstr("tensor 'x' is not described"));
  EXPECT_THAT(complaint_about_header(R"({"__metadata__":{"a":1}})"),
              HasSubstr("a value for 'a' that is not a text"));
  EXPECT_THAT(complaint_about_header(R"({"__metadata__":"a"})"), HasSubstr("not a mapping"));
  EXPECT_THAT(complaint_about_header(R"({"x":)" + std::string(100'000, '[')), HasSubstr("nested deeper"));
}

TEST_F(Safetensors, DuplicatesHolesAndOverlapsAreRefused) {
  const auto two = [](const std::string& second, int begin, int end) {
    return R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},")" + second +
           R"(":{"dtype":"U8","shape":[4],"data_offsets":[)" + std::to_string(begin) + "," +
           std::to_string(end) + "]}}";
  };
  EXPECT_EQ(complaint_about_header(two("y", 4, 8), 8), "");
  EXPECT_THAT(complaint_about_header(two("x", 4, 8), 8), HasSubstr("the header has the key 'x' twice"));
  EXPECT_THAT(complaint_about_header(R"({"x":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})"),
              HasSubstr("'dtype' twice"));
  EXPECT_THAT(complaint_about_header(two("y", 5, 9), 9),
              HasSubstr("tensor 'y' begins at byte 5 of the data (expected 4: no hole, no overlap)"));
  EXPECT_THAT(complaint_about_header(two("y", 3, 7), 8), HasSubstr("tensor 'y' begins at byte 3"));
  EXPECT_THAT(complaint_about_header(two("y", 4, 8), 7),
              HasSubstr("the tensors take 8 bytes and the file has 7"));
}

TEST_F(Safetensors, WhatIsNotThereIsNamed) {
  write_small(path());
  const SafetensorsFile file(path());
  const auto sentence = [](auto act) -> std::string {
    try {
      act();
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_data);
      return error.what();
    }
  };
  EXPECT_THAT(sentence([&] { file.tensor("d"); }), HasSubstr("has no tensor 'd' among its 4"));
  EXPECT_THAT(sentence([&] { file.metadata("d"); }), HasSubstr("__metadata__ has no 'd'"));
  EXPECT_THAT(sentence([&] { file.integers("a.matrix"); }),
              HasSubstr("has dtype F32 (expected whole numbers"));
  try {
    SafetensorsFile missing(path("missing"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::input_missing);
    EXPECT_THAT(error.what(), HasSubstr("missing: there is no such file"));
  }
  try {
    SafetensorsFile directory(folder_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_data);
    EXPECT_THAT(error.what(), HasSubstr("not an ordinary file"));
  }
}

TEST_F(Safetensors, AFullDiskLeavesTheOldFileAndNoOther) {
  write_small(path());
  const std::string before = bytes_of_file(path());
  const std::vector<float> large(100'000, 1.0f);
  struct rlimit old_limit {};
  ::getrlimit(RLIMIT_FSIZE, &old_limit);
  const struct rlimit small { 65536, old_limit.rlim_max };
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  Exit code = Exit::done;
  try {
    write_safetensors(path(), {}, {{"x", StoredType::f32, {100'000}, large.data()}});
  } catch (const Error& error) {
    code = error.code;
  }
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(code, Exit::io_error);
  EXPECT_EQ(bytes_of_file(path()), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Safetensors, AnUnwritablePlaceIsNamed) {
  try {
    write_safetensors(path("no/such/folder"), {}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::cannot_create);
    EXPECT_THAT(error.what(), HasSubstr("cannot be created: No such file or directory"));
  }
}

TEST_F(Safetensors, MutatedFilesAreReadOrRefusedButNeverBelieved) {
  write_small(path());
  const std::string good = bytes_of_file(path());
  std::mt19937 random(20261);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % bad.size();
      switch (random() % 5) {
        case 0:
          bad[at] = static_cast<char>(random());
          break;
        case 1:
          bad[at] = "{}[]\",:0129-"[random() % 12];
          break;
        case 2:
          bad.erase(at, 1 + random() % 8);
          break;
        case 3:
          bad.insert(at, bad.substr(random() % bad.size(), random() % 40));
          break;
        case 4:
          bad.resize(at);
          break;
      }
      if (bad.empty()) break;
    }
    try {
      const SafetensorsFile file(put(bad));
      std::size_t sum = 0;
      for (const StoredTensor& tensor : file.tensors())
        for (std::uint64_t byte = 0; byte < tensor.end - tensor.begin; ++byte)
          sum += static_cast<unsigned char>(file.data(tensor)[byte]);
      EXPECT_LE(sum, 255 * bad.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_data) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST_F(Safetensors, PythonReadsWhatWeWriteAndTheReverse) {
  const std::string python = peer_python_with("numpy, safetensors.numpy");
  if (python.empty())
    GTEST_SKIP() << "no interpreter here has the package 'safetensors' (make test-peers installs it)";
  const float x[] = {0.25f, -3};
  const std::int32_t n[] = {1, 2, 3};
  write_safetensors(path(), {{"who", "mindpipe"}},
                    {{"x", StoredType::f32, {1, 2}, x}, {"n", StoredType::i32, {3}, n}});
  std::ofstream(path("script.py"))
      << "import sys, numpy\nfrom safetensors import safe_open\nfrom safetensors.numpy import load_file, "
         "save_file\n"
         "t = load_file(sys.argv[1])\nassert safe_open(sys.argv[1], 'numpy').metadata() == {'who': "
         "'mindpipe'}\n"
         "assert t['x'].tolist() == [[0.25, -3.0]] and t['x'].dtype == numpy.float32\n"
         "assert t['n'].tolist() == [1, 2, 3] and t['n'].dtype == numpy.int32\n"
         "t['d'] = numpy.array(2.5)\nsave_file(t, sys.argv[2], {'who': 'python'})\n";
  ASSERT_EQ(std::system((python + " " + path("script.py") + " " + path() + " " + path("back")).c_str()), 0);
  const SafetensorsFile back(path("back"));
  EXPECT_EQ(back.metadata("who"), "python");
  EXPECT_THAT(back.floats("x"), ElementsAre(0.25f, -3));
  EXPECT_THAT(back.integers("n"), ElementsAre(1, 2, 3));
  EXPECT_THAT(back.floats("d"), ElementsAre(2.5f));
}

}  // namespace
}  // namespace mindpipe
