// SPDX-License-Identifier: Apache-2.0
// Functions of vectors of kLanes floats. No guard: it is included for every width, each in a namespace and for
// instructions of its own.

typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
typedef float Unaligned __attribute__((vector_size(kLanes * sizeof(float)), aligned(4)));
typedef uint32_t Bits __attribute__((vector_size(kLanes * sizeof(uint32_t))));

/*! Two vectors, for functions below that are of several steps: those of one need not wait for the other's. */
struct Pair {
  Vector a, b;
};
UIR_INLINE Pair operator+(const Pair& x, const Pair& y) { return {x.a + y.a, x.b + y.b}; }
UIR_INLINE Pair operator-(const Pair& x, const Pair& y) { return {x.a - y.a, x.b - y.b}; }
UIR_INLINE Pair operator*(const Pair& x, const Pair& y) { return {x.a * y.a, x.b * y.b}; }
UIR_INLINE Pair operator+(const Pair& x, float y) { return {x.a + y, x.b + y}; }
UIR_INLINE Pair operator-(const Pair& x, float y) { return {x.a - y, x.b - y}; }
UIR_INLINE Pair operator*(const Pair& x, float y) { return {x.a * y, x.b * y}; }

/*! Keeps NaN. */
UIR_INLINE Vector Held(const Vector& x, float low, float high) {
  const Vector raised = x < low ? Vector{} + low : x;
  return raised > high ? Vector{} + high : raised;
}
UIR_INLINE Pair Held(const Pair& x, float low, float high) { return {Held(x.a, low, high), Held(x.b, low, high)}; }

/*! The power of two whose exponent, as a float holds it, is in the last bits of x. */
UIR_INLINE Vector FromExponent(const Vector& x) { return reinterpret_cast<Vector>(reinterpret_cast<Bits>(x) << 23); }
UIR_INLINE Pair FromExponent(const Pair& x) { return {FromExponent(x.a), FromExponent(x.b)}; }

/*! Where the result of `Exp` stops growing, that it be a normal number. */
constexpr float kHighest = 88.37f;

//! e^x, or of -x, within 2 ulp, NaN for NaN (Cephes' expf: 2^n e^r, |r| <= ln(2) / 2). Arguments are held where the
//! result is a normal number, and up to `highest`.
template <bool kOfMinus = false, typename V>
UIR_INLINE V ExpOf(const V& given, float highest = kHighest) {
  const V x = kOfMinus ? Held(given, -highest, 87.33f) : Held(given, -87.33f, highest);
  constexpr float kSign = kOfMinus ? -1.0f : 1.0f;
  const float kRound = 12582912.0f + 127.0f;  // 1.5 * 2^23 + 127: the sum's last bits are the exponent of 2^n
  const V shifted = x * (kSign * 1.44269504088896341f) + kRound, n = shifted - kRound;
  const V high = n * -0.693359375f;  // ln(2) in two parts; the product with the first is exact without FMA too
  const V r = (kOfMinus ? high - x : high + x) + n * 2.12194440e-4f;
  V p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return (p * r * r + r + 1.0f) * FromExponent(shifted);
}
UIR_INLINE void Exp(Vector& x) { x = ExpOf(x); }

//! x / y within 2 ulp, for y normal and below 2^126. Where the includer has an estimate of 14 bits (UIR_ESTIMATE), a
//! step of Newton's takes the place of a division of many cycles.
UIR_INLINE Vector Quotient(const Vector& x, const Vector& y) {
#ifdef UIR_ESTIMATE
  const Vector inverse = UIR_ESTIMATE(y), error = 1.0f - y * inverse;
  return x * (inverse * error + inverse);
#else
  return x / y;
#endif
}
UIR_INLINE Pair Quotient(const Pair& x, const Pair& y) { return {Quotient(x.a, y.a), Quotient(x.b, y.b)}; }

UIR_INLINE void Sigmoid(Vector& x) { x = Quotient(Vector{} + 1.0f, ExpOf<true>(x) + 1.0f); }

//! tanh x = above / below within 3 ulp, below up to 600: 2 n d / (n^2 + d^2) of polynomials n and d, as kernels of ours
//! compute it (target/cpu/vector_math/saturating.py); NaN for NaN.
template <typename V>
UIR_INLINE void TanhRatio(const V& given, V& above, V& below) {
  const V x = Held(given, -9.011f, 9.011f), t = x * x;
  V n = t * 5.2737774240085855e-05f + 0.0137344840914011f;
  n = (n * t + 0.46123170852661133f) * x;
  V d = t * 1.1354067055435735e-06f + 0.0011133874068036675f;
  d = d * t + 0.10434088855981827f;
  d = d * t + 0.9224634170532227f;
  above = (n + n) * d;
  below = n * n + d * d;
}
template <typename V>
UIR_INLINE void Tanh(V& x) {
  V above, below;
  TanhRatio(x, above, below);
  x = Quotient(above, below);
}

//! erf within 4 ulp: 2 n d / (n^2 + d^2) of polynomials n and d, as kernels of ours compute it
//! (target/cpu/vector_math/saturating.py); NaN for NaN.
UIR_INLINE void Erf(Vector& x) {
  x = x > 4.0f ? Vector{} + 4.0f : x;
  x = x < -4.0f ? Vector{} - 4.0f : x;
  const Vector t = x * x;
  Vector n = t * -2.495304670446785e-06f + 0.0005166563205420971f;
  n = n * t + 0.010272825136780739f;
  n = n * t + 0.08811889588832855f;
  n = (n * t + 0.49376875162124634f) * x;
  Vector d = t * 2.2404918126994744e-05f + 0.002948824083432555f;
  d = d * t + 0.034461092203855515f;
  d = d * t + 0.16933535039424896f;
  d = d * t + 0.8751823306083679f;
  x = 2.0f * n * d / (n * n + d * d);
}

/*! Up to a vector of floats; lanes beyond `count` are 0, or stay unwritten. */
UIR_INLINE void Get(Vector& to, const float* from, int64_t count) {
  if (count >= kLanes) {
    to = *reinterpret_cast<const Unaligned*>(from);
  } else {
    to = Vector{};
    for (int64_t lane = 0; lane < count; ++lane) to[lane] = from[lane];
  }
}
UIR_INLINE void Put(float* to, const Vector& from, int64_t count) {
  if (count >= kLanes) {
    *reinterpret_cast<Unaligned*>(to) = from;
  } else {
    for (int64_t lane = 0; lane < count; ++lane) to[lane] = from[lane];
  }
}
