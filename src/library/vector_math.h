// SPDX-License-Identifier: Apache-2.0
// Functions of vectors of kLanes floats. No guard: it is included for every width, each in a namespace and for
// instructions of its own.

typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
typedef float Unaligned __attribute__((vector_size(kLanes * sizeof(float)), aligned(4)));
typedef uint32_t Bits __attribute__((vector_size(kLanes * sizeof(uint32_t))));

//! e^x within 2 ulp, NaN for NaN (Cephes' expf: 2^n e^r, |r| <= ln(2) / 2). Arguments are held where the result is a
//! normal number.
UIR_INLINE void Exp(Vector& x) {
  x = x > 88.37f ? Vector{} + 88.37f : x;
  x = x < -87.33f ? Vector{} - 87.33f : x;
  const float kRound = 12582912.0f;  // 1.5 * 2^23: the sum's last bits are the nearest integer
  const Vector shifted = x * 1.44269504088896341f + kRound, n = shifted - kRound;
  const Vector r = x - n * 0.693359375f + n * 2.12194440e-4f;
  Vector p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const Bits scale = (reinterpret_cast<Bits>(shifted) << 23) + 0x3f800000u;
  x = (p * r * r + r + 1.0f) * reinterpret_cast<Vector>(scale);
}

//! 1 / x within 1 ulp, for normal numbers below 2^126. Where the includer has an estimate of 14 bits (UIR_ESTIMATE), a
//! step of Newton's takes the place of a division of many cycles.
UIR_INLINE Vector Inverse(const Vector& x) {
#ifdef UIR_ESTIMATE
  const Vector y = UIR_ESTIMATE(x), error = 1.0f - x * y;
  return y * error + y;
#else
  return 1.0f / x;
#endif
}

UIR_INLINE void Sigmoid(Vector& x) {
  x = -x;
  Exp(x);
  x = Inverse(1.0f + x);
}

/*! tanh within 3 ulp (Cephes' tanhf near 0, exponentials elsewhere). */
UIR_INLINE void Tanh(Vector& x) {
  const Bits bits = reinterpret_cast<Bits>(x), sign = bits & 0x80000000u, magnitude = bits ^ sign;
  const Vector a = reinterpret_cast<Vector>(magnitude), z = x * x;
  Vector p = z * -5.70498872745e-3f + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const Vector small = p * z * x + x;
  Vector power = 2.0f * a;
  Exp(power);
  const Vector large = 1.0f - 2.0f * Inverse(1.0f + power);
  const Bits signed_large = reinterpret_cast<Bits>(large) | sign;
  x = a < 0.625f ? small : reinterpret_cast<Vector>(signed_large);
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
