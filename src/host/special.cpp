// SPDX-License-Identifier: Apache-2.0
// Special functions of two variables whose number of steps depends on the values.
#include <cmath>
#include <limits>
#include <numbers>

#include "host/arrays.h"
#include "host/functions.h"

namespace baton::host {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi;

/// x^a exp(-x) / Gamma(a), which does not overflow where the factors would.
double Density(double a, double x) {
  if (a < 10) return std::exp(a * std::log(x) - x - std::lgamma(a));
  // Stirling's series: Gamma(a) = sqrt(2 pi / a) (a / e)^a exp(r).
  double b = 1 / (a * a), r = (1.0 / 12 + b * (-1.0 / 360 + b * (1.0 / 1260 - b / 1680))) / a, d = (x - a) / a;
  return std::sqrt(a / (2 * kPi)) * std::exp(a * (std::log1p(d) - d) - r);
}

/// The regularised incomplete gamma functions, the lower and the upper one, of a > 0 and x > 0, both finite (Abramowitz
/// and Stegun 6.5): each is computed where it is the smaller one.
double IncompleteGammaOf(double a, double x, bool upper) {
  if (a > 1e5 && std::fabs(x - a) < 0.3 * a) {
    // The uniform expansion (DLMF 8.12.3) with its first term: what is left out is of the order of a^-1.5 / 500.
    double d = (x - a) / a, half = d - std::log1p(d), eta = std::copysign(std::sqrt(2 * half), d);
    double rest = std::fabs(d) < 1e-4 ? -1.0 / 3 + eta / 12 : 1 / d - 1 / eta;
    double tail = std::exp(-a * half) / std::sqrt(2 * kPi * a) * rest;
    double sign = upper ? 1 : -1;
    return 0.5 * std::erfc(sign * eta * std::sqrt(a / 2)) + sign * tail;
  }
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (double k = a + 1; term > sum * 1e-17; k += 1) sum += term *= x / k;
    double lower = Density(a, x) * sum;
    return upper ? 1 - lower : lower;
  }
  // The continued fraction 6.5.31, from its head by Lentz's method.
  double b = x + 1 - a, c = 1e300, d = 1 / b, value = d, change = 0;
  for (int i = 1; std::fabs(change - 1) > 1e-15 && i < 1000000; ++i) {
    double numerator = -i * (i - a);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    value *= change = d * c;
  }
  double above = Density(a, x) * value;
  return upper ? above : 1 - above;
}

double IncompleteGammaAt(double a, double x, bool upper) {
  if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0) || (std::isinf(a) && std::isinf(x))) return kNaN;
  if (a == 0 || std::isinf(x)) return upper ? 0 : 1;
  if (x == 0 || std::isinf(a)) return upper ? 1 : 0;
  return IncompleteGammaOf(a, x, upper);
}

enum class Family { kLegendre, kLaguerre, kHermite, kHermiteE };

/// The polynomial of degree n by its recurrence, in the elements' type. 0 below degree 0; Hermite's are NaN beyond
/// `most`, where they overflow, and so are all beyond 2^24, up to where float32 counts.
template <class T>
T PolynomialAt(Family family, T x, int64_t n, int64_t most) {
  if (n < 0) return 0;
  if (n == 0) return 1;
  bool hermite = family == Family::kHermite || family == Family::kHermiteE;
  if (n > (hermite ? most : 1 << 24)) return std::numeric_limits<T>::quiet_NaN();
  if (family == Family::kLegendre && std::fabs(x) == 1) return x > 0 || n % 2 == 0 ? 1 : -1;
  if (family == Family::kLaguerre && x == 0) return 1;
  T before = 1, at = family == Family::kHermite ? x + x : family == Family::kLaguerre ? 1 - x : x;
  for (int64_t k = 1; k < n && at == at; ++k) {
    T next = 0, i = static_cast<T>(k);
    switch (family) {
      case Family::kLegendre:
        next = ((i + i + 1) * x * at - i * before) / (i + 1);
        break;
      case Family::kLaguerre:
        next = ((i + i + (1 - x)) * at - i * before) / (i + 1);
        break;
      case Family::kHermite:
        next = (x + x) * at - (i + i) * before;
        break;
      case Family::kHermiteE:
        next = x * at - i * before;
        break;
    }
    before = at;
    at = next;
  }
  return at;
}

Family FamilyOf(const Params& p) {
  const std::string& name = p.Text("family");
  if (name == "legendre") return Family::kLegendre;
  if (name == "laguerre") return Family::kLaguerre;
  if (name == "hermite") return Family::kHermite;
  if (name == "hermite_e") return Family::kHermiteE;
  p.Fail(Cat("there are no polynomials `", name, "`"));
}

/// Two arrays of one shape and a floating dtype.
void WantAlike(const Params& p, const Arrays& in) {
  Want(p, in, 0, in[0].dtype().is_floating(), "an array of floats");
  Want(p, in, 1, in[1].dtype() == in[0].dtype() && in[1].shape() == in[0].shape(), "of the other's shape and dtype");
}

}  // namespace

Arrays IncompleteGamma(const Params& p, const Arrays& in) {
  WantAlike(p, in);
  bool upper = p.Bool("upper");
  NDArray out = NDArray::Empty(in[0].shape(), in[0].dtype());
  for (int64_t i = 0, n = out.numel(); i < n; ++i) {
    out.SetDouble(i, IncompleteGammaAt(in[0].GetDouble(i), in[1].GetDouble(i), upper));
  }
  return {out};
}

Arrays OrthogonalPolynomial(const Params& p, const Arrays& in) {
  WantAlike(p, in);
  Family family = FamilyOf(p);
  bool wide = in[0].dtype().bits() == 64;
  NDArray out = NDArray::Empty(in[0].shape(), in[0].dtype());
  for (int64_t i = 0, n = out.numel(); i < n; ++i) {
    double x = in[0].GetDouble(i), degree = in[1].GetDouble(i);
    int64_t whole = degree > -1 && degree < 9e18 ? static_cast<int64_t>(degree) : -1;
    out.SetDouble(i, wide ? PolynomialAt(family, x, whole, 512)
                          : static_cast<double>(PolynomialAt(family, static_cast<float>(x), whole, 128)));
  }
  return {out};
}

namespace {
const Register kSpecial[] = {{"incomplete_gamma", 2, IncompleteGamma},
                             {"orthogonal_polynomial", 2, OrthogonalPolynomial}};
}
}  // namespace baton::host
