#pragma once
#include <memory>
#include <string>
#include <utility>

#include "backend.h"

namespace mindpipe {

/// A device below, which does all that is asked for; tests derive from it what they change or keep.
class BackendOver : public ImmediateBackend {
 public:
  explicit BackendOver(std::unique_ptr<Backend> device) : device_(std::move(device)) {}

  std::string description() const override { return device_->description(); }
  Memory& memory() override { return device_->memory(); }
  bool wants_many_rows() const override { return device_->wants_many_rows(); }
  void reserve(const Workspace& workspace) override { device_->reserve(workspace); }
#define MINDPIPE_BELOW(name, Operands) \
  void name(const Operands& operands) override { device_->name(operands); }
  MINDPIPE_OPERATIONS(MINDPIPE_BELOW)
#undef MINDPIPE_BELOW
  std::int64_t count_not_finite(const Tensor& x) override { return device_->count_not_finite(x); }
  std::uint64_t hash(const Tensor& x) override { return device_->hash(x); }
  void copy(const Tensor& from, const Tensor& to) override { device_->copy(from, to); }
  void upload(const void* host, const Tensor& to) override { device_->upload(host, to); }
  void download(const Tensor& from, void* host) override { device_->download(from, host); }
  void synchronize() override { device_->synchronize(); }

 protected:
  std::unique_ptr<Backend> device_;
};

}  // namespace mindpipe
