// for dav-2201, CANN 8
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void embedding_50x33_3x7_7x33(GM_ADDR x0, GM_ADDR x1, GM_ADDR x2, GM_ADDR T_add_intermediate) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GlobalTensor<float> x0_gm;
  x0_gm.SetGlobalBuffer((__gm__ float*)x0, 1650);
  GlobalTensor<int64_t> x1_gm;
  x1_gm.SetGlobalBuffer((__gm__ int64_t*)x1, 21);
  GlobalTensor<float> x2_gm;
  x2_gm.SetGlobalBuffer((__gm__ float*)x2, 231);
  GlobalTensor<float> T_add_intermediate_gm;
  T_add_intermediate_gm.SetGlobalBuffer((__gm__ float*)T_add_intermediate, 693);
  const int32_t pid = GetBlockIdx();
  TPipe pipe;
  TBuf<TPosition::VECCALC> ub;
  pipe.InitBuffer(ub, 2240);
  LocalTensor<int64_t> t_int64 = ub.GetWithOffset<int64_t>(8, 1120);
  LocalTensor<float> t_fp32 = ub.GetWithOffset<float>(280, 0);
  LocalTensor<float> t_fp32_1 = ub.GetWithOffset<float>(280, 1120);
  LocalTensor<float> t_fp32_2 = ub.GetWithOffset<float>(280, 0);

  // move.dram.reg.int64 t_int64(1,7), x1(1,7)
  DataCopyPad(t_int64, x1_gm[7 * pid], DataCopyExtParams(1, 56, 0, 0, 0), DataCopyPadExtParams<int64_t>(false, 0, 0, 0LL));
  SetFlag<HardEvent::MTE2_S>(0);

  // gather.fp32 t_fp32(7,33), x0(50,33), t_int64(7,1)  [pad=0]
  Duplicate<float>(t_fp32, 0.0f, 273);
  SetFlag<HardEvent::V_MTE2>(0);
  int64_t index[7];
  WaitFlag<HardEvent::MTE2_S>(0);
  for (int32_t r = 0; r < 7; ++r) {
    index[r] = t_int64.GetValue(r);
  }
  SetFlag<HardEvent::S_MTE2>(0);
  WaitFlag<HardEvent::V_MTE2>(0);
  for (int32_t r_1 = 0; r_1 < 7; ++r_1) {
    if (index[r_1] >= 0 && index[r_1] < 50) {
      DataCopyPad(t_fp32[r_1 * 40], x0_gm[index[r_1] * 33], DataCopyExtParams(1, 132, 0, 0, 0), DataCopyPadExtParams<float>(false, 0, 0, static_cast<float>(0)));
    }
  }

  // move.dram.reg.fp32 t_fp32_1(7,33), x2(7,33)
  WaitFlag<HardEvent::S_MTE2>(0);
  DataCopyPad(t_fp32_1, x2_gm, DataCopyExtParams(7, 132, 0, 0, 0), DataCopyPadExtParams<float>(false, 0, 0, 0.0f));
  SetFlag<HardEvent::MTE2_V>(0);

  // binary.add.fp32 t_fp32_2(7,33), t_fp32(7,33), t_fp32_1(7,33)
  WaitFlag<HardEvent::MTE2_V>(0);
  Add(t_fp32_2, t_fp32, t_fp32_1, 273);
  SetFlag<HardEvent::V_MTE3>(0);

  // move.reg.dram.fp32 T_add_intermediate(7,33), t_fp32_2(7,33)
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopyPad(T_add_intermediate_gm[231 * pid], t_fp32_2, DataCopyExtParams(7, 132, 0, 0, 0));
}
