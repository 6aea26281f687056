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

extern "C" __global__ void __launch_bounds__(32)
    exp_of_rows(const float* __restrict__ x, float* __restrict__ y, int64_t size_n) {
  const int n_1 = int(size_n);
  const int lane = threadIdx.x % 32;
  const int pid = blockIdx.x;
  const int lane_div8 = lane / 8;
  const int lane_mod8 = lane % 8;
  reg<float, 1> a;

  // move.dram.reg.fp32 a(4,8)[rows :n - 4*pid], x(4,8)[rows :n - 4*pid]
  const int end = min(n_1 - 4 * pid, 4);
  {
    const float* const from = x + 32 * pid + lane_div8 * 8 + lane_mod8;
    const int row = lane_div8;
    a[0] = row < end ? from[0] : 0.0f;
  }

  reg<float, 1> b;

  // unary.exp.fp32 b(4,8)[rows :n - 4*pid], a(4,8)[rows :n - 4*pid]
  b[0] = expf(a[0]);

  // move.reg.dram.fp32 y(4,8)[rows :n - 4*pid], b(4,8)[rows :n - 4*pid]
  {
    float* const to = y + 32 * pid + lane_div8 * 8 + lane_mod8;
    const int row = lane_div8;
    if (row < end) to[0] = b[0];
  }
}
