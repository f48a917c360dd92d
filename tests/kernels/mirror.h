#pragma once
#include "kernels/operand.h"

/// Operands that exist twice, for the CPU and for the GPU, so that one line runs an operation on both.
namespace mindpipe::testing {

/// A CPU backend beside another one with its own memory.
struct Pairing {
  Cpu cpu{2};
  Memory memory{Memory::Kind::device};
  std::unique_ptr<Backend> gpu;
};

/// A tensor on the host and its copy in the other memory, `skew` elements away from an aligned address,
/// between guards.
class Mirror {
 public:
  Mirror(Pairing& pairing, Operand operand, std::size_t skew = 0)
      : pairing_(&pairing), host_(std::move(operand)), skew_(skew) {
    raw_.resize(guard + skew_ * bytes_of(host_.dtype()) + host_.tensor().bytes() + guard);
    for (std::size_t i = 0; i < raw_.size(); ++i)
      raw_[i] =
          std::byte{i % 2 == 0 ? std::uint8_t{0xbf} : std::uint8_t{0xff}};  // a NaN that even "+= 0" changes
    std::memcpy(raw_.data() + offset(), host_.tensor().data, host_.tensor().bytes());
    block_ = Arena(pairing.memory, MemoryClass::workspace, raw_.size());
    whole_ = block_.take({static_cast<std::int64_t>(raw_.size())}, DType::u8);
    pairing.gpu->upload(raw_.data(), whole_);
  }
  Tensor host() const { return host_; }
  Tensor device() const {
    Tensor t = host_.tensor();
    t.data = static_cast<std::byte*>(whole_.data) + offset();
    return t;
  }
  std::int64_t count() const { return host_.count(); }

  /// What the GPU has made of it.
  Operand fetched() const {
    std::vector<std::byte> now(raw_.size());
    pairing_->gpu->download(whole_, now.data());
    const std::size_t bytes = host_.tensor().bytes();
    for (std::size_t i = 0; i < now.size(); ++i)
      if (i < offset() || i >= offset() + bytes) {
        EXPECT_EQ(now[i], raw_[i]) << "byte " << static_cast<std::int64_t>(i - offset())
                                   << " beside a tensor of " << bytes;
      }
    Operand result(host_.tensor().shape, host_.dtype());
    std::memcpy(result.tensor().data, now.data() + offset(), bytes);
    return result;
  }
  const Operand& on_host() const { return host_; }

 private:
  static constexpr std::size_t guard = 512;
  std::size_t offset() const { return guard + skew_ * bytes_of(host_.dtype()); }

  Pairing* pairing_;
  Operand host_;
  std::size_t skew_;
  std::vector<std::byte> raw_;
  Arena block_;
  Tensor whole_;
};

/// How much both may differ: a few units in the last place of the dtype, on numbers around 1.
inline double difference_allowed(DType dtype) {
  return dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 4e-6 : dtype == DType::bf16 ? 8e-3 : 0;
}

inline void expect_agreement(const Mirror& mirror, double slack = 1) {
  const Operand got = mirror.fetched();
  const Operand& want = mirror.on_host();
  const double tolerance = slack * difference_allowed(want.dtype());
  for (std::int64_t i = 0; i < want.count(); ++i) {
    if (std::isnan(want[i]) && std::isnan(got[i])) continue;
    ASSERT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i])))
        << "element " << i << " of " << to_string(want.tensor().shape);
  }
}

/// run(backend, of) on both, where of(mirror) is the tensor of that side; then both have the same in every
/// output.
template <class Run>
void on_both(Pairing& pairing, const std::vector<const Mirror*>& outputs, double slack, const Run& run) {
  run(*pairing.cpu.backend, [](const Mirror& m) { return m.host(); });
  run(*pairing.gpu, [](const Mirror& m) { return m.device(); });
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    SCOPED_TRACE("output " + std::to_string(i));
    expect_agreement(*outputs[i], slack);
  }
}

}  // namespace mindpipe::testing
