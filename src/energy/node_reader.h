#pragma once
#include <sched.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "energy/meter.h"

namespace mindpipe {

/// Seconds of processors: what the job's processes on a node used, what all processes did, and what these did
/// on the processors that the job may use.
struct ProcessorTime {
  double job = 0, node = 0, there = 0;
};

/// Processor time from /proc of the job, whose `processes` may use `processors`, and of its node.
ProcessorTime processor_time(const std::vector<int>& processes, const cpu_set_t& processors,
                             const std::string& proc = "/proc");

/// Points of a curve over time, as many as there is room for: where there are more, every second one goes,
/// and of those to come half as many are kept. So ranks that are told of the same moments keep the same ones.
template <class Point>
class Curve {
 public:
  explicit Curve(std::size_t most = 512) : most_(most) {}
  /// Whether the point is kept for now.
  bool add(const Point& point) {
    if (seen_++ % stride_ != 0) return false;
    points_.push_back(point);
    if (points_.size() < most_) return true;
    stride_ *= 2;
    for (std::size_t i = 0; 2 * i < points_.size(); ++i) points_[i] = points_[2 * i];
    points_.resize((points_.size() + 1) / 2);
    return true;
  }
  const std::vector<Point>& points() const { return points_; }

 private:
  std::size_t most_, seen_ = 0, stride_ = 1;
  std::vector<Point> points_;
};

/// Joules of the job on a node, from the beginning to a moment.
struct EnergyPoint {
  std::int64_t ns = 0;
  double joules = 0;
};

/// Reads a node's meters, once a second and more often near a wrap, on a thread that calls nothing of MPI.
class NodeReader {
 public:
  /// Who else may be on the node.
  struct Sharing {
    std::vector<int> processes;  ///< the job's
    cpu_set_t processors = {};   ///< processors that these may use
    int node_processors = 1;
    double idle_watts = 0;  ///< watts of the whole node
    std::function<ProcessorTime()> times = {};
  };
  NodeReader(std::vector<std::unique_ptr<Meter>> meters, Sharing sharing);
  ~NodeReader();
  NodeReader(const NodeReader&) = delete;
  NodeReader& operator=(const NodeReader&) = delete;

  /// The newest reading.
  EnergyPoint newest() const;
  /// Whether others worked on the node: what is counted is then divided, and divided anew.
  bool shared() const;
  /// Has the meters read at once: here a window of the work begins.
  void begin_window();
  /// Reads for the last time and stops; later calls do nothing.
  void stop();

  // Once stopped:
  /// Where windows began, and the end.
  const std::vector<EnergyPoint>& points() const { return points_; }
  /// Whether others used devices that were taken for the job's own: its part is then an estimate.
  bool divided() const { return divided_; }
  std::vector<std::string> troubles() const;
  /// Seconds of a processor that the reading took.
  double own_seconds() const { return own_seconds_; }

 private:
  void watch();
  void read(bool is_point, bool last);

  std::vector<std::unique_ptr<Meter>> meters_;
  Sharing sharing_;
  std::vector<EnergyPoint> points_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false, asked_ = false, shared_ = false, divided_ = false;
  EnergyPoint newest_;
  // The thread alone uses these:
  ProcessorTime times_;
  double counted_ = 0;      ///< the job's joules of processors, up to where its last part was found
  double part_joules_ = 0;  ///< the node's, there
  std::int64_t begun_ns_ = 0, part_ns_ = 0;
  double part_ = 1;
  std::vector<std::string> troubles_;
  double own_seconds_ = 0;
  std::thread thread_;
};

}  // namespace mindpipe
