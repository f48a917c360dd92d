#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "config/models/table.h"
#include "config/sections/data.h"
#include "config/sections/device.h"
#include "config/sections/energy.h"
#include "config/sections/export.h"
#include "config/sections/generate.h"
#include "config/sections/layout.h"
#include "config/sections/optimizer.h"
#include "config/sections/plan.h"
#include "config/sections/run.h"
#include "config/sections/search.h"
#include "config/sections/train.h"

namespace mindpipe {

/// What one run is: every setting, checked and resolved. The sections are those of the file.
struct Config {
  std::uint64_t seed = 1;
  RunConfig run;
  ModelConfig model;
  DataConfig data;
  GridConfig grid;
  ScheduleConfig schedule;
  ReproducibleConfig reproducible;
  TrainConfig train;
  OptimizerConfig optimizer;
  MemoryConfig memory;
  RepartitionConfig repartition;
  CheckpointConfig checkpoint;
  ExportConfig exported;
  DeviceConfig device;
  WatchdogConfig watchdog;
  GuardConfig guard;
  TraceConfig trace;
  EnergyConfig energy;
  PlanConfig plan;
  GenerateConfig generate;
  SupernetConfig supernet;
  SearchConfig search;

  // Compiled once, since they are long.
  Config();
  Config(const Config&);
  Config(Config&&) noexcept;
  Config& operator=(const Config&);
  Config& operator=(Config&&) noexcept;
  ~Config();
  bool operator==(const Config&) const;
};

/// Reads a YAML file and overrides ("train.steps=20"), strictly. Complaints name file, line and key. `named`
/// becomes the keys of the settings that either of them has.
Config read_config(const std::string& file, const std::vector<std::string>& overrides,
                   std::set<std::string>* named = nullptr);

/// Puts numbers in place of what was left to the program (mlp_width, key_value_heads, sequence, decay,
/// logical shards) and refuses settings that contradict each other. Degrees that are still auto are left
/// alone: call it again when they are known.
Config resolve(Config config);

/// The configuration as YAML that reads back to the same configuration, bit for bit.
std::string to_yaml(const Config& config);
/// Reads such a text; complaints begin with `where`.
Config config_of_yaml(const std::string& text, const std::string& where);

}  // namespace mindpipe
