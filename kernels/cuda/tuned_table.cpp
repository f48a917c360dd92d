#include "cuda/tuned_table.h"

#include <sstream>

namespace mindpipe::cuda {
namespace {

constexpr const char* first_line = "mindpipe-products 1";
constexpr const char* advice = "write it anew with mindpipe-train doctor --tune";

[[noreturn]] void refuse(const std::string& file, int line, const std::string& problem) {
  fail(Exit::bad_configuration, "device.kernels: {}, line {}: {}; {}", file, line, problem, advice);
}

std::string processors_text(int processors) {
  return processors == 0 ? "all multiprocessors" : fmt::format("{} multiprocessors", processors);
}

/// Eight words of sixteen hexadecimal digits.
bool read_words(std::istringstream& from, AlgorithmWords& words) {
  std::string word;
  for (std::uint64_t& to : words) {
    if (!(from >> word) || word.size() != 16 ||
        word.find_first_not_of("0123456789abcdef") != std::string::npos)
      return false;
    to = std::stoull(word, nullptr, 16);
  }
  return !(from >> word);
}

void read_algorithm(const std::string& text, const std::string& file, int line, TunedTable& table) {
  const std::size_t colon = text.find(':');
  const auto key = colon == std::string::npos ? std::nullopt : product_key_of(text.substr(0, colon));
  if (!key) refuse(file, line, fmt::format("'{}' names no product", text.substr(0, colon)));
  std::istringstream words(text.substr(colon + 1));
  AlgorithmWords algorithm{};
  if (!read_words(words, algorithm))
    refuse(file, line, "an algorithm is eight words of sixteen hexadecimal digits");
  if (!table.algorithms.emplace(*key, algorithm).second)
    refuse(file, line, fmt::format("'{}' stands there twice", to_string(*key)));
}

/// What follows `name` and a space, or a complaint.
std::string value_of(const std::string& text, const std::string& name, const std::string& file, int line) {
  if (!text.starts_with(name + " ") || text.size() == name.size() + 1)
    refuse(file, line, fmt::format("'{} ...' is expected, not '{}'", name, text));
  return text.substr(name.size() + 1);
}

}  // namespace

const AlgorithmWords* TunedTable::find(const ProductKey& key) const {
  const auto at = algorithms.find(key);
  return at == algorithms.end() ? nullptr : &at->second;
}

std::string to_string(const TunedTable& table) {
  std::string text = fmt::format("{}\ngpu {}\nlibrary {}\n", first_line, table.gpu, table.library);
  for (const auto& [key, words] : table.algorithms) {
    text += to_string(key) + " :";
    for (std::uint64_t word : words) text += fmt::format(" {:016x}", word);
    text += '\n';
  }
  return text;
}

TunedTable read_tuned_table(const std::string& text, const std::string& file) {
  std::istringstream lines(text);
  TunedTable table;
  std::string line;
  for (int at = 1; std::getline(lines, line); ++at) {
    if (at == 1) {
      if (line != first_line)
        refuse(file, at, fmt::format("'{}' is expected, not '{}'", first_line, line.substr(0, 40)));
    } else if (at == 2) {
      table.gpu = value_of(line, "gpu", file, at);
    } else if (at == 3) {
      const std::string version = value_of(line, "library", file, at);
      if (version.size() > 12 || version.find_first_not_of("0123456789") != std::string::npos)
        refuse(file, at, fmt::format("'{}' is no version", version));
      table.library = std::stoll(version);
    } else if (!line.empty() && line[0] != '#') {
      read_algorithm(line, file, at, table);
    }
  }
  if (table.library == 0) refuse(file, 1, "the table is cut off");
  return table;
}

void require_fit(const TunedTable& table, const std::string& file, const std::string& gpu,
                 std::int64_t library, int processors) {
  MP_REQUIRE(table.gpu == gpu && table.library == library, Exit::bad_configuration,
             "device.kernels: {} was made on an {} with cuBLASLt {}, this is an {} with {}; algorithms are "
             "not exchanged between them: {}",
             file, table.gpu, table.library, gpu, library, advice);
  for (const auto& [key, words] : table.algorithms)
    MP_REQUIRE(key.processors == processors, Exit::bad_configuration,
               "device.kernels: '{}' of {} is computed on {}, and here products are on {} "
               "(device.reserved_multiprocessors): {}",
               to_string(key), file, processors_text(key.processors), processors_text(processors), advice);
}

}  // namespace mindpipe::cuda
