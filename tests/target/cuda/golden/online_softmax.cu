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
    online_softmax(const float* __restrict__ x, float* __restrict__ y) {
  const int lane = threadIdx.x % 32;
  const int unit = __shfl_sync(0xffffffffu, int(threadIdx.x / 32), 0);  // the same in all lanes
  const int pid = int(blockIdx.x) * 4 + unit;
  const int lane_div16 = lane / 16;
  const int lane_mod16 = lane % 16;
  reg<float, 1> m_1;

  // fill.fp32 m(2,1)  [value=-inf]
  m_1[0] = -__int_as_float(0x7f800000);

  reg<float, 1> s;

  // fill.fp32 s(2,1)  [value=0.0]
  s[0] = 0.0f;

  for (int k_1 = 0; k_1 < 3; ++k_1) {
    reg<float, 1> t;

    // move.dram.reg.fp32 t(2,16), x(2,16)[cols :-16*k + 40]  [pad=-inf]
    const int end = min(-16 * k_1 + 40, 16);
    {
      const float* const from = x + 16 * k_1 + 80 * pid + lane_div16 * 40 + lane_mod16;
      const int col = lane_mod16;
      t[0] = col < end ? from[0] : -__int_as_float(0x7f800000);
    }

    reg<float, 1> r_1;

    // reduce.max.row.unit.fp32 r(2,1), t(2,16)
    {
      float sum = -__int_as_float(0x7f800000);
      sum = max_of(sum, t[0]);
      sum = max_of(sum, __shfl_xor_sync(0xffffffffu, sum, 8));
      sum = max_of(sum, __shfl_xor_sync(0xffffffffu, sum, 4));
      sum = max_of(sum, __shfl_xor_sync(0xffffffffu, sum, 2));
      sum = max_of(sum, __shfl_xor_sync(0xffffffffu, sum, 1));
      r_1[0] = sum;
    }

    reg<float, 1> n_1;

    // binary.max.fp32 n(2,1), m(2,1), r(2,1)
    n_1[0] = max_of(m_1[0], r_1[0]);

    // binary.sub.fp32 m(2,1), m(2,1), n(2,1)
    m_1[0] = m_1[0] - n_1[0];

    // unary.exp.fp32 m(2,1), m(2,1)
    m_1[0] = expf(m_1[0]);

    // binary.mul.fp32 s(2,1), s(2,1), m(2,1)
    s[0] = s[0] * m_1[0];

    reg<float, 1> w;

    // broadcast.row.unit.fp32 w(2,16), n(2,1)
    w[0] = n_1[0];

    reg<float, 1> t_1;

    // binary.sub.fp32 t_1(2,16), t(2,16), w(2,16)
    t_1[0] = t[0] - w[0];

    reg<float, 1> t_2;

    // unary.exp.fp32 t_2(2,16), t_1(2,16)
    t_2[0] = expf(t_1[0]);

    reg<float, 1> r_1_1;

    // reduce.add.row.unit.fp32 r_1(2,1), t_2(2,16)
    {
      float sum = 0.0f;
      sum = sum + t_2[0];
      sum = sum + __shfl_xor_sync(0xffffffffu, sum, 8);
      sum = sum + __shfl_xor_sync(0xffffffffu, sum, 4);
      sum = sum + __shfl_xor_sync(0xffffffffu, sum, 2);
      sum = sum + __shfl_xor_sync(0xffffffffu, sum, 1);
      r_1_1[0] = sum;
    }

    // binary.add.fp32 s(2,1), s(2,1), r_1(2,1)
    s[0] = s[0] + r_1_1[0];

    // move.reg.reg.fp32 m(2,1), n(2,1)
    m_1[0] = n_1[0];
  }

  reg<float, 1> t_3;
  reg<float, 1> w_1;
  reg<float, 1> t_4;
  reg<float, 1> t_5;
  reg<float, 1> w_2;
  reg<float, 1> t_6;

  for (int l = 0; l < 3; ++l) {
    // move.dram.reg.fp32 t_3(2,16)[cols :-16*l + 40], x(2,16)[cols :-16*l + 40]
    const int end_1 = min(-16 * l + 40, 16);
    {
      const float* const from = x + 16 * l + 80 * pid + lane_div16 * 40 + lane_mod16;
      const int col = lane_mod16;
      t_3[0] = col < end_1 ? from[0] : 0.0f;
    }

    // broadcast.row.unit.fp32 w_1(2,16)[cols :-16*l + 40], m(2,1)
    w_1[0] = m_1[0];

    // binary.sub.fp32 t_4(2,16)[cols :-16*l + 40], t_3(2,16)[cols :-16*l + 40], w_1(2,16)[cols :-16*l + 40]
    t_4[0] = t_3[0] - w_1[0];

    // unary.exp.fp32 t_5(2,16)[cols :-16*l + 40], t_4(2,16)[cols :-16*l + 40]
    t_5[0] = expf(t_4[0]);

    // broadcast.row.unit.fp32 w_2(2,16)[cols :-16*l + 40], s(2,1)
    w_2[0] = s[0];

    // binary.div.fp32 t_6(2,16)[cols :-16*l + 40], t_5(2,16)[cols :-16*l + 40], w_2(2,16)[cols :-16*l + 40]
    t_6[0] = t_5[0] / w_2[0];

    // move.reg.dram.fp32 y(2,16)[cols :-16*l + 40], t_6(2,16)[cols :-16*l + 40]
    {
      float* const to = y + 16 * l + 80 * pid + lane_div16 * 40 + lane_mod16;
      const int col = lane_mod16;
      if (col < end_1) to[0] = t_6[0];
    }
  }
}
