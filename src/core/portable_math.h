#pragma once

/// Functions that bits of a training depend on. They are made of additions, products and divisions of
/// doubles, so they have the same bits on every machine, whatever its C library is. Results are right to
/// 2^-72 of themselves before they are rounded once: an argument whose result is not the double next to the
/// true value is one of a hundred thousand. Nothing is inline: kernels of one instruction set call them, too.
namespace mindpipe::portable {

/// Counts on where any result of these functions changes: a part of the arithmetic's name.
inline constexpr int version = 1;

double exp(double x);
double log(double x);            ///< minus infinity at 0, NaN below
double pow(double x, double y);  ///< x is not negative

/// Sine and cosine of one angle.
struct SineCosine {
  double sine, cosine;
};
SineCosine sine_cosine(double angle);  ///< an angle is at most 2^40
double sin(double angle);
double cos(double angle);

}  // namespace mindpipe::portable
