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
#endif  // UIR_SIMT

__device__ __forceinline__ float max_of(float a, float b) {
#ifdef __CUDA_ARCH__
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a > b || a != a ? a : b;
#endif
}

extern "C" __global__ void __launch_bounds__(128)
    grouped_softmax(const float* __restrict__ x, float* __restrict__ y) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int lane = threadIdx.x % 32;
  const int unit = __shfl_sync(0xffffffffu, int(threadIdx.x / 32), 0);  // the same in all lanes
  const int pid = int(blockIdx.x) * 4 + unit;
  auto up = shared_at<float, 8>(smem, 0);
  auto down = shared_at<float, 2>(smem, 128);
  const int lane_div16 = lane / 16;
  const int lane_mod16 = lane % 16;
  for (int i = 0; i < 3; ++i) {
    reg<float, 1> t;

    // move.dram.reg.fp32 t(2,16), x(2,16)
    {
      const float* const from = x + 16 * (pid & 3) + 384 * (pid >> 2) + 128 * i + lane_div16 * 64 + lane_mod16;
      t[0] = from[0];
    }

    reg<float, 1> m_1;

    // reduce.max.row.group.fp32 m(2,1), t(2,16)  [group_size=4]
    auto slots = up;
    {
      const int row = lane_div16;
      float sum = -__int_as_float(0x7f800000);
      sum = max_of(sum, t[0]);
      sum = max_of(sum, __shfl_xor_sync(0xffffffffu, sum, 8));
      sum = max_of(sum, __shfl_xor_sync(0xffffffffu, sum, 4));
      sum = max_of(sum, __shfl_xor_sync(0xffffffffu, sum, 2));
      sum = max_of(sum, __shfl_xor_sync(0xffffffffu, sum, 1));
      if (lane_mod16 == 0) slots[unit * 2 + row] = sum;
    }
    __syncthreads();
    if (unit == 0) {
      const int row = lane_div16;
      reg<float, 2> part;
      #pragma unroll
      for (int k = 0; k < 2; ++k) part[k] = -__int_as_float(0x7f800000);
      #pragma unroll
      for (int m = 0; m < 4; ++m) {
        part[m % 2] = max_of(part[m % 2], slots[m * 2 + row]);
      }
      part[0] = max_of(part[0], part[1]);
      m_1[0] = part[0];
    }

    reg<float, 1> w;

    // broadcast.row.group.fp32 w(2,16), m(2,1)  [group_size=4]
    auto slots_1 = down;
    if (unit == 0) {
      const int row = lane_div16;
      if (lane_mod16 == 0) slots_1[row] = m_1[0];
    }
    __syncthreads();
    reg<float, 1> m_of_set;
    {
      const int row = lane_div16;
      m_of_set[0] = slots_1[row];
    }
    w[0] = m_of_set[0];

    reg<float, 1> t_1;

    // binary.sub.fp32 t_1(2,16), t(2,16), w(2,16)
    t_1[0] = t[0] - w[0];

    reg<float, 1> t_2;

    // unary.exp.fp32 t_2(2,16), t_1(2,16)
    t_2[0] = expf(t_1[0]);

    // reduce.add.row.group.fp32 m(2,1), t_2(2,16)  [group_size=4]
    auto slots_2 = up;
    {
      const int row = lane_div16;
      float sum = 0.0f;
      sum = sum + t_2[0];
      sum = sum + __shfl_xor_sync(0xffffffffu, sum, 8);
      sum = sum + __shfl_xor_sync(0xffffffffu, sum, 4);
      sum = sum + __shfl_xor_sync(0xffffffffu, sum, 2);
      sum = sum + __shfl_xor_sync(0xffffffffu, sum, 1);
      if (lane_mod16 == 0) slots_2[unit * 2 + row] = sum;
    }
    __syncthreads();
    if (unit == 0) {
      const int row = lane_div16;
      reg<float, 2> part;
      #pragma unroll
      for (int k = 0; k < 2; ++k) part[k] = 0.0f;
      #pragma unroll
      for (int m = 0; m < 4; ++m) {
        part[m % 2] = part[m % 2] + slots_2[m * 2 + row];
      }
      part[0] = part[0] + part[1];
      m_1[0] = part[0];
    }

    reg<float, 1> w_1;

    // broadcast.row.group.fp32 w_1(2,16), m(2,1)  [group_size=4]
    auto slots_3 = down;
    if (unit == 0) {
      const int row = lane_div16;
      if (lane_mod16 == 0) slots_3[row] = m_1[0];
    }
    __syncthreads();
    reg<float, 1> m_of_set_1;
    {
      const int row = lane_div16;
      m_of_set_1[0] = slots_3[row];
    }
    w_1[0] = m_of_set_1[0];

    reg<float, 1> t_3;

    // binary.div.fp32 t_3(2,16), t_2(2,16), w_1(2,16)
    t_3[0] = t_2[0] / w_1[0];

    // move.reg.dram.fp32 y(2,16), t_3(2,16)
    {
      float* const to = y + 16 * (pid & 3) + 384 * (pid >> 2) + 128 * i + lane_div16 * 64 + lane_mod16;
      to[0] = t_3[0];
    }
  }
}
