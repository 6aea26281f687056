// for dav-2201, CANN 8
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void softmax_32x128(GM_ADDR x0, GM_ADDR T_softmax_norm_intermediate) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GlobalTensor<float> x0_gm;
  x0_gm.SetGlobalBuffer((__gm__ float*)x0, 4096);
  GlobalTensor<float> T_softmax_norm_intermediate_gm;
  T_softmax_norm_intermediate_gm.SetGlobalBuffer((__gm__ float*)T_softmax_norm_intermediate, 4096);
  const int32_t pid = GetBlockIdx();
  TPipe pipe;
  TBuf<TPosition::VECCALC> ub;
  pipe.InitBuffer(ub, 18560);
  LocalTensor<float> T_softmax_maxelem_local = ub.GetWithOffset<float>(32, 16384);
  LocalTensor<float> T_softmax_exp_local = ub.GetWithOffset<float>(4096, 0);
  LocalTensor<float> T_softmax_expsum_local = ub.GetWithOffset<float>(32, 16384);
  LocalTensor<float> t_fp32 = ub.GetWithOffset<float>(4096, 0);
  LocalTensor<float> t_fp32_1 = ub.GetWithOffset<float>(32, 16384);
  LocalTensor<float> t_fp32_4 = ub.GetWithOffset<float>(4096, 0);
  LocalTensor<float> t_fp32_7 = ub.GetWithOffset<float>(4096, 0);
  LocalTensor<float> work = ub.GetWithOffset<float>(512, 16512);

  // move.dram.reg.fp32 t_fp32(1,4096), x0(1,4096)
  DataCopy(t_fp32, x0_gm, 4096);
  SetFlag<HardEvent::MTE2_V>(0);

  // reduce.max.row.unit.fp32 t_fp32_1(32,1), t_fp32(32,128)
  WaitFlag<HardEvent::MTE2_V>(0);
  BlockReduceMax(work, t_fp32, 64, 64, 1, 1, 8);
  PipeBarrier<PIPE_V>();
  WholeReduceMax(t_fp32_1, work, 16, 32, 1, 1, 2, ReduceOrder::ORDER_ONLY_VALUE);

  // unary.maxs.fp32 T_softmax_maxelem_local(32,1), t_fp32_1(32,1)
  //   [-340282346638528859811704183484516925440.0]
  PipeBarrier<PIPE_V>();
  Maxs(T_softmax_maxelem_local, t_fp32_1, -3.4028235e+38f, 32);

  // binary.sub.fp32 t_fp32_4(32,128), t_fp32(32,128), T_softmax_maxelem_local(32,128)
  PipeBarrier<PIPE_V>();
  Brcb(work, T_softmax_maxelem_local, 4, BrcbRepeatParams(1, 8));
  PipeBarrier<PIPE_V>();
  Sub(t_fp32_4, t_fp32, work, 64, 32, BinaryRepeatParams(1, 1, 0, 16, 16, 1));
  Sub(t_fp32_4[64], t_fp32[64], work, 64, 32, BinaryRepeatParams(1, 1, 0, 16, 16, 1));

  // unary.exp.fp32 T_softmax_exp_local(32,128), t_fp32_4(32,128)
  PipeBarrier<PIPE_V>();
  Exp(T_softmax_exp_local, t_fp32_4, 4096);

  // reduce.add.row.unit.fp32 T_softmax_expsum_local(32,1), T_softmax_exp_local(32,128)
  PipeBarrier<PIPE_V>();
  BlockReduceSum(work, T_softmax_exp_local, 64, 64, 1, 1, 8);
  PipeBarrier<PIPE_V>();
  WholeReduceSum(T_softmax_expsum_local, work, 16, 32, 1, 1, 2);

  // binary.div.fp32 t_fp32_7(32,128), T_softmax_exp_local(32,128), T_softmax_expsum_local(32,128)
  PipeBarrier<PIPE_V>();
  Brcb(work, T_softmax_expsum_local, 4, BrcbRepeatParams(1, 8));
  PipeBarrier<PIPE_V>();
  Div(t_fp32_7, T_softmax_exp_local, work, 64, 32, BinaryRepeatParams(1, 1, 0, 16, 16, 1));
  Div(t_fp32_7[64], T_softmax_exp_local[64], work, 64, 32, BinaryRepeatParams(1, 1, 0, 16, 16, 1));
  SetFlag<HardEvent::V_MTE3>(0);

  // move.reg.dram.fp32 T_softmax_norm_intermediate(1,4096), t_fp32_7(1,4096)
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(T_softmax_norm_intermediate_gm, t_fp32_7, 4096);
}
