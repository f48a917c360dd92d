#pragma once
#include <string>

#include "config/kinds.h"

namespace mindpipe {

/// How the energy of a run is measured, and what it emits.
struct EnergyConfig {
  EnergyMeter meter = EnergyMeter::automatic;
  std::string powercap = "/sys/class/powercap";  ///< where the kernel's counters stand
  bool cap = false;                              ///< say what power the system allows
  double carbon_intensity = 0;                   ///< grams of CO2 equivalent a kWh; 0: not known
  std::string source;                            ///< who says so
  double pue = 1;                                ///< energy of the facility over that of its computers
  std::string forecast;                          ///< a file of intensities by hour, for plans
  double duration = 0;                           ///< seconds of the run to start; 0: as on paper
  double deadline = 0;  ///< seconds from now by which it has to end; 0: the forecast's end
  bool operator==(const EnergyConfig&) const = default;
};

}  // namespace mindpipe
