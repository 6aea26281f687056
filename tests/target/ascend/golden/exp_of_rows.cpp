// for dav-2201, CANN 8
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void exp_of_rows(GM_ADDR x, GM_ADDR y, int64_t size_n) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  const int32_t n = int32_t(size_n);
  GlobalTensor<float> x_gm;
  x_gm.SetGlobalBuffer((__gm__ float*)x, n * 8);
  GlobalTensor<float> y_gm;
  y_gm.SetGlobalBuffer((__gm__ float*)y, n * 8);
  const int32_t groups = ((n + 3) >> 2);
  TPipe pipe;
  TBuf<TPosition::VECCALC> ub;
  pipe.InitBuffer(ub, 128);
  LocalTensor<float> a = ub.GetWithOffset<float>(32, 0);
  LocalTensor<float> b = ub.GetWithOffset<float>(32, 0);
  SetFlag<HardEvent::MTE3_MTE2>(0);

  for (int32_t pid = GetBlockIdx(); pid < groups; pid += GetBlockNum()) {
    // move.dram.reg.fp32 a(4,8)[rows :n - 4*pid], x(4,8)[rows :n - 4*pid]
    const int32_t rows = n - 4 * pid > 4 ? 4 : n - 4 * pid;
    WaitFlag<HardEvent::MTE3_MTE2>(0);
    DataCopy(a, x_gm[32 * pid], DataCopyParams(1, rows, 0, 0));
    SetFlag<HardEvent::MTE2_V>(0);

    // unary.exp.fp32 b(4,8)[rows :n - 4*pid], a(4,8)[rows :n - 4*pid]
    WaitFlag<HardEvent::MTE2_V>(0);
    Exp(b, a, rows * 8);
    SetFlag<HardEvent::V_MTE3>(0);

    // move.reg.dram.fp32 y(4,8)[rows :n - 4*pid], b(4,8)[rows :n - 4*pid]
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopy(y_gm[32 * pid], b, DataCopyParams(1, rows, 0, 0));
    SetFlag<HardEvent::MTE3_MTE2>(0);
  }
  WaitFlag<HardEvent::MTE3_MTE2>(0);
}
