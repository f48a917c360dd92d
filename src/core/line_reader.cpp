#include "core/line_reader.h"

#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/text.h"

namespace mindpipe {

namespace {
constexpr std::size_t piece = std::size_t{1} << 18;
}

LineReader::LineReader(std::string path, std::unique_ptr<ByteStream> bytes, std::size_t longest)
    : path_(std::move(path)), bytes_(std::move(bytes)), longest_(longest), buffer_(piece, '\0') {}

LineReader::LineReader(const std::string& path, std::size_t longest)
    : LineReader(path, std::make_unique<InputFile>(path), longest) {}

bool LineReader::next(std::string& line) {
  line.clear();
  ++number_;
  for (;;) {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = bytes_->read(buffer_);
      if (end_ == 0) {
        was_ended_ = false;
        return !line.empty();
      }
    }
    const char* const from = buffer_.data() + begin_;
    const auto* const found = static_cast<const char*>(std::memchr(from, '\n', end_ - begin_));
    const std::size_t count = found != nullptr ? static_cast<std::size_t>(found - from) : end_ - begin_;
    line.append(from, count);
    MP_REQUIRE(line.size() <= longest_, Exit::bad_data,
               "{}: line {} is longer than {}, as no line of such a file is; cut it, or name another", path_,
               number_, human_bytes(static_cast<double>(longest_)));
    begin_ += count + (found != nullptr ? 1 : 0);
    if (found == nullptr) continue;
    was_ended_ = true;
    return true;
  }
}

}  // namespace mindpipe
