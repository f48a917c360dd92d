// ids_of_texts TOKENIZER [--plain] [--decode | --time [THREADS]]
// Reads texts from stdin, each behind its length as u32, and writes their ids, each list behind its count.
// With --decode each list is followed by the bytes that it decodes to, behind their length. With --time it
// prints how many bytes a second are encoded, instead. With --plain the text of special tokens is letters.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <thread>

#include "core/check.h"
#include "tokenize/tokenizer.h"

namespace {

using mindpipe::Exit;
using mindpipe::SpecialText;
using mindpipe::TokenId;

std::vector<std::string_view> texts_of(const std::string& all) {
  std::vector<std::string_view> texts;
  for (std::size_t at = 0; at + 4 <= all.size();) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, all.data() + at, sizeof bytes);
    texts.push_back(std::string_view(all).substr(at + 4, bytes));
    at += 4 + bytes;
  }
  return texts;
}

void write(const void* data, std::size_t count, std::size_t bytes_each) {
  const auto number = static_cast<std::uint32_t>(count);
  MP_REQUIRE(std::fwrite(&number, 1, sizeof number, stdout) == sizeof number &&
                 std::fwrite(data, bytes_each, count, stdout) == count,
             Exit::io_error, "stdout does not take all ids");
}

double bytes_a_second(const mindpipe::Tokenizer& tokenizer, const std::vector<std::string_view>& texts,
                      SpecialText special, std::size_t threads) {
  std::size_t bytes = 0;
  for (const std::string_view text : texts) bytes += text.size();
  const auto encode_share = [&](std::size_t thread) {
    const auto encoder = tokenizer.encoder();
    std::vector<TokenId> ids;
    for (std::size_t i = thread; i < texts.size(); i += threads) {
      ids.clear();
      encoder->append(texts[i], special, ids);
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> others;
  for (std::size_t thread = 1; thread < threads; ++thread) others.emplace_back(encode_share, thread);
  encode_share(0);
  for (std::thread& other : others) other.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(bytes) / seconds.count();
}

void run(const std::vector<std::string>& words) {
  MP_REQUIRE(!words.empty(), Exit::usage, "ids_of_texts TOKENIZER [--plain] [--decode | --time [THREADS]]");
  const auto has = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const auto tokenizer = mindpipe::load_tokenizer(words[0]);
  const SpecialText special = has("--plain") ? SpecialText::plain : SpecialText::tokens;
  const std::string all{std::istreambuf_iterator<char>(std::cin), {}};
  const auto texts = texts_of(all);
  if (has("--time")) {
    const std::size_t threads = words.back() == "--time" ? 1 : std::stoul(words.back());
    std::printf("%.0f\n", bytes_a_second(*tokenizer, texts, special, threads));
    return;
  }
  const auto encoder = tokenizer->encoder();
  for (const std::string_view text : texts) {
    const auto ids = encoder->encode(text, special);
    write(ids.data(), ids.size(), sizeof(TokenId));
    if (!has("--decode")) continue;
    const std::string decoded = tokenizer->decode(ids);
    write(decoded.data(), decoded.size(), 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, argv + argc});
    return 0;
  } catch (const mindpipe::Error& error) {
    std::cerr << error.what() << '\n';
    return static_cast<int>(error.code);
  }
}
