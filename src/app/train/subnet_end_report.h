#pragma once
#include "app/train/report_end.h"

namespace mindpipe {

/// The end of a start that has trained subnets.
class SubnetEndReport final : public EndReport {
 public:
  using EndReport::EndReport;
  /// The mean without the first.
  double seconds_each() const override;

 private:
  std::string text(const std::vector<TimeSpent>& stages, const std::string& notes) override;
};

}  // namespace mindpipe
