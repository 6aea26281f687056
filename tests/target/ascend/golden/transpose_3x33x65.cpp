// for dav-2201, CANN 8
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void transpose_3x33x65(GM_ADDR x0, GM_ADDR T_transpose_intermediate) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GlobalTensor<float> x0_gm;
  x0_gm.SetGlobalBuffer((__gm__ float*)x0, 6435);
  GlobalTensor<float> T_transpose_intermediate_gm;
  T_transpose_intermediate_gm.SetGlobalBuffer((__gm__ float*)T_transpose_intermediate, 6435);
  const int32_t pid = GetBlockIdx();
  TPipe pipe;
  TBuf<TPosition::VECCALC> ub;
  pipe.InitBuffer(ub, 18848);
  LocalTensor<float> t_fp32 = ub.GetWithOffset<float>(2560, 0);
  LocalTensor<float> t_fp32_1 = ub.GetWithOffset<float>(2560, 0);
  LocalTensor<float> work = ub.GetWithOffset<float>(2112, 10240);
  LocalTensor<int32_t> work_1 = ub.GetWithOffset<int32_t>(40, 18688);

  // move.dram.reg.fp32 t_fp32(64,33)[rows :-64*(pid % 2) + 65], x0(64,33)[rows :-64*(pid % 2) + 65]
  const int32_t rows = -64 * (pid & 1) + 65 > 64 ? 64 : -64 * (pid & 1) + 65;
  DataCopyPad(work, x0_gm[64 * (pid & 1) + 2145 * (pid >> 1)], DataCopyExtParams(33, rows * 4, 260 - rows * 4, 8 - (rows + 7) / 8, 0), DataCopyPadExtParams<float>(false, 0, 0, 0.0f));
  SetFlag<HardEvent::MTE2_V>(0);
  Duplicate<int32_t>(work_1, 0, 8);
  uint64_t mask[2] = {170u, 0};
  PipeBarrier<PIPE_V>();
  Adds(work_1, work_1, 256, mask, 1, UnaryRepeatParams(1, 1, 8, 8));
  uint64_t mask_1[2] = {204u, 0};
  PipeBarrier<PIPE_V>();
  Adds(work_1, work_1, 512, mask_1, 1, UnaryRepeatParams(1, 1, 8, 8));
  uint64_t mask_2[2] = {240u, 0};
  PipeBarrier<PIPE_V>();
  Adds(work_1, work_1, 1024, mask_2, 1, UnaryRepeatParams(1, 1, 8, 8));
  PipeBarrier<PIPE_V>();
  Adds(work_1[8], work_1, 2048, 8);
  PipeBarrier<PIPE_V>();
  Adds(work_1[16], work_1, 4096, 16);
  Adds(work_1[32], work_1, 8192, 1);
  PipeBarrier<PIPE_V>();
  WaitFlag<HardEvent::MTE2_V>(0);
  for (int32_t row = 0; row < rows; ++row)
    Gather(t_fp32[row * 40], work, work_1.ReinterpretCast<uint32_t>(), row * 4, 33);

  // unary.exp.fp32 t_fp32_1(64,33)[rows :-64*(pid % 2) + 65], t_fp32(64,33)[rows :-64*(pid % 2) + 65]
  PipeBarrier<PIPE_V>();
  Exp(t_fp32_1, t_fp32, rows * 40 - 7);
  SetFlag<HardEvent::V_MTE3>(0);

  // move.reg.dram.fp32 T_transpose_intermediate(64,33)[rows :-64*(pid % 2) + 65], t_fp32_1(64,33)[rows
  //   :-64*(pid % 2) + 65]
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopyPad(T_transpose_intermediate_gm[2112 * (pid & 1) + 2145 * (pid >> 1)], t_fp32_1, DataCopyExtParams(rows, 132, 0, 0, 0));
}
