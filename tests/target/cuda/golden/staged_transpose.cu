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

__device__ __forceinline__ float shuffle(float x, int lane) {
  return __shfl_sync(0xffffffffu, x, lane);
}

extern "C" __global__ void __launch_bounds__(128)
    staged_transpose(const float* __restrict__ x, float* __restrict__ y) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int lane = threadIdx.x % 32;
  const int unit = __shfl_sync(0xffffffffu, int(threadIdx.x / 32), 0);  // the same in all lanes
  const int pid = int(blockIdx.x) * 4 + unit;
  auto tile_1 = shared_at<float, 256>(smem, 0);
  const int lane_div8 = lane / 8;
  const int lane_mod8 = lane % 8;
  const int lane_div2 = lane / 2;
  const int lane_mod2 = lane % 2;
  for (int i = 0; i < 4; ++i) {
    // move.dram.sram.fp32 tile(4,16), x(4,16)
    reg<float, 4> x_in;
    {
      const float* const from = x + 16 * i + 256 * pid + lane_div8 * 64 + lane_mod8 * 4;
      const int col = lane_mod8 * 4;
      vec<float, 4> v;
      #pragma unroll
      for (int n = 0; n < 4; ++n) v.v[n] = 0.0f;
      if (col < 16) v = load_vec<float, 4>(from);
      #pragma unroll
      for (int n = 0; n < 4; ++n) x_in[n] = v.v[n];
    }
    {
      auto const to = tile_1 + 64 * (pid & 3) + lane_div8 * 16 + lane_mod8 * 4;
      const int col = lane_mod8 * 4;
      vec<float, 4> v;
      #pragma unroll
      for (int n = 0; n < 4; ++n) v.v[n] = x_in[n];
      if (col < 16) store_vec<float, 4>(to, v);
    }

    // sync.sram tile(1,256), tile(1,256)
    __syncthreads();

    reg<float, 2> t;

    // move.sram.reg.fp32 t(16,4), tile(16,4)
    {
      auto const from = tile_1 + 4 * (pid & 3) + lane_div2 * 16 + lane_mod2 * 2;
      const vec<float, 2> v = load_vec<float, 2>(from);
      #pragma unroll
      for (int n = 0; n < 2; ++n) t[n] = v.v[n];
    }

    // sync.sram tile(1,256), tile(1,256)
    __syncthreads();

    reg<float, 2> r_1;

    // transpose.fp32 r(4,16), t(16,4)
    reg<float, 2> t_turned;
    #pragma unroll
    for (int vc = 0; vc < 2; ++vc) {
      t_turned[vc] = t[vc];
    }
    // to lanes (4, 8), vec (1, 2) from lanes (2, 16) by columns, vec (2, 1)
    #pragma unroll
    for (int vc = 0; vc < 2; ++vc) {
      const int col = lane_mod8 * 2 + vc;
      const int source = lane_div8 / 2 % 2 + col % 16 * 2;
      r_1[vc] = shuffle(t_turned[0], source);
      const float other1 = shuffle(t_turned[1], source);
      if (0xff00ff00u >> lane & 1) r_1[vc] = other1;
    }

    // move.reg.dram.fp32 y(4,16), r(4,16)
    {
      float* const to = y + 128 * (pid & 3) + 16 * (pid >> 2) + 512 * i + lane_div8 * 32 + lane_mod8 * 2;
      vec<float, 2> v;
      #pragma unroll
      for (int n = 0; n < 2; ++n) v.v[n] = r_1[n];
      store_vec<float, 2>(to, v);
    }
  }
}
