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
  pipe.InitBuffer(ub, 98304);
  LocalTensor<float> t_fp32 = ub.GetWithOffset<float>(6144, 0);
  LocalTensor<float> t_fp32_1 = ub.GetWithOffset<float>(192, 24576);
  LocalTensor<float> t_fp32_3 = ub.GetWithOffset<float>(6144, 0);
  LocalTensor<float> t_fp32_4 = ub.GetWithOffset<float>(6144, 24576);
  LocalTensor<float> t_fp32_5 = ub.GetWithOffset<float>(6144, 0);
  LocalTensor<float> work = ub.GetWithOffset<float>(6144, 49152);
  LocalTensor<float> work_1 = ub.GetWithOffset<float>(6144, 73728);

  // move.dram.reg.fp32 t_fp32(1,6144), x0(1,6144)
  DataCopy(t_fp32, x0_gm[6144 * pid], 6144);

  // move.dram.reg.fp32 t_fp32_1(1,192), x1(1,192)
  DataCopy(t_fp32_1, x1_gm, 192);
  SetFlag<HardEvent::MTE2_V>(0);

  // binary.add.fp32 t_fp32_3(32,192), t_fp32(32,192), t_fp32_1(32,192)
  WaitFlag<HardEvent::MTE2_V>(0);
  Add(t_fp32_3, t_fp32, t_fp32_1, 64, 32, BinaryRepeatParams(1, 1, 1, 24, 24, 0));
  Add(t_fp32_3[64], t_fp32[64], t_fp32_1[64], 64, 32, BinaryRepeatParams(1, 1, 1, 24, 24, 0));
  Add(t_fp32_3[128], t_fp32[128], t_fp32_1[128], 64, 32, BinaryRepeatParams(1, 1, 1, 24, 24, 0));

  // unary.sigmoid.fp32 t_fp32_4(32,192), t_fp32_3(32,192)
  Duplicate<float>(work, 1.0f, 6144);
  PipeBarrier<PIPE_V>();
  Muls(work_1, t_fp32_3, -1.0f, 6144);
  PipeBarrier<PIPE_V>();
  Exp(work_1, work_1, 6144);
  PipeBarrier<PIPE_V>();
  Adds(work_1, work_1, 1.0f, 6144);
  PipeBarrier<PIPE_V>();
  Div(t_fp32_4, work, work_1, 6144);

  // binary.mul.fp32 t_fp32_5(32,192), t_fp32_3(32,192), t_fp32_4(32,192)
  PipeBarrier<PIPE_V>();
  Mul(t_fp32_5, t_fp32_3, t_fp32_4, 6144);
  SetFlag<HardEvent::V_MTE3>(0);

  // move.reg.dram.fp32 T_multiply_intermediate(1,6144), t_fp32_5(1,6144)
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(T_multiply_intermediate_gm[6144 * pid], t_fp32_5, 6144);
}
