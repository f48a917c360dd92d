#include "comm/paper_ports.h"

namespace mindpipe {
namespace {

constexpr std::size_t most_kept = 256;  // transfers of an out port, for those of which the host tells late

}  // namespace

/// A transfer of which the host tells late, for a moment at which the port has gone on already, leaves where
/// the port stood idle if it fits there, as it would have; else it came just behind what began last.
PaperPorts::Number PaperPorts::offer(Level level, TrafficClass traffic, int to, std::int64_t takes,
                                     std::int64_t offered) {
  OutPort& port = out_[static_cast<std::size_t>(level)];
  const Number number = numbers_++;
  if (takes == 0) {
    begun_[number] = {offered, offered};
    return number;
  }
  Entry entry;
  entry.traffic = ignores_classes_ ? TrafficClass{} : traffic;
  entry.level = level;
  entry.peer = to;
  entry.takes = takes;
  entry.said = entry.offered = offered;
  entry.order = entry.number = number;
  if (offered <= port.began() && fits_before(port, entry)) {
    begin(entry);
    return number;
  }
  entry.offered = std::max(offered, port.began() + 1);
  port.waiting.push_back(entry);
  return number;
}

/// Whether a late transfer leaves before something that has begun: in a time in which the port was idle.
bool PaperPorts::fits_before(OutPort& port, Entry& entry) {
  auto next = std::upper_bound(port.busy.begin(), port.busy.end(), std::pair(entry.offered, entry.offered));
  if (next == port.busy.begin()) return false;  // nobody knows what was before
  for (; next != port.busy.end(); ++next) {
    const auto& [began, left] = *(next - 1);
    const std::int64_t offered = std::max(entry.offered, began + 1), begins = std::max(offered, left);
    if (begins + entry.takes > next->first) continue;
    entry.offered = offered;
    entry.began = begins;
    entry.left = begins + entry.takes;
    port.busy.insert(next, {entry.began, entry.left});
    return true;
  }
  return false;
}

/// Notes what begins to leave, in the order of beginnings.
void PaperPorts::begin(const Entry& entry) {
  begun_[entry.number] = {entry.began, entry.left};
  if (!keeps_record_) return;
  const auto place = std::upper_bound(out_record_.begin(), out_record_.end(), entry,
                                      [](const Passed& a, const Passed& b) { return a.began < b.began; });
  out_record_.insert(place, entry);
}

PaperPorts::Number PaperPorts::expect(Level level, TrafficClass traffic, int from, std::int64_t began,
                                      std::int64_t left) {
  const Number number = numbers_++;
  if (left == began) {
    arrived_[number] = left;
    return number;
  }
  Entry entry;
  entry.traffic = traffic;
  entry.level = level;
  entry.peer = from;
  entry.takes = left - began;
  entry.began = began;
  entry.left = left;
  entry.order = entry.number = number;
  in_[static_cast<std::size_t>(level)].leaving.push_back(entry);
  return number;
}

bool PaperPorts::serve(std::int64_t now) {
  bool goes_on = false;
  for (OutPort& port : out_) goes_on = serve(port, now) || goes_on;
  for (InPort& port : in_) goes_on = serve(port, now) || goes_on;
  return goes_on;
}

bool PaperPorts::serve(OutPort& port, std::int64_t now) {
  bool goes_on = false;
  while (!port.waiting.empty()) {
    std::int64_t begins = port.waiting.front().offered;
    for (const Entry& entry : port.waiting) begins = std::min(begins, entry.offered);
    begins = std::max(begins, port.free());
    if (begins > now) break;
    const auto turn = [&](const Entry& entry) {
      return std::pair(entry.offered > begins,
                       PortRule::turn(entry.traffic, entry.offered, entry.peer, entry.order));
    };
    const auto first = std::min_element(port.waiting.begin(), port.waiting.end(),
                                        [&](const Entry& a, const Entry& b) { return turn(a) < turn(b); });
    Entry entry = *first;
    *first = port.waiting.back();
    port.waiting.pop_back();
    entry.began = begins;
    entry.left = begins + entry.takes;
    port.busy.emplace_back(entry.began, entry.left);
    if (port.busy.size() > most_kept) port.busy.pop_front();
    begin(entry);
    goes_on = true;
  }
  return goes_on;
}

bool PaperPorts::serve(InPort& port, std::int64_t now) {
  bool goes_on = false;
  while (!port.leaving.empty()) {
    const auto turn = [&](const Entry& entry) {
      return PortRule::leave(entry.left, entry.traffic, entry.peer, 0, entry.order);
    };
    const auto first = std::min_element(port.leaving.begin(), port.leaving.end(),
                                        [&](const Entry& a, const Entry& b) { return turn(a) < turn(b); });
    if (first->left > now) break;
    Entry entry = *first;
    *first = port.leaving.back();
    port.leaving.pop_back();
    entry.arrived =
        PortRule::arrived(entry.left, entry.takes, port.free, left_between(port, entry.began, entry.left));
    port.free = std::max(port.free, entry.arrived);
    const std::pair passed(entry.left, entry.takes);
    port.left.insert(std::upper_bound(port.left.begin(), port.left.end(), passed), passed);
    arrived_[entry.number] = entry.arrived;
    if (keeps_record_) in_record_.push_back(entry);
    goes_on = true;
  }
  return goes_on;
}

/// The port's time for all that has left for it after one time and by another. What left long ago is
/// forgotten.
std::int64_t PaperPorts::left_between(InPort& port, std::int64_t began, std::int64_t left) {
  constexpr std::size_t most = 4096;
  if (port.left.size() > most) port.left.erase(port.left.begin(), port.left.begin() + most / 2);
  std::int64_t taken = 0;
  for (auto each = port.left.rbegin(); each != port.left.rend() && each->first > began; ++each)
    if (each->first <= left) taken += each->second;
  return taken;
}

std::optional<std::pair<std::int64_t, std::int64_t>> PaperPorts::take_begun(Number number) {
  const auto found = begun_.find(number);
  if (found == begun_.end()) return {};
  const auto times = found->second;
  begun_.erase(found);
  return times;
}

std::optional<std::int64_t> PaperPorts::take_arrived(Number number) {
  const auto found = arrived_.find(number);
  if (found == arrived_.end()) return {};
  const std::int64_t time = found->second;
  arrived_.erase(found);
  return time;
}

}  // namespace mindpipe
