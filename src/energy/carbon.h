#pragma once

namespace mindpipe {

inline double kilowatt_hours(double joules) { return joules / 3.6e6; }

/// Energy that the facility takes for so much energy of its computers.
inline double facility_energy(double energy, double pue) { return energy * pue; }

/// Kilograms of CO2 equivalent for so many kWh of a facility; `intensity` in grams a kWh.
inline double kilograms_co2(double facility_kwh, double intensity) { return facility_kwh * intensity / 1000; }

}  // namespace mindpipe
