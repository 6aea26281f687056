// SPDX-License-Identifier: Apache-2.0
// Numbers of 16 bits as vectors of kLanes floats, and back. No guard: it is included after vector_math.h for every
// width; UIR_VECTORS has the bits of the instructions, 0 for any.

typedef uint16_t Shorts __attribute__((vector_size(kLanes * sizeof(uint16_t))));
typedef Shorts UnalignedShorts __attribute__((aligned(1)));

UIR_INLINE void FromHalves(const char* from, Vector& to) {
#if UIR_VECTORS == 512
  to = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#elif UIR_VECTORS == 256
  to = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#else
  uint16_t halves[kLanes];
  std::memcpy(halves, from, sizeof halves);
  Vector wide = {};
  for (int lane = 0; lane < kLanes; ++lane) wide[lane] = FromHalf(halves[lane]);
  to = wide;
#endif
}

/*! To nearest, halves to even. */
UIR_INLINE void ToHalves(const Vector& from, char* to) {
#if UIR_VECTORS == 512
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(from, _MM_FROUND_TO_NEAREST_INT));
#elif UIR_VECTORS == 256
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(from, _MM_FROUND_TO_NEAREST_INT));
#else
  uint16_t halves[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) halves[lane] = ToHalf(from[lane]);
  std::memcpy(to, halves, sizeof halves);
#endif
}

UIR_INLINE void FromBFloats(const char* from, Vector& to) {
  const Bits bits = __builtin_convertvector(*reinterpret_cast<const UnalignedShorts*>(from), Bits);
  to = reinterpret_cast<Vector>(bits << 16);
}

/*! To nearest, halves to even. */
UIR_INLINE void ToBFloats(const Vector& from, char* to) {
  const Bits bits = reinterpret_cast<Bits>(from);
  const Bits rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16, none = bits >> 16 | 0x40u;
  *reinterpret_cast<UnalignedShorts*>(to) =
      __builtin_convertvector((bits & 0x7fffffffu) > 0x7f800000u ? none : rounded, Shorts);
}

/*! The vector at `from`, whose numbers are of a type. */
template <DType kType>
UIR_INLINE void Numbers(const char* from, Vector& to) {
  if constexpr (kType == DType::kF16) {
    FromHalves(from, to);
  } else if constexpr (kType == DType::kBF16) {
    FromBFloats(from, to);
  } else {
    to = *reinterpret_cast<const Unaligned*>(from);
  }
}

/*! Up to a vector of numbers from number `index` on; lanes beyond `count` are 0. */
UIR_INLINE void GetAs(DType type, const char* from, int64_t index, int64_t count, Vector& to) {
  if (count < kLanes) {
    to = Vector{};
    for (int64_t lane = 0; lane < count; ++lane) to[lane] = Load<float>(from, type, index + lane);
  } else if (type == DType::kF32) {
    Numbers<DType::kF32>(from + index * 4, to);
  } else if (type == DType::kF16) {
    Numbers<DType::kF16>(from + index * 2, to);
  } else {
    Numbers<DType::kBF16>(from + index * 2, to);
  }
}

/*! The same backwards: lanes beyond `count` stay unwritten. */
UIR_INLINE void PutAs(DType type, const Vector& from, int64_t index, int64_t count, char* to) {
  if (count < kLanes) {
    for (int64_t lane = 0; lane < count; ++lane) library::Store<float>(to, type, index + lane, from[lane]);
  } else if (type == DType::kF32) {
    *reinterpret_cast<Unaligned*>(to + index * 4) = from;
  } else if (type == DType::kF16) {
    ToHalves(from, to + index * 2);
  } else {
    ToBFloats(from, to + index * 2);
  }
}

inline void Widened(DType type, const char* from, int64_t count, float* to) {
  for (int64_t at = 0; at < count; at += kLanes) {
    Vector some = {};
    GetAs(type, from, at, count - at, some);
    Put(to + at, some, count - at);
  }
}

/*! Of float32 numbers times a factor. */
inline void Narrowed(DType type, const float* from, float factor, int64_t count, char* to) {
  for (int64_t at = 0; at < count; at += kLanes) {
    Vector some = {};
    Get(some, from + at, count - at);
    PutAs(type, some * factor, at, count - at, to);
  }
}
