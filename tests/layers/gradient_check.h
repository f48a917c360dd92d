#pragma once
#include <algorithm>
#include <set>

#include "harness.h"

namespace mindpipe::testing {

inline double norm_of(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return std::sqrt(sum);
}

/// The root mean square of all gradients: what "as good as zero" is measured by.
inline double typical(const Whole& gradients) {
  double sum = 0, count = 0;
  for (const auto& [name, g] : gradients) {
    sum += norm_of(g) * norm_of(g);
    count += static_cast<double>(g.size());
  }
  return std::sqrt(sum / count);
}

/// d loss / d (amount of `direction`) by five-point central differences; `values` are as before afterwards.
inline double difference(Subject& subject, const std::string& name, const std::vector<double>& direction) {
  const std::vector<double> before = subject.values.at(name);
  const double step = subject.setting().step;
  const auto loss_at = [&](double amount) {
    std::vector<double>& value = subject.values.at(name);
    for (std::size_t i = 0; i < value.size(); ++i) value[i] = before[i] + amount * step * direction[i];
    subject.write(name);
    return subject.loss();
  };
  const double near = loss_at(1) - loss_at(-1), far = loss_at(2) - loss_at(-2);
  subject.values.at(name) = before;
  subject.write(name);
  return (8 * near - far) / (12 * step);
}

/// The places of a tensor that are looked at alone: where its gradient is largest, and two random ones.
inline std::set<std::size_t> places_of(const std::string& name, const std::vector<double>& gradient) {
  std::set<std::size_t> places{static_cast<std::size_t>(
      std::max_element(gradient.begin(), gradient.end(),
                       [](double a, double b) { return std::abs(a) < std::abs(b); }) -
      gradient.begin())};
  for (std::uint64_t i = 0; i < 2; ++i)
    places.insert(RandomStream{17, purpose_of(name)}.word(i) % gradient.size());
  return places;
}

/// The largest relative error of each tensor's gradient: against differences along one random direction of
/// the whole tensor and at single places. Numbers below a hundredth of all gradients' size count as that:
/// differences cannot see them as well.
inline std::map<std::string, double> errors_of(Subject& subject, const Whole& gradients) {
  const double least = 1e-2 * typical(gradients);
  std::map<std::string, double> errors;
  for (const auto& [name, gradient] : gradients) {
    const auto compare = [&](const std::vector<double>& direction) {
      double ours = 0;
      for (std::size_t i = 0; i < gradient.size(); ++i) ours += gradient[i] * direction[i];
      const double theirs = difference(subject, name, direction);
      errors[name] = std::max(errors[name],
                              std::abs(ours - theirs) / std::max({std::abs(ours), std::abs(theirs), least}));
    };
    compare(normals("direction." + name, static_cast<std::int64_t>(gradient.size()), 1));
    for (std::size_t place : places_of(name, gradient)) {
      std::vector<double> direction(gradient.size());
      direction[place] = 1;
      compare(direction);
    }
  }
  return errors;
}

/// Largest difference of two sets of gradients, tensor by tensor, relative to the tensor's norm.
inline void expect_near(const Whole& ours, const Whole& theirs, double tolerance, const std::string& what,
                        const std::vector<std::string>& except = {}) {
  ASSERT_EQ(ours.size(), theirs.size());
  const double least = 1e-3 * typical(theirs);
  for (const auto& [name, a] : ours) {
    if (std::count(except.begin(), except.end(), name) > 0) continue;
    const std::vector<double>& b = theirs.at(name);
    ASSERT_EQ(a.size(), b.size()) << name;
    std::vector<double> d(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) d[i] = a[i] - b[i];
    EXPECT_LE(norm_of(d) / std::max(norm_of(b), least * std::sqrt(static_cast<double>(b.size()))), tolerance)
        << what << ": " << name;
  }
}

/// The whole check of a network in f64: differences and analysis agree to 1e-7 on T = 1, 2 and 4 shards, no
/// tensor's gradient is too small for its sign to be seen, the gradients are the same for all T to 1e-12, and
/// products that are put off give equal bits.
inline void check_gradients(Setting setting, const Subject::Build& build) {
  setting.dtype = DType::f64;
  Whole first;
  for (int shards : {1, 2, 4}) {
    SCOPED_TRACE(fmt::format("{} logical shards", shards));
    setting.shards = shards;
    Subject subject(setting, build);
    const Whole gradients = subject.gradients();
    if (setting.classifier) {
      EXPECT_EQ(subject.loss(), subject.loss_of_backward) << "forward and backward find the same losses";
    }
    for (const auto& [name, error] : errors_of(subject, gradients))
      EXPECT_LE(error, setting.tolerance) << name;
    for (const auto& [name, g] : gradients) {
      const bool without =
          std::count(setting.without_gradient.begin(), setting.without_gradient.end(), name) > 0;
      if (without) {
        EXPECT_LE(norm_of(g), 1e-10 * typical(gradients)) << name;
      } else {
        EXPECT_GE(norm_of(g), 1e-2 * typical(gradients)) << name << ": a flipped sign would not be seen";
      }
    }
    if (shards == 1) first = gradients;
    else expect_near(gradients, first, 1e-12, "shards", setting.without_gradient);
    setting.weight_gradients = Tape::WeightGradients::later;
    EXPECT_TRUE(Subject(setting, build).gradients() == gradients) << "products that are put off differ";
    setting.weight_gradients = Tape::WeightGradients::now;
  }
}

/// With f32 or bf16 activations T = 2 and T = 1 differ in rounding only (where the gradient is zero, rounding
/// is all there is).
inline void check_rounding(Setting setting, const Subject::Build& build) {
  for (const auto& [dtype, tolerance] :
       {std::pair{DType::f32, 1e-5}, std::pair{DType::bf16, setting.tolerance_of_bf16}}) {
    setting.dtype = dtype;
    setting.shards = 1;
    Subject alone(setting, build);
    setting.shards = 2;
    Subject shared(setting, build);
    expect_near(shared.gradients(), alone.gradients(), tolerance, fmt::format("{}", dtype),
                setting.without_gradient);
    // A loss that is a sum of random signs may be near zero: what it is measured by is the size of its parts.
    const double size = std::sqrt(static_cast<double>(setting.samples * setting.rows * setting.width));
    EXPECT_NEAR(shared.loss(), alone.loss(), tolerance * std::max(size, std::abs(alone.loss())))
        << name_of(dtype);
  }
}

}  // namespace mindpipe::testing
