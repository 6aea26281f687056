// SPDX-License-Identifier: Apache-2.0
// The rows of the table for the cube core and for flags between cores.
#include "codegen/ascend/api.h"

namespace uir::codegen::ascend {

std::vector<Api> CubeRows() {
  const char matrix[] = "basic_api/kernel_operator_mm_intf.h | matrix computation (ISASI)";
  const char structs[] = "basic_api/kernel_struct_mm.h";
  const char cores[] = "basic_api/kernel_operator_block_sync_intf.h | synchronisation / between cores";
  return {
      {"DataCopy", "load.nz", "dst:LT<T> src:GT<T> params:Nd2NzParams", "half; bfloat16_t; float; int8_t", "", "MTE2",
       "dst in L1, at a multiple of 32 bytes; rows are filled with zeros up to 32 bytes",
       "basic_api/kernel_operator_data_copy_intf.h | matrix computation / DataCopy (GM to L1, ND2NZ)"},
      {"LoadData", "2d", "dst:LT<T> src:LT<T> loadDataParams:LoadData2DParams", "half; bfloat16_t; float; int8_t", "",
       "MTE1", "dst in L0A or L0B at a multiple of 512 bytes, src in L1 of 32; only 16-bit types are transposed",
       "basic_api/kernel_operator_mm_intf.h | matrix computation / LoadData (2D)"},
      {"LoadDataWithTranspose", "plain", "dst:LT<T> src:LT<T> loadDataParams:LoadData2dTransposeParams",
       "half; bfloat16_t; float; int8_t", "", "MTE1",
       "dst in L0A or L0B at a multiple of 512 bytes, src in L1 of 32; two fractals that follow each other are one "
       "square of 16 x 16 elements (32 x 32 of int8_t)",
       "basic_api/kernel_operator_mm_intf.h | matrix computation / LoadDataWithTranspose"},
      {"Mmad", "plain", "dst:LT<T> fm:LT<U> filter:LT<U> mmadParams:MmadParams",
       "float,half; float,bfloat16_t; float,float; int32_t,int8_t", "", "M",
       "dst in L0C at a multiple of 1024 bytes, fm in L0A (Zz), filter in L0B (Zn) of 512", matrix},
      {"Fixpipe", "plain", "dst:GT<T> src:LT<T> intriParams:FixpipeParamsV220", "float; int32_t",
       "<{T}, {T}, CFG_ROW_MAJOR>", "FIX", "src in L0C at a multiple of 64 bytes",
       "basic_api/kernel_operator_fixpipe_intf.h | matrix computation / Fixpipe (L0C to GM)"},
      {"Nd2NzParams", "struct",
       "ndNum:uint16_t[0,4095] nValue:uint16_t[0,16384] dValue:uint16_t[0,65535] srcNdMatrixStride:uint16_t[0,65535] "
       "srcDValue:uint16_t[1,65535] dstNzC0Stride:uint16_t[1,16384] dstNzNStride:uint16_t[1,16384] "
       "dstNzMatrixStride:uint16_t[0,16384]",
       "", "", "", "strides of src and dstNzMatrixStride in elements, the others in 32 bytes",
       "basic_api/kernel_struct_data_copy.h"},
      {"LoadData2DParams", "struct",
       "startIndex:uint16_t[0,65535] repeatTimes:uint8_t[0,255] srcStride:uint16_t[0,65535] sid:uint8_t[0,0] "
       "dstGap:uint16_t[0,65535] ifTranspose:bool addrMode:uint8_t[0,0]",
       "", "", "", "in fractals of 512 bytes", structs},
      {"LoadData2dTransposeParams", "struct",
       "startIndex:uint16_t[0,65535] repeatTimes:uint8_t[0,255] srcStride:uint16_t[0,65535] dstGap:uint16_t[0,65535] "
       "dstfracGap:uint16_t[0,65535]",
       "", "", "", "startIndex and srcStride in squares, gaps in fractals of 512 bytes", structs},
      {"MmadParams", "struct",
       "m:uint16_t[0,4095] n:uint16_t[0,4095] k:uint16_t[0,4095] unitFlag:uint8_t[0,3] cmatrixSource:bool "
       "cmatrixInitVal:bool",
       "", "", "", "m = 1 is a product with a vector, whose operand lies row by row", structs},
      {"FixpipeParamsV220", "struct",
       "nSize:uint16_t[0,4095] mSize:uint16_t[0,8192] srcStride:uint16_t[0,65535] dstStride:uint32_t reluEn:bool", "",
       "", "", "nSize is a multiple of 16; srcStride is mSize rounded up to 16; dstStride in elements",
       "basic_api/kernel_struct_fixpipe.h"},
      {"CrossCoreSetFlag", "plain", "flagId:uint16_t[0,15]", "", "<2, PIPE_{mode}>", "",
       "mode 2: between the cube core and the vector cores of a block, in kernels of the type MIX", cores},
      {"CrossCoreWaitFlag", "plain", "flagId:uint16_t[0,15]", "", "", "", "on this chip it holds all pipes", cores},
      {"ASCEND_IS_AIC", "macro", "", "", "", "", "what follows `if` is for cube cores",
       "utils/kernel_utils_macros.h | ASCEND_IS_AIC"},
      {"ASCEND_IS_AIV", "macro", "", "", "", "", "what follows `if` is for vector cores",
       "utils/kernel_utils_macros.h | ASCEND_IS_AIV"},
  };
}

}  // namespace uir::codegen::ascend
