// SPDX-License-Identifier: Apache-2.0
// Multiply-adds by hand, for vectors of UIR_VECTORS bits. No guard: it is included behind vector_math.h, in a namespace
// and for instructions of its own.

//! Sums of a row += a vector of each of kVectors times a number. By hand: GCC exchanges sums and factors where it may,
//! and then has no register for some of the sums.
template <int kVectors>
UIR_INLINE void AddProducts(const Vector (&some)[kVectors], const float* factor, Vector (&sums)[kVectors]) {
#if UIR_VECTORS == 512
  Vector all;  // read once: these processors multiply as many vectors as they read
  __asm__("vbroadcastss %1, %0" : "=v"(all) : "m"(*factor));
#else
  const Vector all = _mm256_broadcast_ss(factor);
#endif
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    __asm__("vfmadd231ps %1, %2, %0" : "+v"(sums[v]) : "v"(some[v]), "v"(all));
  }
}
