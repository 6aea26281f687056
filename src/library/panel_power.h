// SPDX-License-Identifier: Apache-2.0
// What tiles of attention do by hand with vectors of UIR_VECTORS bits: greatest numbers and powers of two. No guard: it
// is included behind vector_math.h, in a namespace and for instructions of its own.

#if UIR_VECTORS == 512
/*! The larger numbers; where one is NaN, `b`. */
UIR_INLINE Vector Max(const Vector& a, const Vector& b) { return (Vector)_mm512_max_ps((__m512)a, (__m512)b); }
/*! Whether a number of one is not the other's. */
UIR_INLINE bool Differ(const Vector& a, const Vector& b) {
  return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NEQ_UQ) != 0;
}

/*! Powers of two in a table: 2^(i/32) as bits, less the i that is added to the exponent with the rest of it. */
constexpr int kPowerBits = 5;
constexpr uint32_t kPowers[1 << kPowerBits] = {
    0x3f800000, 0x3f7ecd87, 0x3f7daac3, 0x3f7c980f, 0x3f7b95c2, 0x3f7aa43a, 0x3f79c3d3, 0x3f78f4f0,
    0x3f7837f0, 0x3f778d3a, 0x3f76f532, 0x3f767043, 0x3f75fed7, 0x3f75a15b, 0x3f75583f, 0x3f7523f6,
    0x3f7504f3, 0x3f74fbaf, 0x3f7508a4, 0x3f752c4d, 0x3f75672a, 0x3f75b9be, 0x3f76248c, 0x3f76a81e,
    0x3f7744fd, 0x3f77fbb8, 0x3f78ccdf, 0x3f79b907, 0x3f7ac0c7, 0x3f7be4ba, 0x3f7d257d, 0x3f7e83b3};
/*! Of the last bits of numbers. */
UIR_INLINE Bits PowersAt(const Vector& at) {
  return (Bits)_mm512_permutex2var_epi32(_mm512_loadu_si512(kPowers), (__m512i)at, _mm512_loadu_si512(kPowers + 16));
}
/*! q of 2^r = 1 + r q(r), |r| <= 1/64, of least relative error (5.3e-8). */
UIR_INLINE Vector Quotient2(const Vector& r) { return r * 0.240226497f + 0.69315733f; }
#else
/*! The larger numbers; where one is NaN, `b`. */
UIR_INLINE Vector Max(const Vector& a, const Vector& b) { return (Vector)_mm256_max_ps((__m256)a, (__m256)b); }
/*! Whether a number of one is not the other's. */
UIR_INLINE bool Differ(const Vector& a, const Vector& b) {
  return _mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_NEQ_UQ)) != 0;
}

/*! Powers of two in a table: 2^(i/8) as bits, less the i that is added to the exponent with the rest of it. */
constexpr int kPowerBits = 3;
constexpr Bits kPowers = {0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7,
                          0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7};
/*! Of the last bits of numbers. */
UIR_INLINE Bits PowersAt(const Vector& at) { return (Bits)_mm256_permutevar8x32_epi32((__m256i)kPowers, (__m256i)at); }
/*! q of 2^r = 1 + r q(r), |r| <= 1/16, of least relative error (2.6e-8). */
UIR_INLINE Vector Quotient2(const Vector& r) { return (r * 0.0554962218f + 0.2402576298f) * r + 0.6931472143f; }
#endif

/*! A score that nothing reaches, and an exponent of two whose power is zero, as `PowersOfTwo` computes it. */
constexpr float kClosed = -std::numeric_limits<float>::infinity(), kZero = -127.0f;

//! 2^x of -127 <= x < 127 within 1.2 ulp in vectors of eight, 1.8 of sixteen, zero of -127, of kCount vectors that need
//! not wait for each other: a power of the table and a polynomial of what is left. NaN for NaN.
template <int kCount>
UIR_INLINE void PowersOfTwo(Vector* x) {
  constexpr int kShift = 23 - kPowerBits;
  constexpr float kRound = 1.5f * (1 << kShift);  // a sum with it has as its last bits what the table is read by
  Vector power[kCount], q[kCount];
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) {
    const Vector shifted = x[i] + kRound;
    x[i] -= shifted - kRound;
    power[i] = reinterpret_cast<Vector>(PowersAt(shifted) + (reinterpret_cast<Bits>(shifted) << kShift));
  }
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) q[i] = Quotient2(x[i]);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) x[i] = q[i] * (x[i] * power[i]) + power[i];
}

/*! Of -infinity too, and of what would be less than a normal number: zero, or next to it. */
template <int kCount>
UIR_INLINE void HeldPowersOfTwo(Vector* x) {
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) x[i] = Max(Vector{} + kZero, x[i]);
  PowersOfTwo<kCount>(x);
}
