#include "runtime/trace_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "core/check.h"
#include "runtime/made_trace.h"
#include "runtime/stored_trace.h"
#include "trace/partial_report.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TraceReader : public testing::Test {
 protected:
  ~TraceReader() override { std::filesystem::remove(path_); }

  std::string bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  /// The complaint about the file as it is, which is one sentence; empty if there is none. What is broken is
  /// refused, too, where ranks may be missing.
  std::string complaint(Exit expected = Exit::bad_data, bool partial = true) const {
    try {
      if (partial) read_partial_trace(path_);
      else read_step_trace(path_);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, expected) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(path_));
      return error.what();
    }
  }

  /// Stores a trace without some tensors, and with other metadata, all checksums as they should be.
  void store(const StepTrace& trace, const std::set<std::string>& without,
             const std::function<void(std::map<std::string, std::string>&)>& change = {}) const {
    std::vector<TraceTensor> tensors = trace_form::program_tensors(trace);
    for (int rank = 0; rank < std::ssize(trace.ranks); ++rank)
      for (TraceTensor& tensor : trace_form::rank_tensors(trace.ranks[rank], rank))
        if (!without.contains(tensor.name)) tensors.push_back(std::move(tensor));
    std::map<std::string, std::uint32_t> crcs;
    std::vector<TensorToStore> stored;
    for (const TraceTensor& tensor : tensors) {
      crcs[tensor.name] = tensor.crc();
      stored.push_back(tensor.stored());
    }
    auto metadata = trace_form::metadata(trace, crcs);
    if (change) change(metadata);
    metadata["checksum"] = trace_form::checksum(metadata);
    write_safetensors(path_, metadata, stored);
  }

  std::string path_ = testing::TempDir() + "mindpipe_trace_" + std::to_string(::getpid()) + ".safetensors";
};

TEST_F(TraceReader, GivesBackWhatWasStored) {
  const StepTrace trace = trace_of_numbers();
  store_step_trace(trace, path_);
  const StepTrace read = read_step_trace(path_);
  EXPECT_EQ(read.grid, trace.grid);
  EXPECT_EQ(read.program.ranks, trace.program.ranks);
  EXPECT_EQ(read.paper, trace.paper);
  EXPECT_EQ(read.steps, trace.steps);
  EXPECT_EQ(read.hosts, trace.hosts);
  EXPECT_EQ(read.ranks_per_node, trace.ranks_per_node);
  EXPECT_EQ(read.operations, trace.operations);
  EXPECT_EQ(read.calls, trace.calls);
  EXPECT_EQ(read.clock_bound, trace.clock_bound);
  EXPECT_EQ(read.configuration, trace.configuration);
  EXPECT_EQ(read.injected, trace.injected);
  ASSERT_EQ(read.ranks.size(), trace.ranks.size());
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    EXPECT_EQ(read.ranks[rank].sums, trace.ranks[rank].sums);
    EXPECT_EQ(read.ranks[rank].host, trace.ranks[rank].host);
    EXPECT_EQ(read.ranks[rank].pings, trace.ranks[rank].pings);
    for (std::size_t step = 0; step < trace.steps.size(); ++step)
      for (std::size_t index = 0; index < trace.ranks[rank].steps[step].size(); ++index) {
        EXPECT_EQ(read.ranks[rank].steps[step][index].start, trace.ranks[rank].steps[step][index].start);
        EXPECT_EQ(read.ranks[rank].steps[step][index].end, trace.ranks[rank].steps[step][index].end);
      }
  }
}

TEST_F(TraceReader, RefusesAFileThatIsCutAnywhere) {
  store_step_trace(trace_of_numbers(), path_);
  const std::string whole = bytes();
  std::mt19937_64 random(3);
  for (int cut = 0; cut < 50; ++cut) {
    const std::size_t kept = random() % whole.size();
    put(whole.substr(0, kept));
    EXPECT_NE(complaint(), "") << kept;
  }
}

TEST_F(TraceReader, RefusesAFileOfWhichOneBitHasChanged) {
  store_step_trace(trace_of_numbers(), path_);
  const std::string whole = bytes();
  std::mt19937_64 random(4);
  const auto flipped = [&](std::size_t at, int bit) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
    put(changed);
    EXPECT_NE(complaint(), "") << "byte " << at << " bit " << bit;
  };
  for (int flip = 0; flip < 200; ++flip) flipped(random() % whole.size(), static_cast<int>(random() % 8));
  for (int flip = 0; flip < 200; ++flip)  // and in what stands before the numbers
    flipped(random() % whole.find("times.3"), static_cast<int>(random() % 8));
}

TEST_F(TraceReader, SaysWhichVersionItReads) {
  const StepTrace trace = trace_of_numbers();
  store(trace, {}, [](auto& metadata) { metadata["version"] = "1"; });
  EXPECT_THAT(complaint(), HasSubstr("is a trace of version 1, and this program reads version 3"));
  write_safetensors(path_, {{"format", "pt"}}, {});
  EXPECT_THAT(complaint(), HasSubstr("is not the trace of a training"));
}

TEST_F(TraceReader, ReadsTheOthersWhereRanksAreMissing) {
  StepTrace trace = trace_of_numbers();
  store(trace, {"times.2", "sums.2", "host.2", "pings.2"});
  EXPECT_THAT(complaint(Exit::bad_data, false), HasSubstr("the times of rank 2 are missing"));
  EXPECT_THAT(missing_ranks(read_partial_trace(path_)), ElementsAre(2));
  store(trace, {"times.1"});  // whatever else there is of it
  EXPECT_THAT(missing_ranks(read_partial_trace(path_)), ElementsAre(1));
  store_step_trace(trace, path_);
  EXPECT_THAT(missing_ranks(read_partial_trace(path_)), ElementsAre());
  std::string whole = bytes();
  const SafetensorsFile file(path_);
  const std::size_t begins = whole.size() - file.tensors().back().end;
  for (const char* name : {"times.3", "times.0"}) {  // which are never written
    const StoredTensor& tensor = file.tensor(name);
    whole.replace(begins + tensor.begin, tensor.end - tensor.begin, tensor.end - tensor.begin, '\0');
  }
  put(whole);
  const StepTrace partial = read_partial_trace(path_);
  EXPECT_THAT(missing_ranks(partial), ElementsAre(0, 3));
  EXPECT_EQ(partial.ranks[1].sums, trace.ranks[1].sums);
  EXPECT_THAT(complaint(Exit::bad_data, false), HasSubstr("the times of rank 0 are missing"));
}

TEST_F(TraceReader, RefusesATraceWhoseNumbersCannotBe) {
  const StepTrace trace = trace_of_numbers();
  store(trace, {}, [](auto& metadata) { metadata["grid"] = "1 2 1 1"; });
  EXPECT_NE(complaint(), "");
  store(trace, {}, [](auto& metadata) {
    metadata["grid"] = "1 2 1 1";
    metadata["hosts"] = "a b";
  });
  EXPECT_THAT(complaint(), HasSubstr("it has tensors of no rank"));
  store(trace, {"times.0", "times.1", "times.2", "times.3"});
  EXPECT_THAT(complaint(), HasSubstr("the times of all ranks are missing"));
  store(trace, {}, [](auto& metadata) { metadata["part_bytes"] = "0"; });
  EXPECT_THAT(complaint(), HasSubstr("parts of its messages have no length"));
  for (const char* calls : {"", "2", "2 1", "0 1 1", "1 1 3000000000"}) {
    store(trace, {}, [&](auto& metadata) { metadata["messages_of_parts"] = calls; });
    EXPECT_THAT(complaint(), HasSubstr("parts of its sums are of no messages")) << calls;
  }
  for (const char* ranks : {"", "-1", "1 2", "3000000000"}) {
    store(trace, {}, [&](auto& metadata) { metadata["ranks_per_node"] = ranks; });
    EXPECT_THAT(complaint(), HasSubstr("its nodes have no number of ranks")) << ranks;
  }
  store(trace, {}, [](auto& metadata) { metadata["steps"] = ""; });
  EXPECT_THAT(complaint(), HasSubstr("it has no steps"));
}

TEST_F(TraceReader, SaysThatThereIsNoFile) { EXPECT_NE(complaint(Exit::input_missing), ""); }

}  // namespace
}  // namespace mindpipe
