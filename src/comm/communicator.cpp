#include "comm/communicator.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "comm/exchange.h"
#include "comm/fault_points.h"
#include "comm/group.h"
#include "comm/ledger.h"
#include "core/clock.h"

namespace mindpipe {
namespace {

/// Elements [first, first + count) of a tensor seen as one row.
Tensor slice(const Tensor& t, std::int64_t first, std::int64_t count) {
  return {t.as<std::byte>() + first * static_cast<std::int64_t>(bytes_of(t.dtype)), {count}, t.dtype};
}

/// Parts of `values`, one for each of `ranks` ranks, as equal as they can be.
std::vector<Tensor> equal_parts(const Tensor& values, int ranks) {
  std::vector<Tensor> parts;
  const std::int64_t n = values.count();
  for (int r = 0; r < ranks; ++r)
    parts.push_back(slice(values, n * r / ranks, n * (r + 1) / ranks - n * r / ranks));
  return parts;
}

std::vector<Exchange::Pieces> equal_parts(const std::vector<Tensor>& roots, int ranks) {
  std::vector<Exchange::Pieces> parts;
  for (const Tensor& root : roots) parts.push_back(equal_parts(root, ranks));
  return parts;
}

std::size_t largest(const std::vector<Tensor>& parts) {
  std::size_t bytes = 0;
  for (const Tensor& part : parts) bytes = std::max(bytes, part.bytes());
  return bytes;
}

bool has_maximum(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

/// The sum; of integers modulo 2^64, since some of them are hashes.
double sum_of(double a, double b) { return a + b; }
std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  return std::bit_cast<std::int64_t>(std::bit_cast<std::uint64_t>(a) + std::bit_cast<std::uint64_t>(b));
}

template <class T>
void add_on_host(const Tensor& a, const Tensor& b, const Tensor& sum) {
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(a.bytes() / sizeof(T)); ++i)
    sum.as<T>()[i] = sum_of(a.as<T>()[i], b.as<T>()[i]);
}

}  // namespace

Communicator::Communicator(Backend& backend, int logical) : backend_(backend), logical_(logical) {
  take_place(1, 0);
}

void Communicator::take_place(int size, int rank) {
  size_ = size;
  rank_ = rank;
  check_degree(axis_, logical_, size);
  over_shards_ = SumTree(logical_, size, rank);
  shards_here_ = SumTree(local_shards());
  over_ranks_ = SumTree(size, size, rank);
}

Communicator::Communicator(Backend& backend, std::unique_ptr<Group> group, int logical, Axis axis,
                           TrafficLedger* ledger)
    : backend_(backend), group_(std::move(group)), logical_(logical), axis_(axis), ledger_(ledger) {
  take_place(group_->size(), group_->rank());
}

Communicator::Communicator(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

std::vector<Tensor> Communicator::stacked(std::byte* scratch, const Tensor& part) const {
  std::vector<Tensor> parts;
  for (int r = 0; r < size_; ++r)
    parts.push_back(
        {scratch + static_cast<std::size_t>(r) * aligned(part.bytes()), {part.count()}, part.dtype});
  return parts;
}

Combine Communicator::larger() const {
  return by_pairs([this](const Tensor& a, const Tensor& b, const Tensor& largest) {
    backend_.maximum({a, b, largest});
  });
}

Route Communicator::route() const { return group_->route(backend_.memory()); }

void Communicator::add_on_paper(const SumTree& tree, const Tensor& own) const {
  const std::vector<Tensor> sums(tree.of_roots().size() + 1, own);
  if (own.count() > 0) add()(sums, tree.of_roots(), own);
}

void Communicator::send_on_paper(const std::vector<Tensor>& parts, int scatters, int gathers,
                                 const char* operation) const {
  if (!on_paper() || !observe_) return;
  std::size_t bytes = 0;
  for (int other = 0; other < size_; ++other)
    if (other != rank_) bytes += scatters * parts[other].bytes() + gathers * parts[rank_].bytes();
  observe_({operation, 0, 0, static_cast<std::int64_t>(bytes)});
}

bool Communicator::exchanges_nothing(const char* operation) const {
  return size_ == 1 || group_ == nullptr || is_left_out(name_of(axis_), operation);
}

void Communicator::run(Exchange& exchange, const char* operation, TrafficClass kind) {
  ++calls_;
  const std::int64_t start = now_ns();
  Waiting& waiting = group_->waiting();
  waiting.gate().begin(kind);
  waiting.until([&] { return exchange.advance(); },
                [&] {
                  return fmt::format("{}.{} number {}: {}", name_of(axis_), operation, calls_,
                                     exchange.missing());
                });
  waiting.gate().end(kind);
  if (ledger_ != nullptr)
    ledger_->add(axis_, kind, static_cast<std::int64_t>(exchange.bytes_sent()), group_->seconds_since(start));
  if (observe_ && kind == TrafficClass::tensor)
    observe_({operation, start, now_ns(), static_cast<std::int64_t>(exchange.bytes_sent())});
}

std::vector<Tensor> Communicator::combine_shards(const SumTree& tree, const Tensor& shards,
                                                 const Tensor& total, const Combine& combine) {
  const int n = local_shards();
  MP_CHECK(shards.count() == n * total.count() && shards.dtype == total.dtype,
           "a sum of {} local shards from {} {} to {} {}", n, to_string(shards.shape), name_of(shards.dtype),
           to_string(total.shape), name_of(total.dtype));
  const Tensor root = slice(total, 0, total.count());
  if (n == 1) {
    if (shards.data != total.data) backend_.copy(slice(shards, 0, shards.count()), root);
    return {root};
  }
  std::vector<Tensor> leaves;
  for (int s = 0; s < n; ++s) leaves.push_back(slice(shards, s * total.count(), total.count()));
  const bool whole = tree.roots().size() == 1;
  combine(leaves, tree.of_leaves(), whole ? root : Tensor{});
  if (whole) return {root};
  std::vector<Tensor> roots;
  for (const Subtree& subtree : tree.roots()) roots.push_back(leaves[subtree.first - tree.first_leaf()]);
  return roots;
}

void Communicator::combine_ranks(const SumTree& tree, const std::vector<Tensor>& roots, const Tensor& total,
                                 const Combine& combine, const char* operation, TrafficClass kind) {
  if (size_ == 1) return;
  auto parts = equal_parts(total, size_);
  std::byte* scratch = take_scratch(Exchange::scratch_bytes(tree, largest(parts)));
  if (on_paper()) add_on_paper(tree, parts[rank_]);
  send_on_paper(parts, tree.most_roots(), 1, operation);
  if (exchanges_nothing(operation)) return;
  Exchange exchange(*group_, tree, Exchange::Halves::both, std::move(parts), equal_parts(roots, size_),
                    scratch, combine, route());
  run(exchange, operation, kind);
}

void Communicator::sum(const Tensor& shards, const Tensor& total) {
  const std::vector<Tensor> roots = combine_shards(over_shards_, shards, total, add());
  combine_ranks(over_shards_, roots, total, add(), "sum", TrafficClass::tensor);
  tell("sum", shards, total);
}

void Communicator::sum_scatter(const Tensor& shards, const Tensor& part, std::int64_t outer) {
  const std::int64_t count = part.count(), row = count / outer;
  MP_CHECK(count % outer == 0, "a part of {} elements in {} rows", count, outer);
  MP_CHECK(shards.count() == count * size_ * local_shards() && shards.dtype == part.dtype,
           "a scattered sum of {} local shards from {} {} to {} {}", local_shards(), to_string(shards.shape),
           name_of(shards.dtype), to_string(part.shape), name_of(part.dtype));
  const Tensor whole = slice(shards, 0, count * size_);
  const std::vector<Tensor> roots = combine_shards(over_shards_, shards, whole, add());
  if (size_ == 1) {
    if (part.data != whole.data) backend_.copy(whole, slice(part, 0, count));
    return tell("sum_scatter", shards, part);
  }
  // Parts one after the other: part r is column block r of the rows.
  const bool in_place = outer == 1;
  const std::size_t root_bytes = in_place ? 0 : static_cast<std::size_t>(size_) * aligned(part.bytes()),
                    packed_bytes = static_cast<std::size_t>(over_shards_.most_roots()) * root_bytes;
  std::byte* scratch = take_scratch(packed_bytes + Exchange::scratch_bytes(over_shards_, part.bytes()));
  std::vector<Exchange::Pieces> packed;
  for (const Tensor& root : roots) {
    packed.push_back(in_place ? equal_parts(root, size_)
                              : stacked(scratch + packed.size() * root_bytes, part));
    for (int r = 0; r < size_ && !in_place; ++r)
      for (std::int64_t o = 0; o < outer; ++o)
        backend_.copy(slice(root, (o * size_ + r) * row, row), slice(packed.back()[r], o * row, row));
  }
  const Exchange::Pieces parts = packed[0];
  if (on_paper()) add_on_paper(over_shards_, parts[rank_]);
  send_on_paper(parts, over_shards_.most_roots(), 0, "sum_scatter");
  if (!exchanges_nothing("sum_scatter")) {
    Exchange exchange(*group_, over_shards_, Exchange::Halves::scatter, parts, std::move(packed),
                      scratch + packed_bytes, add(), route());
    run(exchange, "sum_scatter", TrafficClass::tensor);
  }
  if (parts[rank_].data != part.data) backend_.copy(parts[rank_], slice(part, 0, count));
  tell("sum_scatter", shards, part);
}

void Communicator::gather(const Tensor& part, const Tensor& whole, std::int64_t outer) {
  const std::int64_t count = part.count(), row = count / outer;
  MP_CHECK(count % outer == 0 && whole.count() == count * size_ && part.dtype == whole.dtype,
           "a gather of parts {} {} in {} rows to {} {}", to_string(part.shape), name_of(part.dtype), outer,
           to_string(whole.shape), name_of(whole.dtype));
  if (size_ == 1) {
    if (part.data != whole.data) backend_.copy(slice(part, 0, count), slice(whole, 0, count));
    return tell("gather", part, whole);
  }
  const bool in_place = outer == 1;
  const auto parts =
      in_place ? equal_parts(whole, size_)
               : stacked(take_scratch(static_cast<std::size_t>(size_) * aligned(part.bytes())), part);
  if (parts[rank_].data != part.data) backend_.copy(slice(part, 0, count), parts[rank_]);
  send_on_paper(parts, 0, 1, "gather");
  if (!exchanges_nothing("gather")) {
    Exchange exchange(*group_, over_shards_, Exchange::Halves::gather, parts, {}, nullptr, add(), route());
    run(exchange, "gather", TrafficClass::tensor);
  }
  for (int r = 0; r < size_ && !in_place; ++r)
    for (std::int64_t o = 0; o < outer; ++o)
      backend_.copy(slice(parts[r], o * row, row), slice(whole, (o * size_ + r) * row, row));
  tell("gather", part, whole);
}

void Communicator::broadcast(const Tensor& tensor, int root) {
  MP_CHECK(root >= 0 && root < size_, "a broadcast from rank {} of {}", root, size_);
  if (exchanges_nothing("broadcast")) return;
  // A binomial tree: whoever has the data passes it on at half the distance it came from.
  ++calls_;
  const std::int64_t start = now_ns();
  const int place = (rank_ - root + size_) % size_;
  Messages messages(*group_, route());
  const auto describe = [&] {
    return fmt::format("{}.broadcast number {}: {}", name_of(axis_), calls_, messages.missing());
  };
  const int tag = 2 * group_->next_exchange();
  int distance = 1;
  for (; distance < size_; distance *= 2)
    if ((place & distance) != 0) {
      messages.receive(tensor.data, tensor.bytes(), (rank_ - distance + size_) % size_, tag);
      group_->waiting().until([&] { return messages.done(); }, describe);
      break;
    }
  for (distance /= 2; distance > 0; distance /= 2)
    if (place + distance < size_) messages.send(tensor.data, tensor.bytes(), (rank_ + distance) % size_, tag);
  group_->waiting().until([&] { return messages.done(); }, describe);
  if (ledger_ != nullptr)
    ledger_->add(axis_, TrafficClass::values, static_cast<std::int64_t>(messages.bytes_sent()),
                 group_->seconds_since(start));
}

void Communicator::maximum(const Tensor& values) {
  MP_CHECK(has_maximum(values.dtype), "a maximum of {} (f32 or f64)", name_of(values.dtype));
  combine_ranks(over_ranks_, {values}, values, larger(), "maximum", TrafficClass::tensor);
  tell("maximum", values, values);
}

void Communicator::maximum(const Tensor& shards, const Tensor& largest) {
  MP_CHECK(has_maximum(shards.dtype), "a maximum of {} (f32 or f64)", name_of(shards.dtype));
  combine_shards(shards_here_, shards, largest, larger());
  combine_ranks(over_ranks_, {largest}, largest, larger(), "maximum", TrafficClass::tensor);
  tell("maximum", shards, largest);
}

void Communicator::sum_over_shards(std::span<double> shards) {
  if (shards.empty()) return;
  const auto count = static_cast<std::int64_t>(shards.size()) / local_shards();
  MP_CHECK(count * local_shards() == static_cast<std::int64_t>(shards.size()),
           "{} scalars of {} local shards", shards.size(), local_shards());
  std::vector<Tensor> leaves, roots;
  for (int s = 0; s < local_shards(); ++s) leaves.push_back({shards.data() + s * count, {count}, DType::f64});
  combine_tree(leaves, over_shards_.of_leaves(), {}, add_on_host<double>);
  for (const Subtree& subtree : over_shards_.roots()) roots.push_back(leaves[subtree.first - first_shard()]);
  combine_host(over_shards_, roots, leaves[0], by_pairs(add_on_host<double>), "sum_over_shards",
               TrafficClass::scalars);
}

void Communicator::sum_over_shards(const Tensor& shards, const Tensor& total) {
  MP_CHECK(total.dtype == DType::f64, "a sum of scalars of {} (f64)", name_of(total.dtype));
  const std::vector<Tensor> roots = combine_shards(over_shards_, shards, total, add());
  combine_ranks(over_shards_, roots, total, add(), "sum_over_ranks", TrafficClass::scalars);
  tell("sum_over_shards", shards, total);
}

void Communicator::sum_over_ranks(const Tensor& values) {
  MP_CHECK(values.dtype == DType::f64, "a sum of scalars of {} (f64)", name_of(values.dtype));
  combine_ranks(over_ranks_, {values}, values, add(), "sum_over_ranks", TrafficClass::scalars);
}

std::size_t Communicator::scalars_bytes(const SumTree& tree, std::int64_t count) {
  const auto ranks = tree.ranks();
  return Exchange::scratch_bytes(tree,
                                 static_cast<std::size_t>((count + ranks - 1) / ranks) * sizeof(double));
}

void Communicator::sum_integers(std::span<std::int64_t> values, TrafficClass kind, std::byte* scratch) {
  if (values.empty()) return;
  const Tensor all{values.data(), {static_cast<std::int64_t>(values.size())}, DType::i64};
  combine_host(over_ranks_, {all}, all, by_pairs(add_on_host<std::int64_t>), "sum_integers", kind, scratch);
}

void Communicator::combine_host(const SumTree& tree, const std::vector<Tensor>& roots, const Tensor& total,
                                const Combine& combine, const char* operation, TrafficClass kind,
                                std::byte* scratch) {
  if (exchanges_nothing(operation)) return;
  auto parts = equal_parts(total, size_);
  if (scratch == nullptr) {
    host_scratch_.resize(
        std::max(host_scratch_.size(), Exchange::scratch_bytes(tree, largest(parts)) / sizeof(double)));
    scratch = reinterpret_cast<std::byte*>(host_scratch_.data());
  }
  Exchange exchange(*group_, tree, Exchange::Halves::both, std::move(parts), equal_parts(roots, size_),
                    scratch, combine);
  run(exchange, operation, kind);
}

}  // namespace mindpipe
