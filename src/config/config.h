#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "config/chosen_blocks.h"
#include "config/groups.h"
#include "config/models/table.h"

namespace mindpipe {

/// What one run is: every setting, checked and resolved. The sections are those of the file.
struct RunConfig {
  std::string dir;              ///< the run directory; everything is written below it
  std::string resume = "auto";  ///< auto | never | the directory of a checkpoint
  std::string weights;          ///< file or directory of those to begin with; empty: they are drawn
  bool new_head = false;        ///< the head's are drawn all the same
  double max_walltime = 0;      ///< seconds after which the run stops cleanly with a checkpoint; 0: no limit
  int stop_after = 0;           ///< steps after which it does so; 0: all of them
  int log_every = 0;  ///< steps between plain lines of progress; 0: often at first, then one a minute
  bool operator==(const RunConfig&) const = default;
};

struct DataSource {
  std::string path;  ///< a .bin/.idx pair without its ending, "synthetic:arithmetic", "reversed:PATH"
  double weight = 1;
  bool operator==(const DataSource&) const = default;
};
/// Tokens that stand for no text; below 0: those of the tokenizer. The defaults follow those of bytes.
struct SpecialTokens {
  int end = 256, start = 257, padding = 258, mask = 259;
  bool operator==(const SpecialTokens&) const = default;
};

struct DataConfig {
  std::vector<DataSource> train, validation;
  int sequence = 0;                              ///< tokens of a sample; 0: model.context
  int source_sequence = 0, target_sequence = 0;  ///< tokens of a pair; 0: model.context
  int masked = 0;  ///< tokens of a sample that are to be found, at most; 0: 15 %
  SpecialTokens special{};
  std::string tokenizer;       ///< a file or folder; empty: a token is a byte
  std::string tokenizer_hash;  ///< SHA-256 of its files
  std::string chat_template;   ///< how generate writes a conversation; empty: a prompt stands as it is
  bool flip = false;           ///< pictures to train on: every second one mirrored
  int crop = 0;                ///< pixels that pictures to train on are moved by, at most
  bool operator==(const DataConfig&) const = default;
};

struct GridConfig {  ///< degrees; 0: auto, the rest of the ranks, or, where several are, the fastest on paper
  int supernet = 1, pipeline = 1, data = 1, tensor = 1;
  bool operator==(const GridConfig&) const = default;
};

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::one_forward_one_backward;
  int chunks = 1;           ///< chunks of the model per stage
  std::vector<int> cuts;    ///< first block of each stage but the first; empty: balanced
  MicroBatchGroups groups;  ///< groups of an elastic schedule; empty: auto
  double memory = 0;        ///< tapes where weight gradients are put off, of 1f1b's; 0: the schedule's own
  bool operator==(const ScheduleConfig&) const = default;
};

struct ReproducibleConfig {  ///< logical shards; 0: the grid's degree
  int tensor = 0, data = 0;
  bool tensor_follows = false, data_follows = false;  ///< the grid: another one, another number
  bool operator==(const ReproducibleConfig& other) const {
    return tensor == other.tensor && data == other.data;
  }
};

struct TrainConfig {
  int steps = 100, batch = 32, micro_batch = 4;
  Precision precision = Precision::f32;
  ChosenBlocks recompute, swap;
  bool sequence_parallel = false;
  int zero = 0;       ///< sharded over data: 0 nothing, 1 optimizer state, 2 gradients too
  double clip = 1.0;  ///< largest global norm of the gradient; 0: no clipping
  double label_smoothing = 0;
  int evaluate_every = 0, evaluate_batches = 8;  ///< batches of 0: once over all
  int noise_every = 0;                           ///< steps between measurements of the noise scale; 0: never
  int norms_every = 0;  ///< steps between measurements of each tensor's norms; 0: never
  bool operator==(const TrainConfig&) const = default;
};

struct RateConfig {
  RateKind kind = RateKind::cosine;
  double peak = 3e-4, floor = 0;  ///< floor: the rate that the curve falls to
  int warmup = 0;
  int decay = 0;  ///< wsd: steps of the last part; others: where the floor is reached (0: train.steps)
  std::vector<int> drops;    ///< steps: where the rate falls
  double drop_factor = 0.2;  ///< steps: to this share of what it was
  bool operator==(const RateConfig&) const = default;
};
struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::adamw;
  RateConfig rate;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;
  double momentum = 0.9;
  bool nesterov = false;
  /// The names of what the rule keeps of each element.
  std::span<const std::string_view> moments() const {
    const OptimizerRow& row = row_of(kind);
    const bool none = row.only_with_momentum && momentum == 0;
    return std::span(row.moments).first(none ? 0 : row.count);
  }
  bool operator==(const OptimizerConfig&) const = default;
};

struct MemoryConfig {
  std::int64_t device_limit = 0, host_limit = 0;  ///< bytes of a rank; 0: no limit
  StatePlace optimizer = StatePlace::device;      ///< where masters and moments are kept
  bool operator==(const MemoryConfig&) const = default;
};
/// A cut that a run comes to while it trains.
struct CutAt {
  int step = 0;           ///< in this step, counted from 1, blocks move
  std::vector<int> cuts;  ///< first block of each stage but the first, behind it
  bool operator==(const CutAt&) const = default;
};
/// When blocks change their stage while a run trains.
struct RepartitionConfig {
  std::vector<CutAt> at;
  int every = 0;  ///< steps between reports by which stages are balanced; 0: only `at` moves blocks
  int room = 1;   ///< blocks that a boundary moves in a step, at most
  /// Whether blocks may change their stage.
  bool moves() const { return !at.empty() || every > 0; }
  bool operator==(const RepartitionConfig&) const = default;
};
struct CheckpointConfig {
  int every = 0;          ///< steps
  double every_time = 0;  ///< seconds
  int keep = 2, keep_every = 0;
  Background background = Background::automatic;
  CheckpointWriterKind writer = CheckpointWriterKind::direct;
  SaveFailure on_error = SaveFailure::stop;
  /// Whether the run is saved while it goes on, not only where it stops.
  bool is_periodic() const { return every > 0 || every_time > 0; }
  bool operator==(const CheckpointConfig&) const = default;
};
/// What carries messages between ranks, for prices; 0: as device.description says.
struct LinksConfig {
  int ranks_per_node = 0;
  double latency = 0, rate = 0, latency_between_nodes = 0, rate_between_nodes = 0;
  double copies = 0;  ///< between a device and its host, each way
  bool operator==(const LinksConfig&) const = default;
};
struct DeviceConfig {
  DeviceKind kind = DeviceKind::cpu;
  int threads = 0;                    ///< 0: as many as this process may use
  std::string instructions = "auto";  ///< auto | avx512 | avx2 | baseline
  std::string description;            ///< emulated: the device to imitate
  std::string profile;                ///< a file of prices that were measured; empty: those of a description
  LinksConfig links;
  TransportKind transport = TransportKind::automatic;        ///< cuda: what carries messages between ranks
  std::int64_t attention_workspace = std::int64_t{2} << 30;  ///< cuda: bytes that a plan of cuDNN may take
  AttentionBeyond attention_beyond = AttentionBeyond::pieces;
  std::string kernels;  ///< cuda: a table of algorithms by `doctor --tune`; empty: the library's own choice
  bool operator==(const DeviceConfig&) const = default;
};
struct WatchdogConfig {
  double start = 300, step = 0;  ///< seconds; step 0: max(10 x median step, 300)
  bool operator==(const WatchdogConfig&) const = default;
};
/// What is done about losses and gradients that are not finite, losses that jump, and copies that differ.
struct GuardConfig {
  int skips = 3;     ///< steps in a row that change nothing, after which the run goes back
  double spike = 0;  ///< median absolute deviations above the median of losses that are too many; 0: any
  int replicas_every = 0;  ///< steps between comparisons of what ranks hold alike, besides saves
  int rollbacks = -1;      ///< how often a run goes back; below 0: twice where checkpoints are periodic
  bool operator==(const GuardConfig&) const = default;
};
struct TraceConfig {
  int steps = 3;  ///< the last steps of a training whose actions go to trace.json; 0: none
  bool operator==(const TraceConfig&) const = default;
};
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
struct GenerateConfig {
  std::string prompt;
  int tokens = 128;
  double temperature = 1;  ///< 0: greedy
  int top_k = 0;
  double top_p = 1;
  bool operator==(const GenerateConfig&) const = default;
};

/// Which subnets of a supernet are trained, and how together.
struct SupernetConfig {
  std::string sampler = "uniform";     ///< uniform | permutation | spaced | a file with a choice a line
  int spacing = 0;                     ///< spaced: subnets between two uses of a candidate; 0: the usual
  int window = 16;                     ///< subnets that read one version of what all share
  int admission = 0;                   ///< in flight; 0: as few as cost little
  int slots = 0;                       ///< micro-batch slots of a stage; 0: as few as cost little
  SubnetCuts cuts = SubnetCuts::home;  ///< one for all, or each subnet's own
  std::string prices;                  ///< paper | equal | h200 | a file; empty: of the device on paper
  int evaluate_subnets = 4;            ///< subnets of an evaluation, always the same ones
  int calibrate_batches = 2;           ///< batches that calibrate batch norms before an evaluation
  bool operator==(const SupernetConfig&) const = default;
};

/// The most that a network may have to be scored; 0: no limit.
struct LimitsConfig {
  double parameters = 0, operations = 0, latency = 0, bytes = 0;
  bool operator==(const LimitsConfig&) const = default;
};
/// The search for good networks of a trained supernet.
struct SearchConfig {
  std::string dir;  ///< empty: run.dir/search
  SearcherKind searcher = SearcherKind::evolution;
  int scores = 0;         ///< networks that are scored; 0: 480, or all that the space has
  int batches = 8;        ///< held-out batches of a score
  int lag = 64;           ///< parents of a network have ids that lie so far back
  int population = 50;    ///< networks that are drawn before any has parents
  int parents = 10;       ///< best networks that others are made of
  double mutation = 0.1;  ///< share of the blocks that a mutation draws again
  std::vector<std::string> objectives{"loss", "parameters"};  ///< pareto
  LimitsConfig limits;
  int best = 5;              ///< networks that come out
  int steps = 0;             ///< steps of a network that is trained by itself; 0: train.steps
  int verify = 0;            ///< networks that are trained to see what scores are worth
  std::vector<int> halving;  ///< steps of the first round, and the factor between rounds
  bool operator==(const SearchConfig&) const = default;
};

/// How weights are written for others.
struct ExportConfig {
  std::int64_t part = 5'000'000'000;  ///< bytes of a file, at most
  Precision precision = Precision::f32;
  ExportNames names = ExportNames::transformers;
  bool operator==(const ExportConfig&) const = default;
};

/// What plan --search compares plans by, and what things cost.
struct PlanConfig {
  PlanGoalKind objective = PlanGoalKind::time;
  std::vector<int> batches;                   ///< train.batch that are compared; empty: the one of this run
  std::string noise_scale;                    ///< samples, or a run that measured it; empty: not known
  double rank_hour = 0, kwh = 0, co2_kg = 0;  ///< prices of an hour of a rank, of energy, of CO2
  bool operator==(const PlanConfig&) const = default;
};

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
  bool operator==(const Config&) const = default;
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

/// Every setting with what it may be, its default and what it means: the text of --help-config.
std::string config_help();

}  // namespace mindpipe
