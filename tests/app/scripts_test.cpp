#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace mindpipe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// What a command prints on stdout and stderr, and its exit code.
std::pair<std::string, int> run(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  return {text, WEXITSTATUS(pclose(pipe))};
}

const std::string scripts = std::string(MINDPIPE_SOURCE_DIR) + "/scripts/";

/// A small house in a directory of its own.
class House {
 public:
  House() : root_(fs::temp_directory_path() / ("mindpipe_house_" + std::to_string(getpid()))) {
    fs::create_directories(root_ / "kernels");
    write("src/core/check.h", "#pragma once\n");
    write("src/main.cpp", "#include \"app/main_verb.h\"\n#include \"core/check.h\"\n");
  }
  ~House() { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::pair<std::string, int> check(const std::string& script = "check_layers.sh") const {
    return run(scripts + script + " " + root_.string());
  }

 private:
  fs::path root_;
};

TEST(CheckLayers, PassesWhatKeepsTheOrder) {
  House house;
  house.write("src/comm/mpi.h", "#include <mpi.h>\n#include \"core/check.h\"\nMPI_Comm world;\n");
  house.write("src/layers/norm.cpp",
              "#include \"backend.h\"\n#include \"comm/mpi.h\"  // MPI_Comm stands in a comment\nauto text = "
              "\"MPI_Abort, YAML::Node\";\n");
  EXPECT_EQ(house.check(), std::pair(std::string(), 0));
}

TEST(CheckLayers, NamesEveryLineThatPointsUpwards) {
  House house;
  house.write("src/layers/norm.h", "#pragma once\n#include \"runtime/executor.h\"\n");
  house.write("kernels/cpu/norm.cpp", "#include \"layers/norm.h\"\n");
  house.write("src/core/a.h", "#include \"backend.h\"\n");
  const auto [text, code] = house.check();
  EXPECT_NE(code, 0);
  EXPECT_THAT(text, HasSubstr("src/layers/norm.h:2: layers must not include runtime (runtime/executor.h)"));
  EXPECT_THAT(text, HasSubstr("kernels/cpu/norm.cpp:1: kernels must not include layers (layers/norm.h)"));
  EXPECT_THAT(text, HasSubstr("src/core/a.h:1: core must not include kernels (backend.h)"));
}

TEST(CheckLayers, LetsNobodyIntoTheRoomsOfABackend) {
  House house;
  house.write("kernels/cpu/norm.cpp", "#include \"cpu/isa.h\"\n");
  house.write("src/plan/cost.cpp", "#include \"make_backend.h\"\n#include \"operations/rows.h\"\n");
  EXPECT_EQ(house.check(), std::pair(std::string(), 0));
  house.write(
      "src/runtime/worker.cpp",
      "#include \"cpu/isa.h\"\n#include \"cuda/queues.h\"\n#include \"emulated/emulated_backend.h\"\n");
  house.write("src/core/a.h", "#include \"operations/rows.h\"\n");
  const auto [text, code] = house.check();
  EXPECT_NE(code, 0);
  EXPECT_THAT(text,
              HasSubstr("src/runtime/worker.cpp:1: runtime must not reach into kernels/cpu (cpu/isa.h"));
  EXPECT_THAT(text, HasSubstr("src/runtime/worker.cpp:2: runtime must not reach into kernels/cuda"));
  EXPECT_THAT(text, HasSubstr("src/runtime/worker.cpp:3: runtime must not reach into kernels/emulated"));
  EXPECT_THAT(text, HasSubstr("src/core/a.h:1: core must not include kernels (operations/rows.h)"));
}

TEST(CheckLayers, KeepsLibrariesAtHome) {
  House house;
  house.write("src/layers/norm.cpp", "MPI_Comm world;\n");
  house.write("src/models/gpt.cpp", "#include <yaml-cpp/yaml.h>\nYAML::Node node;\n");
  house.write("kernels/cpu/a.cpp", "auto x = cudaMalloc(1);\n");
  house.write("src/attic/b.cpp", "\n");
  const auto [text, code] = house.check();
  EXPECT_NE(code, 0);
  EXPECT_THAT(text, HasSubstr("src/layers/norm.cpp:1: MPI_[A-Z] belongs in ^src/(comm|io)/"));
  EXPECT_THAT(text, HasSubstr("src/models/gpt.cpp:1: <yaml-cpp/yaml.h> belongs in ^src/config/"));
  EXPECT_THAT(text, HasSubstr("src/models/gpt.cpp:2: YAML:: belongs in ^src/config/"));
  EXPECT_THAT(text, HasSubstr("kernels/cpu/a.cpp:1: cuda[A-Z_] belongs in "));
  EXPECT_THAT(text, HasSubstr("src/attic is not a floor of the house"));
}

std::string lines(int count, const std::string& line) {
  std::string text;
  for (int i = 0; i < count; ++i) text += line;
  return text;
}

TEST(CheckStyle, PassesWhatKeepsTheRules) {
  House house;
  house.write(
      "src/config/kinds.h",
      "#define MINDPIPE_DEVICES(kind) kind(cpu, \"cpu\") kind(cuda, \"cuda\")\nbool b = x == \"cpu\";\n");
  house.write("src/core/a.cpp",
              "int a = 1, b = 2;\nstd::map<int, int> c = {{1, 2}, {3, 4}};\nstruct D : A, B {\n  D() : x(1), "
              "y(2) {}\n};\n"
              "void f(int x, int y) {\n  table[x] = make<int, 2>;\n  g(x, [&](int z) { a = z; });\n"
              "  for (int i = 0, j = 1; i < j; ++i, --j) a = 3;\n  // a = 1, b = 2;\n"
              "  const char* t = \"a = 1, b = 2;\";\n  auto& [k, l] = pair;\n"
              "  switch (x) {\n    case Shape::round:\n      return;\n    default:\n      return;\n  }\n}\n" +
                  lines(380, "\n"));
  house.write("src/core/table.cpp", "List rows() {  // table\n" + lines(100, "  row,\n") + "}\n");
  house.write("tests/core/b.cpp",
              "void f() {\n" + lines(58, "  a = 1;\n") + "}\nbool other = name == \"cudax\";\n");
  EXPECT_EQ(house.check("check_style.py"), std::pair(std::string(), 0));
}

TEST(CheckStyle, NamesEveryLineThatBreaksARule) {
  House house;
  house.write("src/config/kinds.h",
              "#define MINDPIPE_DEVICES(kind) kind(cpu, \"cpu\") kind(one, \"1f1b\")\n");
  house.write(
      "src/core/kinds.cpp",
      "bool a = kind == \"cpu\";\nbool b = \"1f1b\" != kind;\nbool c = std::string(kind) == \"cpu\";\n"
      "bool d = kind == std::string(\"1f1b\");\n");
  house.write(
      "src/core/commas.cpp",
      "void f() {\n  a = 1, b = 2;\n  if (x) a += 1, g(2);\n  g([&] { m.n = 1, h(2); });\n  g(1), h(2);\n"
      "  ++a, ++b;\n}\n");
  house.write("src/core/switch.cpp",
              "int f(ActionKind kind) {\n  switch (kind) {\n    case ActionKind::send:\n      return 1;\n"
              "    default:\n      return 2;\n  }\n}\n");
  house.write("src/core/using.cpp",
              "int f(ActionKind kind) {\n  using enum ActionKind;\n  switch (kind) {\n    case send:\n"
              "      return 1;\n    default:\n      return 2;\n  }\n}\n");
  house.write("src/core/task.cpp",
              "int f(TaskKind kind) {\n  switch (kind) {\n    case TaskKind::sum:\n      return 1;\n"
              "    default:\n      return 2;\n  }\n}\n");
  house.write("tests/core/long.cpp",
              "struct A {\n  void f(int x) {\n" + lines(59, "    a = 1;\n") + "  }\n};\n");
  house.write("kernels/cpu/long.cpp", lines(401, "\n"));
  house.write("scripts/bench/a.cpp", "void f() { a = 1, b = 2; }\n");
  house.write("scripts/wide.py", "x = 1\n" + std::string(141, '#') + "\n");
  house.write("src/core/wide.cpp", "const char* a = \"" + std::string(100, 'a') + "\";\n");
  house.write(
      "src/core/doc.h",
      "/// Of a rank.\nint a;\n/// The same, doubled.\nint b;\n  /// Its end.\nint c;\n/// As above.\n"
      "int d;\n/// What a rank has\n/// of the whole.\nint e;\n/// Assets.\nint f;\n"
      "int g;  ///< of a rank\nint h;  ///< or -1\nint i;  ///< rows of a rank, each\n"
      "        ///< of them padded\nint j;  ///< offset, ordinal, ask\nauto k = \"///< of\";\n");
  house.write("src/core/two.h", "class Two {\n  void one();\n  void other();\n};\n");
  house.write("src/core/two.cpp", "void Two::one() {\n}\n");
  house.write("src/core/three.cpp", "int a;\nvoid Two::other() {\n}\n");
  house.write("src/core/four.cpp", "class Two {\n  void other();\n};\nvoid Two::other() {\n}\n");
  const auto [text, code] = house.check("check_style.py");
  EXPECT_NE(code, 0);
  EXPECT_THAT(text,
              HasSubstr("src/core/two.cpp:1: functions of Two, whose others stand in src/core/three.cpp"));
  EXPECT_THAT(text, Not(HasSubstr("src/core/four.cpp")));
  for (int line : {1, 2, 3, 4})
    EXPECT_THAT(text,
                HasSubstr("src/core/kinds.cpp:" + std::to_string(line) + ": compares the name of a kind"));
  for (int line : {2, 3, 4, 5, 6})
    EXPECT_THAT(text,
                HasSubstr("src/core/commas.cpp:" + std::to_string(line) + ": a comma between statements"));
  for (const std::string place : {"switch.cpp:5", "using.cpp:6", "task.cpp:5"})
    EXPECT_THAT(text, HasSubstr("src/core/" + place + ": default: in a switch over ActionKind or TaskKind"));
  EXPECT_THAT(text, HasSubstr("tests/core/long.cpp:2: a function of 61 lines"));
  EXPECT_THAT(text, HasSubstr("kernels/cpu/long.cpp:401: a file of 401 lines"));
  EXPECT_THAT(text, HasSubstr("scripts/bench/a.cpp:1: a comma between statements"));
  EXPECT_THAT(text, HasSubstr("scripts/wide.py:2: a line of 141 columns"));
  EXPECT_THAT(text, HasSubstr("src/core/wide.cpp:1: a line of 119 columns"));
  for (int line : {1, 3, 5, 7, 14, 15})
    EXPECT_THAT(text, HasSubstr("src/core/doc.h:" + std::to_string(line) + ": a doc comment that does not"));
  for (int line : {9, 10, 12, 16, 17, 18, 19})
    EXPECT_THAT(text, Not(HasSubstr("src/core/doc.h:" + std::to_string(line) + ":")));
}

TEST(CheckStyle, CountsTheFunctionsOfAClass) {
  House house;
  const auto functions = [](int count, const std::string& before, const std::string& behind) {
    std::string text;
    for (int i = 0; i < count; ++i) text += before + std::to_string(i) + behind;
    return text;
  };
  const std::string inside = functions(10, "  int f", "() const { return g(x_{1}); }\n");
  for (const std::string name : {"Many", "Few"})
    house.write("src/core/" + name + ".h",
                "class " + name + " {\n public:\n" +
                    (name == "Few" ? "" : "  Many() : x_{2}, y_([] { h(); }) {}\n") + inside +
                    "  int one();\n  struct Part {\n    int p() { return 1; }\n  };\n  int x_{0};\n};\n");
  for (const std::string name : {"Many", "Few"})
    house.write("src/core/" + name + ".cpp",
                functions(10, "int " + name + "::g", "() {\n  if (a) b();\n}\n"));
  const auto [text, code] = house.check("check_style.py");
  EXPECT_NE(code, 0);
  EXPECT_EQ(text, "src/core/Many.h:1: Many has 21 functions with a body (at most 20)\n");
}

TEST(CheckStyle, FindsATypeThatTwoHeadersDefine) {
  House house;
  house.write("src/core/twin.h", "namespace a {\nstruct Twin {\n  int x;\n};\n}\n");
  house.write("src/io/twin.h", "namespace a {\nclass Twin final : public Two {\n};\nstruct Two;\n}\n");
  house.write("src/io/other.h", "namespace b {\nstruct Twin {\n};\n}\nnamespace {\nstruct Two {\n};\n}\n");
  const auto [text, code] = house.check("check_style.py");
  EXPECT_NE(code, 0);
  EXPECT_THAT(text, HasSubstr("src/io/twin.h:2: another Twin is defined in src/core/twin.h"));
  EXPECT_THAT(text, Not(HasSubstr("src/io/other.h")));
}

TEST(CheckHeaders, FindsAHeaderThatLeansOnOthers) {
  EXPECT_EQ(run(scripts + "check_headers.sh src/core/clock.h").second, 0);
  const fs::path lame = fs::temp_directory_path() / ("mindpipe_lame_" + std::to_string(getpid()) + ".h");
  std::ofstream(lame) << "#pragma once\nstd::string name();\n";
  const auto [text, code] = run(scripts + "check_headers.sh " + lame.string());
  fs::remove(lame);
  EXPECT_NE(code, 0);
  EXPECT_THAT(text, HasSubstr("does not compile alone (include what it uses)"));
}

TEST(Make, InstallsPackagesOnlyWhenSetupDemoOrTestIsAskedFor) {
  const auto plan_of = [](const std::string& goal) {
    return run("make --no-print-directory -n -C " + std::string(MINDPIPE_SOURCE_DIR) + " " + goal).first;
  };
  for (const char* goal : {"build", "install", "configure", "cuda", "bench"})
    EXPECT_THAT(plan_of(goal), testing::Not(testing::ContainsRegex("setup.sh( &&|$|\n| .. true)"))) << goal;
  for (const char* goal : {"setup", "demo", "test"})
    EXPECT_THAT(plan_of(goal), testing::ContainsRegex("setup.sh( &&|$|\n| .. true)")) << goal;
  const auto [text, code] = run("PATH=/nonexistent /bin/bash " + scripts + "setup.sh");
  EXPECT_EQ(code, 1);
  EXPECT_THAT(text, HasSubstr("setup.sh: this is no Debian; load or install a C++20 compiler"));
}

TEST(MakeHelp, ListsOnlyWhatIsThere) {
  const auto [text, code] = run("make --no-print-directory -C " + std::string(MINDPIPE_SOURCE_DIR));
  EXPECT_EQ(code, 0);
  EXPECT_THAT(text, HasSubstr("make test"));
  EXPECT_THAT(text, HasSubstr("make demo"));
}

}  // namespace
}  // namespace mindpipe
