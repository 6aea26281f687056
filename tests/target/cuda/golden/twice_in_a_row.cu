#ifndef __CUDACC_RTC__
#include <cstdint>
#else
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long long;
using uint64_t = unsigned long long;
#endif

#ifndef UIR_SIMT
// N values of a lane, in registers.
template <typename T, int N>
using reg = T[N];

// N neighbouring values, moved by one instruction.
template <typename T, int N>
struct alignas(sizeof(T) * N) vec {
  T v[N];
};

// The machine word of so many bytes.
template <int BYTES> struct word;
template <> struct word<1> { using type = unsigned char; };
template <> struct word<2> { using type = unsigned short; };
template <> struct word<4> { using type = unsigned; };
template <> struct word<8> { using type = uint2; };
template <> struct word<16> { using type = uint4; };
template <typename TO, typename FROM>
__device__ __forceinline__ TO same_bits(const FROM& from) {
  static_assert(sizeof(TO) == sizeof(FROM), "same size");
  TO to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}

template <typename T, int N>
__device__ __forceinline__ vec<T, N> load_vec(const T* from) {
  using W = typename word<sizeof(T) * N>::type;
  return same_bits<vec<T, N>>(*reinterpret_cast<const W*>(from));
}

template <typename T, int N>
__device__ __forceinline__ void store_vec(T* to, const vec<T, N>& value) {
  using W = typename word<sizeof(T) * N>::type;
  *reinterpret_cast<W*>(to) = same_bits<W>(value);
}
#endif  // UIR_SIMT

extern "C" __global__ void __launch_bounds__(32)
    twice_in_a_row(const float* __restrict__ x, float* __restrict__ y, int64_t size_n) {
  const int n_1 = int(size_n);
  const int lane = threadIdx.x % 32;
  const int pid = blockIdx.x;
  reg<float, 8> a;

  // move.dram.reg.fp32 a(1,256)[cols :n - 256*pid], x(1,256)[cols :n - 256*pid]
  const int end = min(n_1 - 256 * pid, 256);
  {
    const float* const from = x + 256 * pid + lane * 4;
    #pragma unroll
    for (int cb = 0; cb < 2; ++cb) {
      const int col = lane * 4 + cb * 128;
      vec<float, 4> v;
      #pragma unroll
      for (int n = 0; n < 4; ++n) v.v[n] = 0.0f;
      if (col < end) v = load_vec<float, 4>(from + cb * 128);
      #pragma unroll
      for (int n = 0; n < 4; ++n) a[cb * 4 + n] = v.v[n];
    }
  }

  // move.reg.dram.fp32 y(1,256)[cols :n - 256*pid], a(1,256)[cols :n - 256*pid]
  {
    float* const to = y + 256 * pid + lane * 4;
    #pragma unroll
    for (int cb = 0; cb < 2; ++cb) {
      const int col = lane * 4 + cb * 128;
      vec<float, 4> v;
      #pragma unroll
      for (int n = 0; n < 4; ++n) v.v[n] = a[cb * 4 + n];
      if (col < end) store_vec<float, 4>(to + cb * 128, v);
    }
  }

  // move.reg.dram.fp32 y(1,256)[cols :n - 256*pid], a(1,256)[cols :n - 256*pid]
  __syncwarp();
  {
    float* const to = y + n_1 + 256 * pid + lane * 4;
    #pragma unroll
    for (int cb = 0; cb < 2; ++cb) {
      const int col = lane * 4 + cb * 128;
      vec<float, 4> v;
      #pragma unroll
      for (int n = 0; n < 4; ++n) v.v[n] = a[cb * 4 + n];
      if (col < end) store_vec<float, 4>(to + cb * 128, v);
    }
  }
}
