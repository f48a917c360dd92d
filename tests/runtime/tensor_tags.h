#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "backend.h"
#include "comm/communicator.h"
#include "layers/unit.h"
#include "runtime/operand_tensors.h"

namespace mindpipe {

/// What a tensor rank holds of numbers that ranks share: zeros, all of them, all columns of its own rows, its
/// own columns, or a part of a sum over ranks.
enum class Tag : std::uint8_t { nothing, zero, whole, rows, own, part };
inline const char* name_of(Tag tag) {
  constexpr const char* names[] = {"nothing", "zeros", "whole", "own rows", "own columns", "a part of a sum"};
  return names[static_cast<int>(tag)];
}

/// Tags of bytes in memory.
class TaggedMemory {
 public:
  void set(const Tensor& t, Tag tag) {
    if (t.bytes() == 0 || !t) return;
    const auto [begin, end] = bounds(t);
    split_at(begin);
    split_at(end);
    pieces_.erase(pieces_.lower_bound(begin), pieces_.lower_bound(end));
    pieces_[begin] = {end, tag};
  }
  /// What is known of all bytes together: the strictest of their tags; `nothing` where some have none.
  Tag of(const Tensor& t) const {
    const auto [begin, end] = bounds(t);
    const std::byte* known = begin;
    Tag tag = Tag::zero;
    auto at = pieces_.upper_bound(begin);
    if (at != pieces_.begin()) --at;
    for (; at != pieces_.end() && at->first < end; ++at) {
      if (at->second.end <= begin) continue;
      if (at->first > known || at->second.tag == Tag::nothing) return Tag::nothing;
      tag = std::max(tag, at->second.tag);
      known = at->second.end;
    }
    return known < end ? Tag::nothing : tag;
  }

 private:
  struct Piece {
    const std::byte* end;
    Tag tag;
  };
  static std::pair<const std::byte*, const std::byte*> bounds(const Tensor& t) {
    return {t.as<const std::byte>(), t.as<const std::byte>() + t.bytes()};
  }
  void split_at(const std::byte* place) {
    auto at = pieces_.lower_bound(place);
    if (at == pieces_.begin()) return;
    --at;
    if (at->second.end <= place) return;
    pieces_[place] = at->second;
    at->second.end = place;
  }
  std::map<const std::byte*, Piece> pieces_;
};

/// A backend that computes nothing, and follows what is split, summed and whole: who reads a part of a sum,
/// or adds it to what is no part of it, is at fault.
class TagBackend final : public ImmediateBackend {
 public:
  explicit TagBackend(Memory& memory) : memory_(memory) {}
  std::string description() const override { return "tags"; }
  Memory& memory() override { return memory_; }

  void know(const Tensor& t, Tag tag) { tags_.set(t, tag); }
  /// A weight, which is cut by what it reads (`in`) or by what it makes (`out`), or is whole.
  void know_weight(const Tensor& t, Split split) {
    splits_[t.data] = split;
    tags_.set(t, split == Split::none ? Tag::whole : Tag::own);
  }
  Tag tag_of(const Tensor& t) const { return tags_.of(t); }
  const std::vector<std::string>& faults() const { return faults_; }
  void fault(const std::string& text) { faults_.push_back(text); }

  /// An exchange joins what the ranks hold.
  void join(const AskedExchange& asked) {
    const std::string operation = asked.operation;
    const Tag from = tags_.of(asked.from);
    const bool gathers = operation == "gather";
    // A rank's own rows may be cut out of what every rank has computed alike.
    const bool fits =
        gathers ? from == Tag::rows || from == Tag::whole : from == Tag::part || from == Tag::zero;
    if (!fits)
      fault(fmt::format("{} of {} is of what is {}", operation, to_string(asked.from.shape), name_of(from)));
    tags_.set(asked.to, operation == "sum_scatter" ? Tag::rows : Tag::whole);
  }

#define MINDPIPE_TAGGED(name, Operands) \
  void name(const Operands& operands) override { see(#name, operands); }
  MINDPIPE_OPERATIONS(MINDPIPE_TAGGED)
#undef MINDPIPE_TAGGED
  std::int64_t count_not_finite(const Tensor&) override { return 0; }
  std::uint64_t hash(const Tensor&) override { return 0; }
  void copy(const Tensor& from, const Tensor& to) override { tags_.set(to, tags_.of(from)); }
  void upload(const void* host, const Tensor& to) override {
    std::memcpy(to.data, host, to.bytes());
    tags_.set(to, Tag::whole);
  }
  void download(const Tensor& from, void* host) override { std::memcpy(host, from.data, from.bytes()); }
  void synchronize() override {}

 private:
  Tag read(const char* operation, const Tensor& t) {
    if (!t || t.bytes() == 0) return Tag::zero;
    const Tag tag = tags_.of(t);
    if (tag == Tag::nothing || tag == Tag::part)
      fault(std::string(operation) + " reads " +
            (tag == Tag::part ? name_of(tag) : "what nobody has written"));
    return tag;
  }
  /// What comes of tensors that meet element by element.
  Tag meet(const char* operation, const std::vector<Tensor>& inputs) {
    Tag all = Tag::zero;
    for (const Tensor& t : inputs) {
      const Tag tag = read(operation, t);
      if ((tag == Tag::rows && all == Tag::own) || (tag == Tag::own && all == Tag::rows))
        fault(std::string(operation) + " joins own rows and own columns");
      all = std::max(all, tag);
    }
    return all == Tag::zero ? Tag::whole : all;
  }
  /// Operations that are linear in all that they read may add up parts of sums.
  void add_up(const char* operation, const std::vector<Tensor>& inputs, const Tensor& to) {
    Tag all = Tag::zero;
    for (const Tensor& t : inputs) {
      const Tag tag = tags_.of(t);
      if (tag == Tag::zero) continue;
      if (tag == Tag::nothing) fault(std::string(operation) + " reads what nobody has written");
      if (all != Tag::zero && (tag == Tag::part) != (all == Tag::part))
        fault(std::string(operation) + " adds a part of a sum to what is " +
              name_of(tag == Tag::part ? all : tag));
      all = std::max(all, tag);
    }
    tags_.set(to, all);
  }
  Split split_of(const Tensor& weight) const {
    const auto found = splits_.find(weight.data);
    return found == splits_.end() ? Split::none : found->second;
  }
  /// A product with a weight that is cut along what is summed (`sums`), or along what comes out (`cuts`).
  Tag product(const char* operation, const Tensor& x, const Tensor& w, Split cuts, Split sums) {
    const Tag tag = read(operation, x);
    const Split split = split_of(w);
    if (split == cuts) {
      if (tag != Tag::whole) fault(std::string(operation) + " takes what is " + name_of(tag) + " for whole");
      return Tag::own;
    }
    if (split != sums) return tag;
    if (tag != Tag::own)
      fault(std::string(operation) + " takes what is " + name_of(tag) + " for own columns");
    return Tag::part;
  }

  // -- what each operation says it takes
  void see(const char* name, const LinearOperands& o) {
    const Tag y = product(name, o.x, o.w, Split::out, Split::in);
    if (y == Tag::part && o.bias) fault("linear adds a bias to a part of a sum");
    if (o.bias) read(name, o.bias);
    tags_.set(o.before, y);
    tags_.set(o.y, y);
  }
  void see(const char* name, const LinearBackwardInputOperands& o) {
    if (o.activation != Activation::none) read(name, o.before);
    tags_.set(o.dx, product(name, o.dy, o.w, Split::in, Split::out));
  }
  void see(const char* name, const EmbeddingOperands& o) {
    const Tag y = meet(name, {o.tokens, o.table});
    tags_.set(o.y, y == Tag::own ? Tag::part : y);
  }
  void of_logits(const char* name, const Tensor& logits, const std::vector<Tensor>& whole,
                 const std::vector<Tensor>& made) {
    const Tag tag = read(name, logits);
    for (const Tensor& t : whole)
      if (const Tag other = read(name, t); other == Tag::own) fault(std::string(name) + " reads own columns");
    for (const Tensor& t : made) tags_.set(t, tag == Tag::own ? Tag::part : tag);
  }
  void see(const char* name, const RowMaximumOperands& o) { of_logits(name, o.logits, {}, {o.maximum}); }
  void see(const char* name, const SoftmaxSumsOperands& o) {
    of_logits(name, o.logits, {o.targets, o.maximum}, {o.sums, o.of_target, o.total});
  }
  void see(const char* name, const TargetRankOperands& o) {
    of_logits(name, o.logits, {o.targets, o.of_target}, {o.ranks});
  }
  void see(const char* name, const AddOperands& o) { add_up(name, {o.a, o.b}, o.sum); }
  void see(const char* name, const AddTreeOperands& o) { add_up(name, o.terms, o.sum); }
  void see(const char* name, const AccumulateOperands& o) { add_up(name, {o.part, o.total}, o.total); }
  void see(const char* name, const ConvertOperands& o) { add_up(name, {o.x}, o.y); }
  void see(const char* name, const ScaleOperands& o) { add_up(name, {o.x}, o.y); }
  void see(const char* name, const PixelNeighboursBackwardOperands& o) { add_up(name, {o.dy}, o.dx); }
  /// A weight that is turned is cut as it was.
  void see(const char* name, const TransposeOperands& o) {
    splits_[o.y.data] = split_of(o.x);
    add_up(name, o.add ? std::vector{o.x, o.y} : std::vector{o.x}, o.y);
  }
  void see(const char*, const MaximumOperands& o) { tags_.set(o.largest, tags_.of(o.a)); }
  void see(const char*, const FillOperands& o) { tags_.set(o.x, Tag::zero); }
  void see(const char* name, const RotaryOperands& o) { read(name, o.heads.data); }
  void see(const char* name, const PadColumnsOperands& o) {
    tags_.set(o.y, meet(name, o.sum ? std::vector{o.x, o.sum} : std::vector{o.x}));
  }
  void see(const char* name, const ResidualNormOperands& o) {
    const Tag y = meet(name, {o.x, o.branch, o.bias});
    tags_.set(o.y, y);
    meet(name, {o.gain, o.offset});
    for (const Tensor& t : {o.statistics, o.normed}) tags_.set(t, y);
  }
  /// All others write their last tensors, and take whatever is no part of a sum.
  template <class Operands>
  void see(const char* name, const Operands& operands) {
    if constexpr (OperationsInTurn<Operands>)
      return operands.in_turn([this](const char* one, const auto& part) { see(one, part); });
    std::vector<Tensor> all = tensors_of(operands);
    const std::size_t made = std::is_same_v<Operands, AttentionBackwardOperands> ? 3
                             : std::is_same_v<Operands, AttentionOperands> ||
                                     std::is_same_v<Operands, NormOperands> ||
                                     std::is_same_v<Operands, NormBackwardParametersOperands> ||
                                     std::is_same_v<Operands, PoolOperands>
                                 ? 2
                                 : 1;
    const std::vector<Tensor> written(all.end() - static_cast<std::ptrdiff_t>(made), all.end());
    all.resize(all.size() - made);
    const Tag tag = meet(name, all);
    for (const Tensor& t : written) tags_.set(t, tag);
  }

  Memory& memory_;
  TaggedMemory tags_;
  std::map<const void*, Split> splits_;
  std::vector<std::string> faults_;
};

}  // namespace mindpipe
