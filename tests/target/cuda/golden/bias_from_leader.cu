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

// N values of shared memory, from a byte on.
template <typename T, int N>
__device__ __forceinline__ T* shared_at(unsigned char* smem, int byte_offset) {
  return reinterpret_cast<T*>(smem + byte_offset);
}

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

extern "C" __global__ void __launch_bounds__(128)
    bias_from_leader(const float* __restrict__ x, const float* __restrict__ bias, float* __restrict__ y) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int lane = threadIdx.x % 32;
  const int unit = __shfl_sync(0xffffffffu, int(threadIdx.x / 32), 0);  // the same in all lanes
  const int pid = int(blockIdx.x) * 4 + unit;
  auto down = shared_at<float, 24>(smem, 0);
  const int lane_div8 = lane / 8;
  const int lane_mod8 = lane % 8;
  const int end = max(-(pid & 3) + 1, 0);
  reg<float, 4> t;

  // move.dram.reg.fp32 t(4,24), x(4,24)
  {
    const float* const from = x + 96 * pid + lane_div8 * 24 + lane_mod8 * 4;
    const int col = lane_mod8 * 4;
    vec<float, 4> v;
    #pragma unroll
    for (int n = 0; n < 4; ++n) v.v[n] = 0.0f;
    if (col < 24) v = load_vec<float, 4>(from);
    #pragma unroll
    for (int n = 0; n < 4; ++n) t[n] = v.v[n];
  }

  reg<float, 4> b;

  // move.dram.reg.fp32 b(1,24)[rows :-(pid % 4) + 1], bias(1,24)[rows :-(pid % 4) + 1]
  {
    const float* const from = bias + lane_mod8 * 4;
    const int col = lane_mod8 * 4;
    vec<float, 4> v;
    #pragma unroll
    for (int n = 0; n < 4; ++n) v.v[n] = 0.0f;
    if (0 < end && col < 24) v = load_vec<float, 4>(from);
    #pragma unroll
    for (int n = 0; n < 4; ++n) b[n] = v.v[n];
  }

  reg<float, 4> w;

  // broadcast.col.group.fp32 w(4,24), b(1,24)  [group_size=4]
  auto slots = down;
  if (unit == 0) {
    #pragma unroll
    for (int vc = 0; vc < 4; ++vc) {
      const int col = lane_mod8 * 4 + vc;
      if (col < 24 && lane_div8 == 0) slots[col] = b[vc];
    }
  }
  __syncthreads();
  reg<float, 4> b_of_set;
  #pragma unroll
  for (int vc = 0; vc < 4; ++vc) {
    const int col = lane_mod8 * 4 + vc;
    b_of_set[vc] = col < 24 ? slots[col] : 0.0f;
  }
  #pragma unroll
  for (int vc = 0; vc < 4; ++vc) {
    w[vc] = b_of_set[vc];
  }

  reg<float, 4> t_1;

  // binary.add.fp32 t_1(4,24), t(4,24), w(4,24)
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    t_1[r] = t[r] + w[r];
  }

  // move.reg.dram.fp32 y(4,24), t_1(4,24)
  {
    float* const to = y + 96 * pid + lane_div8 * 24 + lane_mod8 * 4;
    const int col = lane_mod8 * 4;
    vec<float, 4> v;
    #pragma unroll
    for (int n = 0; n < 4; ++n) v.v[n] = t_1[n];
    if (col < 24) store_vec<float, 4>(to, v);
  }
}
