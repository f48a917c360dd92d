#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/random.h"
#include "layers/layer.h"
#include "layers/spoil.h"
#include "make_backend.h"

/// What tests of layers share: a network on T logical shards of one rank, whose parameters and inputs are
/// set, and whose gradients are read, as whole tensors: whatever T is, the same names hold the same numbers.
namespace mindpipe::testing {

/// Whole tensors by name: "unit.piece" for parameters, "input.activation" and "input.memory" for inputs.
using Whole = std::map<std::string, std::vector<double>>;

inline double read(const Tensor& t, std::int64_t i) {
  if (t.dtype == DType::f64) return t.as<double>()[i];
  if (t.dtype == DType::f32) return static_cast<double>(t.as<float>()[i]);
  const std::uint32_t bits = t.as<std::uint16_t>()[i];
  return static_cast<double>(std::bit_cast<float>(bits << 16));
}

/// Where a network computes: a backend, and what kind of memory it works in.
struct Device {
  Memory::Kind memory = Memory::Kind::host;
  std::function<std::unique_ptr<Backend>(Memory&)> make = [](Memory& memory) {
    return make_cpu_backend(memory, 1, "auto");
  };
};

/// Normal numbers, a function of the name.
inline std::vector<double> normals(const std::string& name, std::int64_t count, double deviation,
                                   double mean = 0) {
  std::vector<float> numbers(count);
  RandomStream{11, purpose_of(name)}.normals(0, count, static_cast<float>(deviation), numbers.data());
  std::vector<double> made(numbers.begin(), numbers.end());
  for (double& x : made) x += mean;
  return made;
}
struct Setting {
  /// Few numbers and small steps, so that no difference goes over a kink.
  static Setting for_relu() {
    Setting setting;
    setting.samples = 1;
    setting.rows = 4;
    setting.step = 1e-5;
    return setting;
  }
  Device device;
  int shards = 1;
  DType dtype = DType::f64;
  std::int64_t samples = 2, rows = 8, width = 16;
  std::int64_t counted_rows = 0;           ///< output rows of a sample that the loss depends on; 0: all
  std::int64_t memory_rows = 6;            ///< rows of an activation's memory
  std::int64_t vocabulary = 0, types = 0;  ///< sizes of the vocabulary, and of the types of tokens
  std::int64_t targets = 0;                ///< targets of a sample; 0: one for each row
  bool picks = false;                      ///< the batch names a row of each sample for each target
  PictureShape picture;                    ///< shape of a sample's picture, if there is one
  bool activation = true, memory = false;
  bool classifier = false;       ///< the loss is the last layer's; else it is linear in what comes out
  bool sources = false;          ///< source tokens and lengths
  std::int64_t source_rows = 0;  ///< rows of the source; 0: as many as tokens
  Tape::WeightGradients weight_gradients = Tape::WeightGradients::now;
  double step = 3e-4;  ///< step of differences; smaller where a function has kinks
  double tolerance = 1e-7, tolerance_of_bf16 = 0.12;  ///< bound on differences; between shards
  std::vector<std::string> without_gradient;  ///< where it is zero in exact arithmetic: the bias of keys
};

class Subject {
 public:
  using Build = std::function<void(Subject&)>;

  Subject(const Setting& setting, const Build& build)
      : setting_(setting),
        memory_(setting.device.memory),
        backend_(setting.device.make(memory_)),
        tensor_(*backend_, setting.shards),
        context_{*backend_, tensor_, setting.dtype, false, 5},
        kept_(memory_, MemoryClass::activations, std::size_t{32} << 20),
        scratch_(memory_, MemoryClass::workspace, std::size_t{32} << 20),
        batch_(memory_, MemoryClass::boundary, std::size_t{1} << 20),
        tape_(*backend_, kept_, scratch_) {
    build(*this);
    make_batch();
    for (Unit* unit : units_) {
      unit->lay_out({setting.shards, setting.shards, 0}, setting.shards, 0, setting.dtype);
      unit->allocate_values(memory_);
      unit->gradients().allocate(memory_);
      fill_values(*unit);
    }
    if (setting.activation)
      values["input.activation"] = normals("input.activation", activation_shape().count(), 1);
    if (setting.memory) values["input.memory"] = normals("input.memory", memory_shape().count(), 1);
  }

  // -- for builders
  const Setting& setting() const { return setting_; }
  const LayerContext& context() const { return context_; }
  Unit& unit(const std::string& name) {
    for (Unit* unit : units_)
      if (unit->name() == name) return *unit;
    add(std::make_unique<Unit>(name));
    return *units_.back();
  }
  void add(std::unique_ptr<Unit> unit) {
    units_.push_back(unit.get());
    owned_units_.push_back(std::move(unit));
  }
  /// The next layer; `reads_encoder`: whether an encoder's memory, where there is one, enters it.
  void add(std::unique_ptr<Layer> layer, bool reads_encoder = true) {
    steps_.push_back({layer.get(), reads_encoder});
    owned_.push_back(std::move(layer));
  }

  // -- for checks
  Whole values;
  /// Puts `values[name]` where the layers read it; inputs are read at every forward anyway.
  void write(const std::string& name) {
    const auto found = places_.find(name);
    if (found == places_.end()) return;
    const std::vector<double>& whole = values.at(name);
    const auto& [unit, param, part] = found->second;
    std::vector<std::vector<double>> shards;
    for (int s = 0; s < unit->local_shards(param); ++s) shards.push_back(all(unit->value(param, s)));
    visit(found->second, [&](int shard, std::int64_t element, std::int64_t whole_element, bool padding) {
      // Padding is never read: anything may stand there.
      shards[shard][element] = padding ? 3.0 : whole[whole_element];
    });
    for (int s = 0; s < unit->local_shards(param); ++s) put_all(unit->value(param, s), shards[s]);
  }

  /// A field of the batch, in the backend's memory.
  Tensor field(std::string_view name) const { return tape_.batch.fields.at(name); }

  /// A forward as in training (dropout drops), and its loss.
  double loss() {
    const Boundary out = forward(false);
    long double sum = 0;
    if (setting_.classifier) return sum_of_losses();
    for (const auto& [t, name] :
         {std::pair{out.activation, "loss.activation"}, std::pair{out.encoder_output, "loss.memory"}}) {
      if (!t) continue;
      const auto weights = weights_of(t, name), numbers = all(t);
      for (std::int64_t i = 0; i < t.count(); ++i) sum += static_cast<long double>(weights[i]) * numbers[i];
    }
    tape_.clear();
    return static_cast<double>(sum);
  }

  /// Forward and backward: the gradients of the loss, all accumulators of a parameter added up.
  Whole gradients() {
    for (Unit* unit : units_)
      for (int use = 0; use < unit->uses(); ++use) backend_->fill({unit->gradients().accumulators(use), 0});
    const Boundary out = forward(true);
    tape_.segments().lay(TapeSegments::beside, kept_.size() / 2, kept_.size());
    tape_.segments().enter(TapeSegments::beside);
    const std::size_t mark = scratch_.mark();
    Boundary dout;
    if (!setting_.classifier) {
      dout.activation = of_loss(out.activation, setting_.dtype, "loss.activation");
      if (out.encoder_output)
        dout.encoder_output = of_loss(out.encoder_output, gradient_dtype(), "loss.memory");
    }
    for (std::size_t i = steps_.size(); i-- > 0;) {
      // The last reader starts the memory's gradient.
      if (steps_[i].made_memory && !dout.encoder_output)
        backend_->fill({dout.encoder_output = tape_.scratch(steps_[i].memory_shape, gradient_dtype()), 0});
      dout = steps_[i].layer->backward(dout, tape_);
    }
    EXPECT_EQ(tape_.saved(), 0u) << "every backward takes what its forward saved";
    Whole made;
    if (setting_.activation) made["input.activation"] = all(dout.activation);
    if (setting_.memory) made["input.memory"] = all(dout.encoder_output);
    spoil(*backend_, scratch_);  // products that were put off read nothing there
    tape_.run_weight_gradients();
    for (const auto& [name, place] : places_)
      (is_learned(place) ? made : batch_statistics)[name] = gradient(name, place);
    if (setting_.classifier) loss_of_backward = sum_of_losses();
    scratch_.release(mark);
    tape_.clear();
    return made;
  }
  /// What a classifier has counted in all calls of loss().
  std::vector<double> hits() const { return all(tape_.hits); }
  /// Each target's loss, as of the last loss().
  std::vector<double> losses() const { return all(tape_.losses); }
  Whole batch_statistics;       ///< what running statistics have for gradients in the last gradients()
  double loss_of_backward = 0;  ///< a classifier's losses, found again on the way back
 private:
  struct Step {
    Layer* layer;
    bool reads_encoder = true, made_memory = false;
    Shape memory_shape{};
  };
  struct Place {
    Unit* unit;
    int param, part;
  };
  static bool is_learned(const Place& at) { return at.unit->params()[at.param].is_learned(); }
  Shape activation_shape() const { return {setting_.samples, setting_.rows, setting_.width}; }
  Shape memory_shape() const { return {setting_.samples, setting_.memory_rows, setting_.width}; }
  DType gradient_dtype() const { return setting_.dtype == DType::f64 ? DType::f64 : DType::f32; }
  void put_all(const Tensor& t, const std::vector<double>& numbers) {
    ASSERT_EQ(t.count(), static_cast<std::int64_t>(numbers.size()));
    std::vector<std::byte> bytes(t.bytes());
    host_->convert({{const_cast<double*>(numbers.data()), {t.count()}, DType::f64},
                    {bytes.data(), {t.count()}, t.dtype}});
    backend_->upload(bytes.data(), t);
  }
  std::vector<double> all(const Tensor& t) const {
    std::vector<std::byte> bytes(t.bytes());
    backend_->download(t, bytes.data());
    const Tensor here{bytes.data(), t.shape, t.dtype};
    std::vector<double> numbers(t.count());
    for (std::int64_t i = 0; i < t.count(); ++i) numbers[i] = read(here, i);
    return numbers;
  }
  /// visit_one(shard, element in the shard, element of the whole piece, is padding) for all elements of a
  /// piece on all shards.
  template <class F>
  void visit(const Place& place, const F& visit_one) const {
    const ParamSpec& spec = place.unit->params()[place.param];
    const Piece& piece = spec.pieces[place.part];
    const std::int64_t cut_rows = spec.split == Split::out ? setting_.shards : 1,
                       cut_columns = spec.split == Split::in ? setting_.shards : 1;
    const std::int64_t rows = piece.rows / cut_rows, columns = spec.width() / cut_columns;
    std::int64_t above = 0;
    for (int i = 0; i < place.part; ++i) above += spec.pieces[i].rows / cut_rows;
    for (int s = 0; s < place.unit->local_shards(place.param); ++s)
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) {
          const std::int64_t whole_row = cut_rows > 1 ? s * rows + r : r,
                             whole_column = cut_columns > 1 ? s * columns + c : c;
          visit_one(s, (above + r) * columns + c, whole_row * spec.width() + whole_column,
                    whole_row >= piece.rows - piece.padding);
        }
  }
  void fill_values(Unit& unit) {
    for (int param = 0; param < static_cast<int>(unit.params().size()); ++param) {
      const ParamSpec& spec = unit.params()[param];
      for (int part = 0; part < static_cast<int>(spec.pieces.size()); ++part) {
        const Piece& piece = spec.pieces[part];
        const std::string name = unit.name() + "." + piece.name;
        const bool gain = spec.initial.kind == Initial::Kind::one,
                   product = spec.split != Split::none || spec.product;
        const double deviation =
            product && spec.columns > 0 ? 1.5 / std::sqrt(static_cast<double>(spec.columns)) : 0.3;
        values[name] = normals(name, (piece.rows - piece.padding) * spec.width(), deviation, gain ? 1 : 0);
        places_[name] = {&unit, param, part};
        write(name);
      }
    }
  }
  std::vector<double> gradient(const std::string& name, const Place& place) const {
    std::vector<double> sum(values.at(name).size());
    const ParamSpec& spec = place.unit->params()[place.param];
    const UnitGradients& here = place.unit->gradients();
    for (int use = 0; use < spec.uses; ++use) {
      for (int s = 0; spec.form == Form::shards && s < setting_.shards; ++s)
        std::ranges::transform(sum, all(here.of(place.param, use, s)), sum.begin(), std::plus{});
      if (spec.form == Form::shards) continue;
      std::vector<std::vector<double>> shards;
      for (int shard = 0; shard < place.unit->local_shards(place.param); ++shard)
        shards.push_back(all(here.of(place.param, use, shard)));
      visit(place, [&](int shard, std::int64_t element, std::int64_t whole_element, bool padding) {
        const auto count = static_cast<std::int64_t>(shards[shard].size());
        const std::int64_t parts = spec.form == Form::rows ? here.of(place.param, use, shard).shape[0] : 1;
        for (std::int64_t at = element; at < count; at += count / parts) {
          const double g = shards[shard][at];
          if (!padding) sum[whole_element] += g;
          else if (g != 0) ADD_FAILURE() << name << ": a padded row has learned";
        }
      });
    }
    return sum;
  }

  void make_batch() {
    const Setting& s = setting_;
    MicroBatch& batch = tape_.batch;
    batch.samples = s.samples;
    batch.first_sample = 3;
    batch.step = 2;
    tape_.loss_factor = 0.25;
    tape_.weight_gradients = s.weight_gradients;
    const Shape shape{s.samples, s.rows}, source{s.samples, s.source_rows > 0 ? s.source_rows : s.rows};
    const auto ids = [&](const std::string& name, const Shape& of, std::int64_t kinds) {
      std::vector<std::int32_t> drawn(of.count());
      const RandomStream stream{3, purpose_of(name)};
      for (std::size_t i = 0; i < drawn.size(); ++i)
        drawn[i] = static_cast<std::int32_t>(stream.word(i) % kinds);
      return drawn;
    };
    const auto there = [&](const std::vector<std::int32_t>& numbers, const Shape& of) {
      const Tensor t = batch_.take(of, DType::i32);
      backend_->upload(numbers.data(), t);
      return t;
    };
    if (s.vocabulary > 0) {
      const Shape judged{s.samples, s.targets > 0 ? s.targets : s.rows};
      std::vector<std::int32_t> tokens = ids("tokens", shape, s.vocabulary),
                                targets = ids("targets", judged, s.vocabulary);
      targets[1] = targets[judged[1]] = -1;
      tokens[2] = tokens[5];  // a row that two tokens add to
      batch.fields.set(field::tokens, there(tokens, shape));
      batch.fields.set(field::targets, there(targets, judged));
      tape_.losses = batch_.take(judged, gradient_dtype());
      backend_->fill({tape_.hits = batch_.take({Hits::places}, DType::f64), 0});
    }
    if (s.picks) {
      std::vector<std::int32_t> rows(s.samples * s.targets);
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(rows.size()); ++i)
        rows[i] = static_cast<std::int32_t>((3 * i + 1) % s.rows);
      rows[s.targets] = -1;  // whose target does not count
      batch.fields.set(field::picked, there(rows, {s.samples, s.targets}));
    }
    if (s.picture.channels > 0) {
      const Tensor pictures =
          batch_.take({s.samples, s.picture.channels * s.picture.height, s.picture.width}, DType::u8);
      std::vector<std::uint8_t> bytes(pictures.count());
      for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(RandomStream{3, purpose_of("picture")}.word(i));
      backend_->upload(bytes.data(), pictures);
      batch.fields.set(field::picture, pictures);
    }
    if (s.types > 0) batch.fields.set(field::types, there(ids("types", shape, s.types), shape));
    if (s.sources) {
      if (s.vocabulary > 0)
        batch.fields.set(field::source, there(ids("source", source, s.vocabulary), source));
      std::vector<std::int32_t> lengths;
      for (std::int64_t i = 0; i < s.samples; ++i)
        lengths.push_back(static_cast<std::int32_t>(std::max<std::int64_t>(5 - 2 * i, 0)));
      batch.fields.set(field::source_lengths, there(lengths, {s.samples}));
    }
  }

  Boundary forward(bool for_backward) {
    tape_.mode = Tape::Mode::train;
    Boundary b;
    if (setting_.activation)
      put_all(b.activation = tape_.output(activation_shape(), setting_.dtype), values["input.activation"]);
    if (setting_.memory)
      put_all(b.encoder_output = tape_.output(memory_shape(), setting_.dtype), values["input.memory"]);
    for (Step& step : steps_) {
      if (!step.reads_encoder) b.encoder_output = {};
      // A classifier that saves finds its losses only on the way back.
      if (setting_.classifier && !for_backward && &step == &steps_.back()) tape_.mode = Tape::Mode::discard;
      b = step.layer->forward(b, tape_);
      step.made_memory = static_cast<bool>(b.encoder_output);
      step.memory_shape = b.encoder_output.shape;
    }
    return b;
  }

  Tensor of_loss(const Tensor& out, DType dtype, const std::string& name) {
    const Tensor d = tape_.scratch(out.shape, dtype);
    put_all(d, weights_of(out, name));
    return d;
  }
  /// What the loss weighs each number of an output with.
  std::vector<double> weights_of(const Tensor& out, const std::string& name) const {
    std::vector<double> weights = normals(name, out.count(), 1);
    const std::int64_t rows = out.shape[1], cols = out.shape[2];
    for (std::int64_t i = 0; setting_.counted_rows > 0 && i < out.count(); ++i)
      if (i / cols % rows >= setting_.counted_rows) weights[i] = 0;
    return weights;
  }
  double sum_of_losses() {
    long double sum = 0;
    for (double loss : all(tape_.losses)) sum += loss;
    tape_.clear();
    return static_cast<double>(sum) * tape_.loss_factor;
  }

  Setting setting_;
  Memory memory_;
  Memory host_memory_{Memory::Kind::host};
  std::unique_ptr<Backend> host_ = make_cpu_backend(host_memory_, 1, "auto");  ///< rounds what is uploaded
  std::unique_ptr<Backend> backend_;
  Communicator tensor_;
  LayerContext context_;
  Arena kept_, scratch_, batch_;
  Tape tape_;
  std::vector<std::unique_ptr<Unit>> owned_units_;
  std::vector<Unit*> units_;
  std::vector<std::unique_ptr<Layer>> owned_;
  std::vector<Step> steps_;
  std::map<std::string, Place> places_;
};

}  // namespace mindpipe::testing
