// for dav-2201, CANN 8
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void twice_in_a_row(GM_ADDR x, GM_ADDR y, int64_t size_n) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  const int32_t n = int32_t(size_n);
  GlobalTensor<float> x_gm;
  x_gm.SetGlobalBuffer((__gm__ float*)x, n);
  GlobalTensor<float> y_gm;
  y_gm.SetGlobalBuffer((__gm__ float*)y, (2 * n));
  const int32_t groups = ((n + 255) >> 8);
  TPipe pipe;
  TBuf<TPosition::VECCALC> ub;
  pipe.InitBuffer(ub, 1024);
  LocalTensor<float> a = ub.GetWithOffset<float>(256, 0);
  SetFlag<HardEvent::MTE3_MTE2>(0);

  for (int32_t pid = GetBlockIdx(); pid < groups; pid += GetBlockNum()) {
    // move.dram.reg.fp32 a(1,256)[cols :n - 256*pid], x(1,256)[cols :n - 256*pid]
    const int32_t cols = n - 256 * pid > 256 ? 256 : n - 256 * pid;
    WaitFlag<HardEvent::MTE3_MTE2>(0);
    DataCopy(a, x_gm[256 * pid], DataCopyParams(1, cols / 8, 0, 0));
    SetFlag<HardEvent::MTE2_MTE3>(0);

    // move.reg.dram.fp32 y(1,256)[cols :n - 256*pid], a(1,256)[cols :n - 256*pid]
    WaitFlag<HardEvent::MTE2_MTE3>(0);
    DataCopy(y_gm[256 * pid], a, DataCopyParams(1, cols / 8, 0, 0));

    // move.reg.dram.fp32 y(1,256)[cols :n - 256*pid], a(1,256)[cols :n - 256*pid]
    PipeBarrier<PIPE_MTE3>();
    DataCopy(y_gm[n + 256 * pid], a, DataCopyParams(1, cols / 8, 0, 0));
    SetFlag<HardEvent::MTE3_MTE2>(0);
  }
  WaitFlag<HardEvent::MTE3_MTE2>(0);
}
