#include "corpus/byte_stream.h"

#include <isa-l/igzip_lib.h>
#include <zstd.h>

#include <array>
#include <vector>

#include "core/check.h"

namespace mindpipe {
namespace {

constexpr std::size_t piece = std::size_t{1} << 18, longest_line = std::size_t{16} << 20;

/// A file that is packed, piece by piece.
class PackedBytes : public ByteStream {
 public:
  explicit PackedBytes(const std::string& path) : file_(path), buffer_(piece) {}

 protected:
  /// Reads the next packed bytes; none at the end of the file.
  std::span<char> more() { return std::span(buffer_).first(file_.read(buffer_)); }
  [[noreturn]] void fail_to_unpack(const std::string& why) const {
    fail(Exit::bad_data, "{}: cannot be unpacked after {} bytes of text ({}); is it whole?", file_.path(),
         unpacked_, why);
  }
  std::int64_t unpacked_ = 0;

 private:
  InputFile file_;
  std::vector<char> buffer_;
};

/// A file of one gzip member or several in a row.
class GzipBytes final : public PackedBytes {
 public:
  explicit GzipBytes(const std::string& path) : PackedBytes(path), state_(std::make_unique<inflate_state>()) {
    begin_member();
  }
  std::size_t read(std::span<char> to) override {
    state_->next_out = reinterpret_cast<std::uint8_t*>(to.data());
    state_->avail_out = static_cast<std::uint32_t>(to.size());
    while (state_->avail_out > 0) {
      if (state_->avail_in == 0 && !refill()) break;
      if (state_->block_state == ISAL_BLOCK_FINISH) next_member();
      const int problem = isal_inflate(state_.get());
      if (problem != ISAL_DECOMP_OK) fail_to_unpack(fmt::format("gzip, error {}", problem));
    }
    const std::size_t done = to.size() - state_->avail_out;
    unpacked_ += static_cast<std::int64_t>(done);
    return done;
  }

 private:
  void begin_member() {
    isal_inflate_init(state_.get());
    state_->crc_flag = ISAL_GZIP;
  }
  void next_member() {
    auto* const in = state_->next_in;
    auto* const out = state_->next_out;
    const std::uint32_t avail_in = state_->avail_in, avail_out = state_->avail_out;
    begin_member();
    state_->next_in = in;
    state_->next_out = out;
    state_->avail_in = avail_in;
    state_->avail_out = avail_out;
  }
  bool refill() {
    const std::span<char> packed = more();
    if (packed.empty() && state_->block_state != ISAL_BLOCK_FINISH) fail_to_unpack("the file ends");
    state_->next_in = reinterpret_cast<std::uint8_t*>(packed.data());
    state_->avail_in = static_cast<std::uint32_t>(packed.size());
    return !packed.empty();
  }

  std::unique_ptr<inflate_state> state_;
};

/// A file of one zstd frame or several in a row.
class ZstdBytes final : public PackedBytes {
 public:
  explicit ZstdBytes(const std::string& path) : PackedBytes(path), state_(ZSTD_createDStream()) {
    MP_REQUIRE(state_ != nullptr, Exit::out_of_memory, "{}: there is no memory to unpack it", path);
  }
  std::size_t read(std::span<char> to) override {
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    while (out.pos < out.size) {
      if (in_.pos == in_.size && !may_have_more_ && !refill()) break;
      const std::size_t result = ZSTD_decompressStream(state_.get(), &out, &in_);
      if (ZSTD_isError(result) != 0) fail_to_unpack(std::string("zstd: ") + ZSTD_getErrorName(result));
      is_amid_frame_ = result != 0;
      may_have_more_ = is_amid_frame_ && out.pos == out.size;
    }
    unpacked_ += static_cast<std::int64_t>(out.pos);
    return out.pos;
  }

 private:
  bool refill() {
    const std::span<char> packed = more();
    if (packed.empty() && is_amid_frame_) fail_to_unpack("the file ends");
    in_ = {packed.data(), packed.size(), 0};
    return !packed.empty();
  }

  struct Free {
    void operator()(ZSTD_DStream* state) const { ZSTD_freeDStream(state); }
  };
  std::unique_ptr<ZSTD_DStream, Free> state_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool is_amid_frame_ = false;
  bool may_have_more_ = false;  ///< the library may hold bytes that `to` had no room for
};

}  // namespace

std::unique_ptr<ByteStream> open_bytes(const std::string& path) {
  InputFile file(path);
  require_no_hole(path, file.first_hole(), file.size());
  std::array<char, 4> first{};
  const std::size_t count = file.read(first);
  const std::string_view begin(first.data(), count);
  if (begin.starts_with("\x1f\x8b")) return std::make_unique<GzipBytes>(path);
  if (begin.starts_with("\x28\xb5\x2f\xfd")) return std::make_unique<ZstdBytes>(path);
  return std::make_unique<InputFile>(path);
}

LineReader lines_of_text(const std::string& path) { return {path, open_bytes(path), longest_line}; }

}  // namespace mindpipe
