#pragma once
#include <cmath>
#include <cstdint>

#include "core/portable_math.h"
#include "operations/either_device.h"

// How gradients are scaled and clipped, or their step skipped.
namespace mindpipe {

/// A step's decisions and answers, one f64 tensor in the backend's memory: updates read it there, so that no
/// host is asked. Zeros before the first step.
struct Decision {
  enum Place : std::uint8_t {
    gradient_factor,    ///< clip factor times what undoes the loss constant, rounded to f32
    skipped,            ///< not 0: the step changes nothing
    applied_steps,      ///< so far, with this one
    first_correction,   ///< 1 - beta1^applied_steps
    second_correction,  ///< 1 / sqrt(1 - beta2^applied_steps)
    loss,               ///< mean over the valid tokens of the whole batch
    gradient_norm,      ///< norm of the mean gradient, before clipping
    places
  };
};

/// What is known of a step before its gradients are.
struct StepRule {
  double loss_factor = 1;      ///< the constant that backward started from
  double valid = 0;            ///< tokens of the whole batch that count
  double clip = 0;             ///< the largest norm; 0: any
  float beta1 = 0, beta2 = 0;  ///< AdamW's
};

/// base^exponent of a base that is not negative; CUDA's on a GPU.
MINDPIPE_EITHER_DEVICE inline double power_of(double base, double exponent) {
#ifdef __CUDA_ARCH__
  return pow(base, exponent);
#else
  return portable::pow(base, exponent);
#endif
}

/// Decides a step from its loss, summed over tokens, and its gradient's square: how far gradients are scaled
/// down, whether they are applied at all. A step without a valid token, or whose loss or gradient is not
/// finite, is skipped and not counted.
MINDPIPE_EITHER_DEVICE inline void clip_and_scale_step(const StepRule& rule, double loss, double squares,
                                                       double* decision) {
  const bool is_finite = squares - squares == 0 && loss - loss == 0;
  const double whole = rule.valid == 0 ? 0 : 1 / (rule.loss_factor * rule.valid),
               norm = sqrt(squares) * whole;
  double factor = whole;
  if (rule.clip > 0 && norm > rule.clip) factor *= rule.clip / (norm + 1e-6);
  const bool applied = rule.valid > 0 && is_finite;
  if (applied) {
    const double steps = decision[Decision::applied_steps] + 1;
    decision[Decision::applied_steps] = steps;
    decision[Decision::first_correction] = 1 - power_of(static_cast<double>(rule.beta1), steps);
    decision[Decision::second_correction] = 1 / sqrt(1 - power_of(static_cast<double>(rule.beta2), steps));
  }
  decision[Decision::gradient_factor] = static_cast<double>(static_cast<float>(factor));
  decision[Decision::skipped] = applied ? 0 : 1;
  decision[Decision::loss] = rule.valid == 0 ? 0 : loss / rule.valid;
  decision[Decision::gradient_norm] = norm;
}

}  // namespace mindpipe
