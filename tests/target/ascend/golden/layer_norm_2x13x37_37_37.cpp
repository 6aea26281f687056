// for dav-2201, CANN 8
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void layer_norm_2x13x37_37_37(GM_ADDR x0, GM_ADDR x1, GM_ADDR x2, GM_ADDR T_layer_norm_intermediate) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GlobalTensor<float> x0_gm;
  x0_gm.SetGlobalBuffer((__gm__ float*)x0, 962);
  GlobalTensor<float> x1_gm;
  x1_gm.SetGlobalBuffer((__gm__ float*)x1, 37);
  GlobalTensor<float> x2_gm;
  x2_gm.SetGlobalBuffer((__gm__ float*)x2, 37);
  GlobalTensor<float> T_layer_norm_intermediate_gm;
  T_layer_norm_intermediate_gm.SetGlobalBuffer((__gm__ float*)T_layer_norm_intermediate, 962);
  const int32_t pid = GetBlockIdx();
  TPipe pipe;
  TBuf<TPosition::VECCALC> ub;
  pipe.InitBuffer(ub, 6336);
  LocalTensor<float> x0_sum_local = ub.GetWithOffset<float>(16, 2080);
  LocalTensor<float> x0_mean_local = ub.GetWithOffset<float>(16, 4160);
  LocalTensor<float> x0_var_sum_local = ub.GetWithOffset<float>(16, 4224);
  LocalTensor<float> t_fp32 = ub.GetWithOffset<float>(520, 0);
  LocalTensor<float> t_fp32_4 = ub.GetWithOffset<float>(520, 2080);
  LocalTensor<float> t_fp32_5 = ub.GetWithOffset<float>(520, 2080);
  LocalTensor<float> t_fp32_9 = ub.GetWithOffset<float>(520, 0);
  LocalTensor<float> t_fp32_10 = ub.GetWithOffset<float>(16, 4224);
  LocalTensor<float> t_fp32_11 = ub.GetWithOffset<float>(16, 4224);
  LocalTensor<float> t_fp32_12 = ub.GetWithOffset<float>(16, 4224);
  LocalTensor<float> t_fp32_14 = ub.GetWithOffset<float>(520, 0);
  LocalTensor<float> t_fp32_15 = ub.GetWithOffset<float>(40, 2080);
  LocalTensor<float> t_fp32_17 = ub.GetWithOffset<float>(520, 0);
  LocalTensor<float> t_fp32_18 = ub.GetWithOffset<float>(40, 2080);
  LocalTensor<float> t_fp32_20 = ub.GetWithOffset<float>(520, 0);
  LocalTensor<float> work = ub.GetWithOffset<float>(256, 4288);
  LocalTensor<float> work_1 = ub.GetWithOffset<float>(256, 5312);

  // move.dram.reg.fp32 t_fp32(13,37), x0(13,37)
  DataCopyPad(t_fp32, x0_gm[481 * pid], DataCopyExtParams(13, 148, 0, 0, 0), DataCopyPadExtParams<float>(false, 0, 0, 0.0f));
  SetFlag<HardEvent::MTE2_V>(0);

  // reduce.add.row.unit.fp32 x0_sum_local(13,1), t_fp32(13,37)
  WaitFlag<HardEvent::MTE2_V>(0);
  WholeReduceSum(x0_sum_local, t_fp32, 37, 13, 1, 1, 5);

  // unary.divs.fp32 x0_mean_local(1,13), x0_sum_local(1,13)  [37.0]
  Duplicate<float>(work, 37.0f, 128);
  PipeBarrier<PIPE_V>();
  Div(x0_mean_local, x0_sum_local, work, 13);

  // binary.sub.fp32 t_fp32_4(13,37), t_fp32(13,37), x0_mean_local(13,37)
  PipeBarrier<PIPE_V>();
  Brcb(work, x0_mean_local, 2, BrcbRepeatParams(1, 8));
  PipeBarrier<PIPE_V>();
  Sub(t_fp32_4, t_fp32, work, 37, 13, BinaryRepeatParams(1, 1, 0, 5, 5, 1));

  // binary.mul.fp32 t_fp32_5(13,37), t_fp32_4(13,37), t_fp32_4(13,37)
  PipeBarrier<PIPE_V>();
  Mul(t_fp32_5, t_fp32_4, t_fp32_4, 517);

  // reduce.add.row.unit.fp32 x0_var_sum_local(13,1), t_fp32_5(13,37)
  PipeBarrier<PIPE_V>();
  WholeReduceSum(x0_var_sum_local, t_fp32_5, 37, 13, 1, 1, 5);
  SetFlag<HardEvent::V_MTE2>(0);

  // binary.sub.fp32 t_fp32_9(13,37), t_fp32(13,37), x0_mean_local(13,37)
  Brcb(work, x0_mean_local, 2, BrcbRepeatParams(1, 8));
  PipeBarrier<PIPE_V>();
  Sub(t_fp32_9, t_fp32, work, 37, 13, BinaryRepeatParams(1, 1, 0, 5, 5, 1));

  // unary.divs.fp32 t_fp32_10(13,1), x0_var_sum_local(13,1)  [37.0]
  PipeBarrier<PIPE_V>();
  Duplicate<float>(work, 37.0f, 128);
  PipeBarrier<PIPE_V>();
  Div(t_fp32_10, x0_var_sum_local, work, 13);

  // unary.adds.fp32 t_fp32_11(13,1), t_fp32_10(13,1)  [0.00001]
  PipeBarrier<PIPE_V>();
  Adds(t_fp32_11, t_fp32_10, 1e-05f, 13);

  // unary.rsqrt.fp32 t_fp32_12(13,1), t_fp32_11(13,1)
  Duplicate<float>(work, 1.0f, 128);
  PipeBarrier<PIPE_V>();
  Sqrt(work_1, t_fp32_11, 13);
  PipeBarrier<PIPE_V>();
  Div(t_fp32_12, work, work_1, 13);

  // binary.mul.fp32 t_fp32_14(13,37), t_fp32_9(13,37), t_fp32_12(13,37)
  PipeBarrier<PIPE_V>();
  Brcb(work, t_fp32_12, 2, BrcbRepeatParams(1, 8));
  PipeBarrier<PIPE_V>();
  Mul(t_fp32_14, t_fp32_9, work, 37, 13, BinaryRepeatParams(1, 1, 0, 5, 5, 1));

  // move.dram.reg.fp32 t_fp32_15(1,37), x1(1,37)
  WaitFlag<HardEvent::V_MTE2>(0);
  DataCopyPad(t_fp32_15, x1_gm, DataCopyExtParams(1, 148, 0, 0, 0), DataCopyPadExtParams<float>(false, 0, 0, 0.0f));
  SetFlag<HardEvent::MTE2_V>(1);

  // binary.mul.fp32 t_fp32_17(13,37), t_fp32_14(13,37), t_fp32_15(13,37)
  PipeBarrier<PIPE_V>();
  WaitFlag<HardEvent::MTE2_V>(1);
  Mul(t_fp32_17, t_fp32_14, t_fp32_15, 37, 13, BinaryRepeatParams(1, 1, 1, 5, 5, 0));
  SetFlag<HardEvent::V_MTE2>(1);

  // move.dram.reg.fp32 t_fp32_18(1,37), x2(1,37)
  WaitFlag<HardEvent::V_MTE2>(1);
  DataCopyPad(t_fp32_18, x2_gm, DataCopyExtParams(1, 148, 0, 0, 0), DataCopyPadExtParams<float>(false, 0, 0, 0.0f));
  SetFlag<HardEvent::MTE2_V>(2);

  // binary.add.fp32 t_fp32_20(13,37), t_fp32_17(13,37), t_fp32_18(13,37)
  WaitFlag<HardEvent::MTE2_V>(2);
  Add(t_fp32_20, t_fp32_17, t_fp32_18, 37, 13, BinaryRepeatParams(1, 1, 1, 5, 5, 0));
  SetFlag<HardEvent::V_MTE3>(0);

  // move.reg.dram.fp32 T_layer_norm_intermediate(13,37), t_fp32_20(13,37)
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopyPad(T_layer_norm_intermediate_gm[481 * pid], t_fp32_20, DataCopyExtParams(13, 148, 0, 0, 0));
}
