// SPDX-License-Identifier: Apache-2.0
// What the printer may print of Ascend C: functions, members, structures, enumerations, types and macros.
//
// Checked for dav-2201 (Ascend 910B, "Atlas A2") in the vendor's public headers and documentation (repository
// mirror-cann/asc-devkit: include/ and docs/zh/api/SIMD-API).  `source` names the header and, behind `|`, the page.
// Versions are those whose headers spell something apart, read at the tags v8.5.0, v9.0.0, v9.0.1 and the
// branch 9.1.0: 9.0 has other names for a comparison and a conversion, 9.1 for the reductions of repeats and blocks
// (docs/zh/api/appendix, "changes of interfaces").  Later versions declare the earlier names as well.
#include <string>
#include <utility>

#include "codegen/ascend/api.h"

namespace uir::codegen::ascend {
/*! \brief Rows of the cube core (api_table_cube.cc). */
std::vector<Api> CubeRows();

namespace {

// element types that recur
const char kHalfFloat[] = "half; float";
const char kArithmetic[] = "half; float; int16_t; int32_t";
const char kWords16[] = "int16_t; uint16_t";
const char kWide[] = "half; bfloat16_t; int16_t; uint16_t; int32_t; uint32_t; float";
const char kAny[] = "half; bfloat16_t; float; int8_t; uint8_t; int16_t; uint16_t; int32_t; uint32_t; int64_t; uint64_t";
const char kMoved[] = "half; bfloat16_t; float; int8_t; uint8_t; int16_t; uint16_t; int32_t; uint32_t; int64_t";

// parameters that recur
const char kUnaryCount[] = "dst:LT<T> src:LT<T> count:int32_t";
const char kUnaryRepeat[] =
    "dst:LT<T> src:LT<T> mask:uint64_t[0,128] repeatTime:uint8_t[0,255] repeatParams:UnaryRepeatParams";
const char kBinaryCount[] = "dst:LT<T> src0:LT<T> src1:LT<T> count:int32_t";
const char kBinaryRepeat[] =
    "dst:LT<T> src0:LT<T> src1:LT<T> mask:uint64_t[0,128] repeatTime:uint8_t[0,255] "
    "repeatParams:BinaryRepeatParams";
const char kScalarCount[] = "dst:LT<T> src:LT<T> scalarValue:T count:int32_t";
const char kScalarRepeat[] =
    "dst:LT<T> src:LT<T> scalarValue:T mask:uint64_t[0,128] repeatTime:uint8_t[0,255] "
    "repeatParams:UnaryRepeatParams";
const char kReduceRepeat[] =
    "dst:LT<T> src:LT<T> mask:int32_t[0,128] repeatTime:int32_t[0,255] dstRepStride:int32_t[0,65535] "
    "srcBlkStride:int32_t[0,65535] srcRepStride:int32_t[0,65535]";
const char kReduceBlocks[] =
    "dst:LT<T> src:LT<T> repeatTime:int32_t[0,255] mask:int32_t[0,128] dstRepStride:int32_t[0,65535] "
    "srcBlkStride:int32_t[0,65535] srcRepStride:int32_t[0,65535]";
const char kReduceOrdered[] =
    "dst:LT<T> src:LT<T> mask:int32_t[0,128] repeatTime:int32_t[0,255] dstRepStride:int32_t[0,65535] "
    "srcBlkStride:int32_t[0,65535] srcRepStride:int32_t[0,65535] order:ReduceOrder";

// rules that recur
const char kAligned[] = "addresses in UB are multiples of 32 bytes";
const char kStrided[] =
    "addresses in UB are multiples of 32 bytes; mask at most 256 bytes of elements; in one repeat source and target "
    "are the same bytes or share none";

// where
const char kUnary[] = "basic_api/kernel_operator_vec_unary_intf.h | Memory vector / basic arithmetic";
const char kBinary[] = "basic_api/kernel_operator_vec_binary_intf.h | Memory vector / basic arithmetic";
const char kLogic[] = "basic_api/kernel_operator_vec_binary_intf.h | Memory vector / logic";
const char kScalar[] = "basic_api/kernel_operator_vec_binary_scalar_intf.h | Memory vector / basic arithmetic";
const char kSelect[] = "basic_api/kernel_operator_vec_cmpsel_intf.h | Memory vector / compare and select";
const char kFill[] = "basic_api/kernel_operator_vec_duplicate_intf.h | Memory vector / Duplicate";
const char kReduce[] = "basic_api/kernel_operator_vec_reduce_intf.h | Memory vector / ReduceRepeat, ReduceDataBlock";
const char kCopy[] = "basic_api/kernel_operator_data_copy_intf.h | Memory vector / data movement";
const char kTensor[] = "basic_api/kernel_tensor.h | data structures / LocalTensor, GlobalTensor";
const char kPipe[] = "basic_api/kernel_tpipe.h | TPipe, TBuf";
const char kSync[] = "basic_api/kernel_operator_block_sync_intf.h | synchronisation";
const char kSystem[] = "basic_api/kernel_operator_sys_var_intf.h | system variables";

std::vector<Api> Rows() {
  std::vector<Api> rows;
  auto both = [&rows](const char* name, const char* count, const char* repeat, const char* types, const char* source,
                      const char* limits = "") {
    std::string more = *limits ? std::string("; ") + limits : "";
    rows.push_back({name, "count", count, types, "", "V", kAligned + more, source});
    rows.push_back({name, "repeat", repeat, types, "", "V", kStrided + more, source});
  };

  // --- arithmetic ----------------------------------------------------------------------------------------------
  for (const char* name : {"Add", "Sub", "Mul", "Max", "Min"}) {
    both(name, kBinaryCount, kBinaryRepeat, kArithmetic, kBinary);
  }
  both("Div", kBinaryCount, kBinaryRepeat, kHalfFloat, kBinary);
  for (const char* name : {"Adds", "Muls", "Maxs", "Mins"}) {
    both(name, kScalarCount, kScalarRepeat, kArithmetic, kScalar);
  }
  rows.push_back({"Adds", "bits",
                  "dst:LT<T> src:LT<T> scalarValue:T mask:uint64_t[2] repeatTime:uint8_t[0,255] "
                  "repeatParams:UnaryRepeatParams",
                  kArithmetic, "", "V", kStrided, kScalar});
  both("LeakyRelu", kScalarCount, kScalarRepeat, kHalfFloat, kScalar);
  both("ShiftLeft", kScalarCount, kScalarRepeat, "int16_t; uint16_t; int32_t; uint32_t",
       "basic_api/kernel_operator_vec_binary_scalar_intf.h | Memory vector / ShiftLeft",
       "scalarValue is 0 .. 16 for 16 bits and 0 .. 32 for 32 bits");
  rows.push_back({"ShiftRight", "count", kScalarCount, "int16_t; uint16_t; int32_t; uint32_t", "", "V", kAligned,
                  "basic_api/kernel_operator_vec_binary_scalar_intf.h | Memory vector / ShiftRight"});
  both("Exp", kUnaryCount, kUnaryRepeat, kHalfFloat, kUnary, "error at most 1 ULP; subnormal results are zero");
  both("Ln", kUnaryCount, kUnaryRepeat, kHalfFloat, kUnary, "error at most 1 ULP; subnormals are zero");
  both("Sqrt", kUnaryCount, kUnaryRepeat, kHalfFloat, kUnary, "error at most 1 ULP; not for negative numbers");
  both("Abs", kUnaryCount, kUnaryRepeat, kHalfFloat, kUnary);
  both("Relu", kUnaryCount, kUnaryRepeat, "half; float; int32_t", kUnary);
  both("Not", kUnaryCount, kUnaryRepeat, kWords16, kUnary);
  both("And", kBinaryCount, kBinaryRepeat, kWords16, kLogic);
  both("Or", kBinaryCount, kBinaryRepeat, kWords16, kLogic);

  // --- conversion ----------------------------------------------------------------------------------------------
  const char casts[] =
      "half,int8_t: NONE; half,uint8_t: NONE; half,int16_t: RINT FLOOR CEIL ROUND TRUNC NONE; float,int16_t: NONE; "
      "int8_t,half: RINT FLOOR CEIL ROUND TRUNC NONE; uint8_t,half: RINT FLOOR CEIL ROUND TRUNC NONE; "
      "int16_t,half: RINT FLOOR CEIL ROUND TRUNC; int32_t,half: RINT FLOOR CEIL ROUND TRUNC; float,half: NONE; "
      "int32_t,bfloat16_t: RINT FLOOR CEIL ROUND TRUNC; float,bfloat16_t: NONE; int16_t,int32_t: NONE; "
      "float,int32_t: RINT FLOOR CEIL ROUND TRUNC NONE; int64_t,int32_t: NONE; "
      "int16_t,float: RINT FLOOR CEIL ROUND TRUNC; half,float: RINT FLOOR CEIL ROUND TRUNC ODD NONE; "
      "bfloat16_t,float: RINT FLOOR CEIL ROUND TRUNC; int32_t,float: RINT FLOOR CEIL ROUND TRUNC; "
      "float,float: RINT FLOOR CEIL ROUND TRUNC; int64_t,float: RINT FLOOR CEIL ROUND TRUNC; int32_t,int64_t: NONE; "
      "float,int64_t: RINT FLOOR CEIL ROUND TRUNC";
  rows.push_back({"Cast", "count", "dst:LT<T> src:LT<U> mode:RoundMode count:uint32_t", casts, "", "V", kAligned,
                  "basic_api/kernel_operator_vec_vconv_intf.h | Memory vector / Cast"});
  rows.push_back({"Cast", "repeat",
                  "dst:LT<T> src:LT<U> mode:RoundMode mask:uint64_t[0,128] repeatTime:uint8_t[0,255] "
                  "repeatParams:UnaryRepeatParams",
                  casts, "", "V", std::string(kStrided) + "; the mask counts elements of the wider of both types",
                  "basic_api/kernel_operator_vec_vconv_intf.h | Memory vector / Cast"});

  // --- comparison and selection --------------------------------------------------------------------------------
  const char modes[] = "half,uint8_t: EQ NE GE LE GT LT; float,uint8_t: EQ NE GE LE GT LT; int32_t,uint8_t: EQ";
  const std::string bits = std::string(kAligned) +
                           "; count elements are a multiple of 256 bytes; one bit per element, "
                           "the first in the lowest bit";
  rows.push_back({"Compare", "count", "dst:LT<U> src0:LT<T> src1:LT<T> mode:CMPMODE count:uint32_t", modes, "", "V",
                  bits, kSelect});
  rows.push_back({"CompareScalar", "count", "dst:LT<U> src0:LT<T> src1Scalar:T mode:CMPMODE count:uint32_t", modes, "",
                  "V", bits, kSelect, "", "", "", "9.0:Compares 9.1:Compares"});
  const std::string picks = std::string(kAligned) + "; uses 8 KiB of UB that the kernel must leave free";
  rows.push_back({"Select", "count", "dst:LT<T> selMask:LT<U> src0:LT<T> src1:LT<T> mode:SELMODE count:uint32_t",
                  "half,uint8_t: VSEL_TENSOR_TENSOR_MODE; float,uint8_t: VSEL_TENSOR_TENSOR_MODE", "", "V", picks,
                  kSelect});
  rows.push_back({"Select", "scalar", "dst:LT<T> selMask:LT<U> src0:LT<T> src1:T mode:SELMODE count:uint32_t",
                  "half,uint8_t: VSEL_TENSOR_SCALAR_MODE; float,uint8_t: VSEL_TENSOR_SCALAR_MODE", "", "V", picks,
                  kSelect});

  // --- filling, copies within UB, broadcasts -------------------------------------------------------------------
  rows.push_back({"Duplicate", "count", "dst:LT<T> scalarValue:T count:int32_t", kWide, "<{T}>", "V", kAligned, kFill});
  rows.push_back({"Duplicate", "repeat",
                  "dst:LT<T> scalarValue:T mask:uint64_t[0,128] repeatTime:uint8_t[0,255] "
                  "dstBlockStride:uint16_t[0,65535] dstRepeatStride:uint8_t[0,255]",
                  kWide, "<{T}>", "V", kStrided, kFill});
  rows.push_back({"Brcb", "repeat", "dst:LT<T> src:LT<T> repeatTime:uint8_t[0,255] repeatParams:BrcbRepeatParams",
                  kWide, "", "V",
                  std::string(kAligned) + "; reads 8 elements per repeat; source and target share nothing",
                  "basic_api/kernel_operator_vec_brcb_intf.h | Memory vector / Brcb"});
  rows.push_back({"Copy", "repeat",
                  "dst:LT<T> src:LT<T> mask:uint64_t[0,128] repeatTime:uint8_t[0,255] repeatParams:CopyRepeatParams",
                  kWide, "", "V", kStrided, kCopy});

  rows.push_back({"Copy", "bits",
                  "dst:LT<T> src:LT<T> mask:uint64_t[2] repeatTime:uint8_t[0,255] repeatParams:CopyRepeatParams", kWide,
                  "", "V", kStrided, kCopy});

  // --- reductions ----------------------------------------------------------------------------------------------
  const std::string one =
      "src is at a multiple of 32 bytes, dst at one of its element's size; dstRepStride counts "
      "elements; neighbours are combined first, as in a binary tree";
  const std::pair<const char*, const char*> kinds[] = {{"Sum", "SUM"}, {"Max", "MAX"}, {"Min", "MIN"}};
  for (const auto& [ending, kind] : kinds) {
    rows.push_back({std::string("WholeReduce") + ending, "repeat",
                    kind == kinds[0].second ? kReduceRepeat : kReduceOrdered, kHalfFloat, "", "V", one, kReduce, "", "",
                    "", std::string("9.1:ReduceRepeat<ReduceType::") + kind + ">"});
  }
  const std::string eight =
      "src is at a multiple of 32 bytes, dst at one of 8 elements; dstRepStride counts 8 elements; "
      "a block of 32 bytes without an element under the mask writes nothing";
  for (const auto& [ending, kind] : kinds) {
    rows.push_back({std::string("BlockReduce") + ending, "repeat", kReduceBlocks, kHalfFloat, "", "V", eight, kReduce,
                    "", "", "",
                    std::string("9.1:ReduceDataBlock<ReduceType::") + kind +
                        ">(dst,src,mask,repeatTime,dstRepStride,srcBlkStride,srcRepStride)"});
  }

  // --- re-laying out -------------------------------------------------------------------------------------------
  rows.push_back({"Gather", "count", "dst:LT<T> src:LT<T> srcOffset:LT<uint32_t> srcBaseOffset:uint32_t count:uint32_t",
                  kWide, "", "V",
                  std::string(kAligned) +
                      "; offsets are bytes, multiples of the element's size; source and target share "
                      "nothing",
                  "basic_api/kernel_operator_vec_gather_intf.h | Memory vector / Gather"});
  rows.push_back({"TransDataTo5HD", "plain", "dstList:uint64_t[16] srcList:uint64_t[16] params:TransDataTo5HDParams",
                  "int8_t; uint8_t; int16_t; uint16_t; half; int32_t; uint32_t; float", "<{T}>", "V",
                  "16 blocks of 32 bytes on either side, at multiples of 32 bytes; of 16-bit elements block j of the "
                  "target holds element j of all 16 source blocks; of 32-bit elements, target blocks 2j and 2j+1 do",
                  "basic_api/kernel_operator_vec_transpose_intf.h | Memory vector / TransDataTo5HD"});

  // --- moves ---------------------------------------------------------------------------------------------------
  const std::string whole = "count elements are a multiple of 32 bytes; addresses in UB are multiples of 32 bytes";
  rows.push_back({"DataCopy", "load", "dst:LT<T> src:GT<T> count:uint32_t", kMoved, "", "MTE2", whole, kCopy});
  rows.push_back({"DataCopy", "store", "dst:GT<T> src:LT<T> count:uint32_t", kMoved, "", "MTE3", whole, kCopy});
  rows.push_back({"DataCopy", "local", "dst:LT<T> src:LT<T> count:uint32_t", kMoved, "", "V", whole, kCopy});
  const std::string rowsOf = "addresses in UB are multiples of 32 bytes; lengths and gaps count 32 bytes";
  rows.push_back(
      {"DataCopy", "load.rows", "dst:LT<T> src:GT<T> params:DataCopyParams", kMoved, "", "MTE2", rowsOf, kCopy});
  rows.push_back(
      {"DataCopy", "store.rows", "dst:GT<T> src:LT<T> params:DataCopyParams", kMoved, "", "MTE3", rowsOf, kCopy});
  rows.push_back(
      {"DataCopy", "local.rows", "dst:LT<T> src:LT<T> params:DataCopyParams", kMoved, "", "V", rowsOf, kCopy});
  const std::string padded =
      "addresses in UB are multiples of 32 bytes; a row takes its length rounded up to 32 bytes "
      "in UB; gaps count bytes in global memory and 32 bytes in UB";
  rows.push_back({"DataCopyPad", "load", "dst:LT<T> src:GT<T> params:DataCopyExtParams padParams:DataCopyPadExtParams",
                  kMoved, "", "MTE2", padded, kCopy});
  rows.push_back(
      {"DataCopyPad", "store", "dst:GT<T> src:LT<T> params:DataCopyExtParams", kMoved, "", "MTE3", padded, kCopy});

  // --- structures ----------------------------------------------------------------------------------------------
  rows.push_back({"UnaryRepeatParams", "struct",
                  "dstBlkStride:uint16_t[0,65535] srcBlkStride:uint16_t[0,65535] dstRepStride:uint8_t[0,255] "
                  "srcRepStride:uint8_t[0,255]",
                  "", "", "", "strides count blocks of 32 bytes", "basic_api/kernel_struct_unary.h"});
  rows.push_back({"BinaryRepeatParams", "struct",
                  "dstBlkStride:uint8_t[0,255] src0BlkStride:uint8_t[0,255] src1BlkStride:uint8_t[0,255] "
                  "dstRepStride:uint8_t[0,255] src0RepStride:uint8_t[0,255] src1RepStride:uint8_t[0,255]",
                  "", "", "", "strides count blocks of 32 bytes", "basic_api/kernel_struct_binary.h"});
  rows.push_back({"BrcbRepeatParams", "struct", "dstBlkStride:uint16_t[1,65535] dstRepStride:uint16_t[0,65535]", "", "",
                  "", "strides count blocks of 32 bytes", "basic_api/kernel_struct_brcb.h"});
  rows.push_back({"CopyRepeatParams", "struct",
                  "dstStride:uint16_t[0,65535] srcStride:uint16_t[0,65535] dstRepeatSize:uint16_t[0,4095] "
                  "srcRepeatSize:uint16_t[0,4095]",
                  "", "", "", "strides count blocks of 32 bytes", "basic_api/kernel_struct_data_copy.h"});
  rows.push_back({"TransDataTo5HDParams", "struct",
                  "dstHighHalf:bool srcHighHalf:bool repeatTimes:uint8_t[0,255] dstRepStride:uint16_t[0,65535] "
                  "srcRepStride:uint16_t[0,65535]",
                  "", "", "", "with one repeat both strides are 0; they count blocks of 32 bytes",
                  "basic_api/kernel_struct_transpose.h"});
  rows.push_back({"DataCopyParams", "struct",
                  "blockCount:uint16_t[1,4095] blockLen:uint16_t[1,65535] srcGap:uint16_t[0,65535] "
                  "dstGap:uint16_t[0,65535]",
                  "", "", "", "lengths and gaps count 32 bytes", "basic_api/kernel_struct_data_copy.h"});
  rows.push_back({"DataCopyExtParams", "struct",
                  "blockCount:uint16_t[1,4095] blockLen:uint32_t[1,2097151] srcStride:uint32_t dstStride:uint32_t "
                  "rsv:uint32_t[0,0]",
                  "", "", "", "blockLen in bytes; gaps in bytes (global memory) or 32 bytes (UB)",
                  "basic_api/kernel_struct_data_copy.h"});
  rows.push_back({"DataCopyPadExtParams", "struct",
                  "isPad:bool leftPadding:uint8_t[0,32] rightPadding:uint8_t[0,32] paddingValue:T", kMoved, "<{T}>", "",
                  "paddings count elements, at most 32 bytes", "basic_api/kernel_struct_data_copy.h"});

  // --- enumerations --------------------------------------------------------------------------------------------
  rows.push_back({"RoundMode", "enum", "CAST_NONE CAST_RINT CAST_FLOOR CAST_CEIL CAST_ROUND CAST_TRUNC CAST_ODD", "",
                  "", "", "", "basic_api/kernel_operator_vec_vconv_intf.h | Memory vector / Cast"});
  rows.push_back({"CMPMODE", "enum", "LT GT EQ LE GE NE", "", "", "", "", kSelect});
  rows.push_back(
      {"SELMODE", "enum", "VSEL_CMPMASK_SPR VSEL_TENSOR_SCALAR_MODE VSEL_TENSOR_TENSOR_MODE", "", "", "", "", kSelect});
  rows.push_back({"ReduceOrder", "enum", "ORDER_ONLY_VALUE", "", "", "", "", kReduce});
  rows.push_back({"ReduceType", "enum", "SUM MAX MIN", "", "", "", "", kReduce, "", "", "9.1"});
  rows.push_back({"TPosition", "enum", "VECCALC VECIN VECOUT A1 A2 B2 CO1", "", "", "", "", kPipe});
  rows.push_back({"HardEvent", "enum",
                  "MTE2_V V_MTE2 MTE3_V V_MTE3 MTE3_MTE2 MTE2_MTE3 S_V V_S S_MTE2 MTE2_S S_MTE3 MTE3_S "
                  "MTE2_MTE1 MTE1_MTE2 MTE1_M M_MTE1 M_FIX FIX_M",
                  "", "", "", "", kSync});

  // --- members and types ---------------------------------------------------------------------------------------
  rows.push_back({"TPipe", "type", "", "", "", "", "", kPipe});
  rows.push_back({"TBuf", "type", "", "VECCALC; A1; A2; B2; CO1", "<TPosition::{T}>", "", "", kPipe});
  rows.push_back({"LocalTensor", "type", "", kAny, "<{T}>", "", "", kTensor});
  rows.push_back({"GlobalTensor", "type", "", kAny, "<{T}>", "", "", kTensor});
  rows.push_back({"TPipe.InitBuffer", "member", "buffer:TBuf bytes:uint32_t[32,524288]", "", "", "",
                  "rounded up to 32 bytes", kPipe});
  rows.push_back({"TBuf.GetWithOffset", "member", "size:uint32_t bufOffset:uint32_t", kAny, "<{T}>", "",
                  "size in elements, offset in bytes", kPipe});
  rows.push_back({"LocalTensor.GetValue", "member", "index:uint32_t", kAny, "", "S", "", kTensor});
  rows.push_back({"LocalTensor.SetValue", "member", "index:uint32_t value:T", kAny, "", "S", "", kTensor});
  rows.push_back({"LocalTensor.GetPhyAddr", "member", "", kAny, "", "", "", kTensor});
  rows.push_back({"LocalTensor.ReinterpretCast", "member", "", kAny, "<{T}>", "", "", kTensor});
  rows.push_back({"GlobalTensor.SetGlobalBuffer", "member", "buffer:pointer size:uint64_t", kAny, "", "",
                  "size in elements", kTensor});
  rows.push_back({"GlobalTensor.GetValue", "member", "offset:uint64_t", kAny, "", "S", "", kTensor});
  rows.push_back({"GlobalTensor.SetValue", "member", "offset:uint64_t value:T", kAny, "", "S", "", kTensor});

  // --- synchronisation, system ---------------------------------------------------------------------------------
  rows.push_back({"SetFlag", "plain", "eventID:int32_t[0,7]", "", "<HardEvent::{mode}>", "", "", kSync});
  rows.push_back({"WaitFlag", "plain", "eventID:int32_t[0,7]", "", "<HardEvent::{mode}>", "", "", kSync});
  rows.push_back(
      {"PipeBarrier", "plain", "", "", "<PIPE_{mode}>", "", "modes V, MTE2, MTE3, MTE1, M, FIX, ALL", kSync});
  rows.push_back({"SyncAll", "plain", "", "", "<true>", "", "all vector cores", kSync});
  rows.push_back({"ToBfloat16", "plain", "value:float", "", "", "", "rounds as CAST_RINT",
                  "basic_api/kernel_operator_scalar_intf.h | scalar / Cast (float to bfloat16_t)", "", "", "",
                  "9.0:Cast 9.1:Cast"});
  rows.push_back({"GetBlockIdx", "plain", "", "", "", "", "", kSystem});
  rows.push_back({"GetBlockNum", "plain", "", "", "", "", "", kSystem});
  rows.push_back({"KERNEL_TASK_TYPE_DEFAULT", "macro", "type:name", "", "", "",
                  "KERNEL_TYPE_AIV_ONLY, KERNEL_TYPE_MIX_AIC_1_1", "kernel_operator.h | setting the kernel type"});
  for (const Api& row : CubeRows()) rows.push_back(row);
  return rows;
}

}  // namespace

std::vector<Api> ApiRows() { return Rows(); }

}  // namespace uir::codegen::ascend
