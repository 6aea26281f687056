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

__device__ __forceinline__ int32_t wrap_add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

extern "C" __global__ void __launch_bounds__(128)
    histogram(const int32_t* __restrict__ x, int32_t* __restrict__ y) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int lane = threadIdx.x % 32;
  const int unit = __shfl_sync(0xffffffffu, int(threadIdx.x / 32), 0);  // the same in all lanes
  const int pid = int(blockIdx.x) * 4 + unit;
  const int scratch_at = 256 + unit * 384;  // this warp's own part of smem
  auto tables = shared_at<int32_t, 64>(smem, 0);
  auto table = shared_at<int32_t, 16>(smem, scratch_at + 0);
  auto t = shared_at<int32_t, 24>(smem, scratch_at + 128);
  const int lane_mod4 = lane % 4;
  const int lane_div4 = lane / 4;
  const int lane_div8 = lane / 8;
  const int lane_mod8 = lane % 8;
  // what an iOp needs scratch for while it runs
  const int temporary_at = scratch_at + 256;
  // fill.int32 table(16,1)  [value=0]
  reg<int32_t, 4> table_out;
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    table_out[r] = 0;
  }
  {
    auto const to = table + lane_mod4 * 4;
    vec<int32_t, 4> v;
    #pragma unroll
    for (int n = 0; n < 4; ++n) v.v[n] = table_out[n];
    if (lane_div4 == 0) store_vec<int32_t, 4>(to, v);
  }

  // move.dram.reg.int32 t(1,24), x(1,24)
  reg<int32_t, 1> x_in;
  {
    const int32_t* const from = x + 24 * pid + lane;
    const int col = lane;
    x_in[0] = col < 24 ? from[0] : 0;
  }
  {
    auto const to = t + lane;
    const int col = lane;
    if (col < 24) to[0] = x_in[0];
  }

  for (int i = 0; i < 24; ++i) {
    reg<int32_t, 1> n_1;

    // gather.int32 n(1,1), table(16,1), t(1,1)
    reg<int32_t, 1> t_in;
    __syncwarp();
    {
      auto const from = t + i;
      t_in[0] = from[0];
    }
    {
      const int64_t key = t_in[0];
      const bool found = key >= 0 && key < 16;
      const int index = found ? static_cast<int>(key) : 0;
      n_1[0] = found ? *(table + index) : 0;
    }

    reg<int32_t, 1> n_1_1;

    // unary.adds.int32 n_1(1,1), n(1,1)  [1]
    n_1_1[0] = wrap_add(n_1[0], 1);

    // scatter.int32 table(16,1), n_1(1,1), t(1,1)
    reg<int32_t, 1> t_in_1;
    {
      auto const from = t + i;
      t_in_1[0] = from[0];
    }
    __syncwarp();
    {
      const int64_t key = t_in_1[0];
      const bool found = lane == 0 && key >= 0 && key < 16;
      const int index = found ? static_cast<int>(key) : 0;
      if (found) *(table + index) = n_1_1[0];
    }
  }

  // move.reg.sram.int32 tables(16,1), table(16,1)
  reg<int32_t, 4> table_in;
  __syncwarp();
  {
    auto const from = table + lane_mod4 * 4;
    const vec<int32_t, 4> v = load_vec<int32_t, 4>(from);
    #pragma unroll
    for (int n = 0; n < 4; ++n) table_in[n] = v.v[n];
  }
  {
    auto const to = tables + 16 * (pid & 3) + lane_mod4 * 4;
    vec<int32_t, 4> v;
    #pragma unroll
    for (int n = 0; n < 4; ++n) v.v[n] = table_in[n];
    if (lane_div4 == 0) store_vec<int32_t, 4>(to, v);
  }

  // sync.sram tables(1,64), tables(1,64)
  __syncthreads();

  reg<int32_t, 1> r_1;

  // reduce.add.col.unit.int32 r(1,4), tables(4,4)
  reg<int32_t, 16> tables_in;
  reg<int32_t, 4> tables_in_by_line;
  {
    auto const from = tables + 4 * (pid & 3) + lane_div8 * 16 + lane_mod8 * 4;
    const int col = lane_mod8 * 4;
    vec<int32_t, 4> v;
    #pragma unroll
    for (int n = 0; n < 4; ++n) v.v[n] = 0;
    if (col < 4) v = load_vec<int32_t, 4>(from);
    #pragma unroll
    for (int n = 0; n < 4; ++n) tables_in_by_line[n] = v.v[n];
  }
  // to lanes (1, 32), vec (16, 1) from lanes (4, 8), vec (1, 4), through scratch
  {
    auto tile = shared_at<int32_t, 16>(smem, temporary_at);
    #pragma unroll
    for (int vc = 0; vc < 4; ++vc) {
      const int col = lane_mod8 * 4 + vc;
      if (col < 4) {
        tile[col * 4 + lane_div8] = tables_in_by_line[vc];
      }
    }
    __syncwarp();
    #pragma unroll
    for (int vr = 0; vr < 4; ++vr) {
      const int row = vr * 4;
      if (row < 4 && lane < 4) {
        const vec<int32_t, 4> v = load_vec<int32_t, 4>(tile + lane * 4 + row);
        #pragma unroll
        for (int n = 0; n < 4; ++n) tables_in[(vr * 4 + n)] = v.v[n];
      }
    }
  }
  {
    reg<int32_t, 4> part;
    #pragma unroll
    for (int k = 0; k < 4; ++k) part[k] = 0;
    #pragma unroll
    for (int vr = 0; vr < 16; ++vr) {
      const int row = vr;
      part[vr % 4] = wrap_add(part[vr % 4], (row < 4 ? tables_in[vr] : 0));
    }
    part[0] = wrap_add(part[0], part[2]);
    part[1] = wrap_add(part[1], part[3]);
    part[0] = wrap_add(part[0], part[1]);
    r_1[0] = part[0];
  }

  // move.reg.dram.int32 y(1,4), r(1,4)
  {
    int32_t* const to = y + 4 * pid + lane;
    const int col = lane;
    if (col < 4) to[0] = r_1[0];
  }
}
