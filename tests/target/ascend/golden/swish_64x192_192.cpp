// for dav-2201, CANN 8
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void swish_64x192_192(GM_ADDR x0, GM_ADDR x1, GM_ADDR T_multiply_intermediate) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GlobalTensor<float> x0_gm;
  x0_gm.SetGlobalBuffer((__gm__ float*)x0, 12288);
  GlobalTensor<float> x1_gm;
  x1_gm.SetGlobalBuffer((__gm__ float*)x1, 192);
  GlobalTensor<float> T_multiply_intermediate_gm;
  T_multiply_intermediate_gm.SetGlobalBuffer((__gm__ float*)T_multiply_intermediate, 12288);
  const int32_t pid = GetBlockIdx();
  TPipe pipe;
  TBuf<TPosition::VECCALC> ub;
  pipe.InitBuffer(ub, 7168);
  LocalTensor<float> t_fp32 = ub.GetWithOffset<float>(384, 0);
  LocalTensor<float> t_fp32_1 = ub.GetWithOffset<float>(192, 1536);
  LocalTensor<float> t_fp32_3 = ub.GetWithOffset<float>(384, 0);
  LocalTensor<float> t_fp32_4 = ub.GetWithOffset<float>(384, 1536);
  LocalTensor<float> t_fp32_5 = ub.GetWithOffset<float>(384, 0);
  LocalTensor<float> work = ub.GetWithOffset<float>(512, 3072);
  LocalTensor<float> work_1 = ub.GetWithOffset<float>(512, 5120);

  // move.dram.reg.fp32 t_fp32(1,384), x0(1,384)
  DataCopy(t_fp32, x0_gm[384 * pid], 384);

  // move.dram.reg.fp32 t_fp32_1(1,192), x1(1,192)
  DataCopy(t_fp32_1, x1_gm, 192);
  SetFlag<HardEvent::MTE2_V>(0);

  // binary.add.fp32 t_fp32_3(2,192), t_fp32(2,192), t_fp32_1(2,192)
  WaitFlag<HardEvent::MTE2_V>(0);
  for (int32_t r = 0; r < 2; ++r) {
    Add(t_fp32_3[r * 192], t_fp32[r * 192], t_fp32_1, 192);
  }

  // unary.sigmoid.fp32 t_fp32_4(2,192), t_fp32_3(2,192)
  Duplicate<float>(work, 1.0f, 384);
  PipeBarrier<PIPE_V>();
  Muls(work_1, t_fp32_3, -1.0f, 384);
  PipeBarrier<PIPE_V>();
  Exp(work_1, work_1, 384);
  PipeBarrier<PIPE_V>();
  Adds(work_1, work_1, 1.0f, 384);
  PipeBarrier<PIPE_V>();
  Div(t_fp32_4, work, work_1, 384);

  // binary.mul.fp32 t_fp32_5(2,192), t_fp32_3(2,192), t_fp32_4(2,192)
  PipeBarrier<PIPE_V>();
  Mul(t_fp32_5, t_fp32_3, t_fp32_4, 384);
  SetFlag<HardEvent::V_MTE3>(0);

  // move.reg.dram.fp32 T_multiply_intermediate(1,384), t_fp32_5(1,384)
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(T_multiply_intermediate_gm[384 * pid], t_fp32_5, 384);
}
