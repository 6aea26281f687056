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
#endif  // UIR_SIMT

extern "C" __global__ void __launch_bounds__(32)
    share_of_total(const float* __restrict__ x, float* part_1) {
  const int lane = threadIdx.x % 32;
  const int pid = blockIdx.x;
  const int lane_mod8 = lane % 8;
  reg<float, 4> t;

  // move.dram.reg.fp32 t(1,32), x(1,32)
  {
    const float* const from = x + 32 * pid + lane_mod8 * 4;
    const vec<float, 4> v = load_vec<float, 4>(from);
    #pragma unroll
    for (int n = 0; n < 4; ++n) t[n] = v.v[n];
  }

  reg<float, 1> s;

  // reduce.add.row.unit.fp32 s(1,1), t(1,32)
  {
    reg<float, 2> part;
    #pragma unroll
    for (int k = 0; k < 2; ++k) part[k] = 0.0f;
    #pragma unroll
    for (int vc = 0; vc < 4; ++vc) {
      part[vc % 2] = part[vc % 2] + t[vc];
    }
    part[0] = part[0] + part[1];
    part[0] = part[0] + __shfl_xor_sync(0xffffffffu, part[0], 4);
    part[0] = part[0] + __shfl_xor_sync(0xffffffffu, part[0], 2);
    part[0] = part[0] + __shfl_xor_sync(0xffffffffu, part[0], 1);
    s[0] = part[0];
  }

  // move.reg.dram.fp32 part(1,1), s(1,1)
  {
    float* const to = part_1 + pid;
    if (lane == 0) to[0] = s[0];
  }
}

extern "C" __global__ void __launch_bounds__(32)
    share_of_total_1(const float* __restrict__ part_1, float* total) {
  const int lane = threadIdx.x % 32;
  const int pid = blockIdx.x;
  const int end = max(-pid + 1, 0);
  reg<float, 4> p;

  // move.dram.reg.fp32 p(1,4), part(1,4)
  {
    const float* const from = part_1;
    const vec<float, 4> v = load_vec<float, 4>(from);
    #pragma unroll
    for (int n = 0; n < 4; ++n) p[n] = v.v[n];
  }

  reg<float, 1> q;

  // reduce.add.row.unit.fp32 q(1,1), p(1,4)
  {
    reg<float, 2> part;
    #pragma unroll
    for (int k = 0; k < 2; ++k) part[k] = 0.0f;
    #pragma unroll
    for (int vc = 0; vc < 4; ++vc) {
      part[vc % 2] = part[vc % 2] + p[vc];
    }
    part[0] = part[0] + part[1];
    q[0] = part[0];
  }

  // move.reg.dram.fp32 total(1,1)[rows :-pid + 1], q(1,1)[rows :-pid + 1]
  {
    float* const to = total;
    if (0 < end && lane == 0) to[0] = q[0];
  }
}

extern "C" __global__ void __launch_bounds__(32)
    share_of_total_2(const float* __restrict__ x, float* __restrict__ y, const float* __restrict__ total) {
  const int lane = threadIdx.x % 32;
  const int pid = blockIdx.x;
  reg<float, 1> z;

  // move.dram.reg.fp32 z(1,1), total(1,1)
  {
    const float* const from = total;
    z[0] = from[0];
  }

  reg<float, 1> w;

  // broadcast.row.unit.fp32 w(1,32), z(1,1)
  w[0] = z[0];

  reg<float, 1> u;

  // move.dram.reg.fp32 u(1,32), x(1,32)
  {
    const float* const from = x + 32 * pid + lane;
    u[0] = from[0];
  }

  reg<float, 1> u_1;

  // binary.div.fp32 u_1(1,32), u(1,32), w(1,32)
  u_1[0] = u[0] / w[0];

  // move.reg.dram.fp32 y(1,32), u_1(1,32)
  {
    float* const to = y + 32 * pid + lane;
    to[0] = u_1[0];
  }
}
