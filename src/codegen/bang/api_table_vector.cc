// SPDX-License-Identifier: Apache-2.0
// Vector functions of BANG C.
//
// All operands lie in NRAM; counts are elements.  From architecture 3xx on, neither addresses nor counts need be
// aligned.
#include <string>

#include "codegen/bang/api_table.h"

namespace uir::codegen::bang {
namespace {

const char kFloats[] = "float; half";
const char kFp32[] = "float";
const char kWords[] = "int32_t; int16_t";
const char kMoved[] = "float; half; int32_t; int16_t; int8_t";

const char kBinary[] = "dst:T* src0:T* src1:T* elem_count:int[1,2147483647]";
const char kUnary[] = "dst:T* src:T* elem_count:int[1,2147483647]";
const char kScalar[] = "dst:T* src:T* value:T elem_count:int[1,2147483647]";
const char kCycle[] = "dst:T* src:T* seg:T* src_elem_count:int[1,2147483647] seg_elem_count:int[1,2147483647]";
const char kPool[] =
    "dst:T* src:T* channel:int[1,65535] height:int[1,65535] width:int[1,65535] kernel_height:int[1,65535] "
    "kernel_width:int[1,65535] stride_width:int[1,1023] stride_height:int[1,1023]";

const char kPlace[] = "dst may be a source";
const char kApart[] = "dst is not src";

}  // namespace

std::vector<Api> VectorRows() {
  std::vector<Api> rows;
  auto add = [&rows](const std::string& name, const char* form, const char* params, const char* types,
                     const char* limits, const char* source, const char* archs = "", const char* toolkits = "",
                     const char* spellings = "") {
    rows.push_back(
        {"__bang_" + name, form, params, types, "", "COMPUTE", limits, source, archs, "", toolkits, spellings});
  };
  for (const char* name : {"add", "sub", "mul"}) {
    add(name, "count", kBinary, kFloats, kPlace, kUsedDecls);
    add(std::string(name) + "_scalar", "count", kScalar, kFloats, kPlace, kUsedDecls);
    add(std::string("cycle_") + name, "count", kCycle, kFloats, "src_elem_count is a multiple of seg_elem_count",
        kUsedDecls);
  }
  add("div", "count", kBinary, kFloats,
      "no element of src1 is zero; dst may be a source; architectures 3xx other than 372, and later",
      "bang_device_functions_decls.h | kernels/div/div_union1.mlu", "592");
  for (const char* name : {"nan_maximum", "nan_minimum"}) {
    add(name, "count", kBinary, kFloats, "a NaN of either source is the result; dst may be a source",
        "bang_device_functions_decls.h | kernels/mutual_information");
  }
  for (const char* name : {"eq", "ne", "gt", "ge", "lt", "le"}) {
    const char* truth = "1 where it holds, else 0, in the operands' type";
    bool used = name != std::string("ne") && name != std::string("ge");
    add(name, "count", kBinary, kFloats, truth, used ? kUsedDecls : kDecls);
    add(std::string(name) + "_scalar", "count", kScalar, kFloats, truth, kUsedDecls);
  }
  // --- two operations in one; the form says which of the second and third operands are vectors and numbers --------
  const struct {
    const char* form;
    const char* params;
  } fused[] = {
      {"vv", "op:mluFusionOpCode dst:T* src0:T* src1:T* src2:T* elem_count:int[2,2147483647] src_count:int"},
      {"vn", "op:mluFusionOpCode dst:T* src0:T* src1:T* src2:T elem_count:int[2,2147483647] src1_count:int"},
      {"nv", "op:mluFusionOpCode dst:T* src0:T* src1:T src2:T* elem_count:int[2,2147483647] src2_count:int"},
      {"nn", "op:mluFusionOpCode dst:T* src0:T* src1:T src2:T elem_count:int[1,2147483647]"},
  };
  for (const auto& row : fused) {
    add("fusion", row.form, row.params, kFloats,
        "a time of one operation; each is rounded by itself on 3xx, later ones may round once; dst may be a source",
        "bang_device_functions_decls.h | kernels/ms_deform_attn, kernels/rotated_feature_align");
  }
  for (const char* name : {"sqrt", "rsqrt", "recip", "pow2", "sin", "cos"}) {
    add(name, "count", kUnary, kFp32,
        "of the functions that compute all of float's range, not of the approximate __bang_active_*; taken as within "
        "1 ULP",
        name == std::string("rsqrt") ? kDecls : kUsedDecls);
  }
  add("log2", "count", kUnary, kFp32, "taken as within 1 ULP",
      "bang_device_functions_decls.h (__bang_log) | kernels/utils/common.h", "", "", "3:__bang_log");
  // --- bits -----------------------------------------------------------------------------------------------------
  for (const char* name : {"band", "bor", "bxor"}) {
    add(name, "count", kBinary, kWords, "counts are elements of the type; dst may be src0, but not src1", kDecls);
  }
  add("bnot", "count", kUnary, kWords, "counts are elements of the type; dst may be src", kDecls);
  for (const char* name : {"band_scalar", "bor_scalar", "bxor_scalar"}) {
    add(name, "count", kScalar, kWords, kPlace, kDecls);
  }
  // --- places ---------------------------------------------------------------------------------------------------
  add("write_value", "count", "dst:void* elem_count:int[1,2147483647] value:T",
      "float; half; int32_t; int16_t; uint16_t; int8_t; uint8_t", "the value's type says how wide an element is",
      kUsedDecls);
  add("move", "count", "dst:void* src:void* size:int[1,2147483647]", "",
      "size is in bytes; dst and src share none; stands between vector functions that it depends on without a wait",
      "| kernels/nms_rotated, kernels/logspace, kernels/box_iou_rotated", "", "4");
  add("transpose", "count", "dst:T* src:T* height:int[1,2147483647] width:int[1,2147483647]", kMoved,
      "dst[width][height] of src[height][width]; dst is not src", kUsedDecls);
  // --- reductions -----------------------------------------------------------------------------------------------
  for (const char* name : {"sumpool", "maxpool", "minpool"}) {
    add(name, "count", kPool, kFloats,
        "src[height][width][channel]; channel * sizeof(T) is a multiple of 128; dst is not src",
        name == std::string("maxpool") ? kDecls : kUsedDecls);
  }
  add("reduce_sum", "count", kUnary, kFp32,
      "each 128 bytes are added up, to the first element of as many in dst; the others stay; dst may be src", kDecls);
  return rows;
}

std::vector<Api> CastRows() {
  std::vector<Api> rows;
  auto add = [&rows](const std::string& name, const std::string& to, const std::string& from, bool fixed,
                     const char* limits, const std::string& source, const char* archs = "", const char* toolkits = "",
                     const std::string& spellings = "") {
    std::string params = "dst:" + to + "* src:" + from + "* src_count:int[1,2147483647]";
    if (fixed) params += " fix_position:int[0,0]";
    rows.push_back(
        {"__bang_" + name, "count", params, "", "", "COMPUTE", limits, source, archs, "", toolkits, spellings});
  };
  struct {
    const char* mode;
    const char* what;
    // of float2int32, that of cncc 4
    const char* seen;
  } modes[] = {{"rn", "to the nearest, halves to even", "docs/design_docs/mutual_information"},
               {"rd", "to the nearest, halves away from zero", "kernels/ms_deform_attn, kernels/border_align"},
               {"tz", "towards zero", "kernels/sparse_conv, kernels/roiaware_pool3d"},
               {"dn", "down", ""},
               {"up", "up", ""}};
  for (const auto& row : modes) {
    std::string mode = row.mode, earlier = "__bang_float2int_" + mode, seen = row.seen;
    add("float2half_" + mode, "half", "float", false, row.what, mode == "up" ? kDecls : kUsedDecls);
    add("float2bfloat16_" + mode, "bfloat16_t", "float", false, row.what,
        std::string(kDecls) + (mode == "rn"   ? " | kernels/adam_w"
                               : mode == "tz" ? " | kernels/utils"
                                              : ""),
        "592");
    add("float2int32_" + mode, "int32_t", "float", true, row.what,
        std::string(kDecls) + " (" + earlier + ")" + (seen.empty() ? "" : " | " + seen), "", seen.empty() ? "3" : "",
        "3:" + earlier);
  }
  add("half2float", "float", "half", false, kApart, kUsedDecls);
  add("bfloat162float", "float", "bfloat16_t", false, kApart,
      "bang_device_functions_decls.h (__bang_bfloat162float_rn) | kernels/adam_w", "592", "",
      "3:__bang_bfloat162float_rn");
  add("int322float_rn", "float", "int32_t", true, "to the nearest, halves to even; dst may be src",
      "| kernels/sparse_conv/get_indice_pairs", "", "4");
  add("int2float", "float", "int32_t", true, "towards zero; dst is not src", kDecls, "", "3");
  add("int82float", "float", "int8_t", true, kApart, kUsedDecls);
  add("int162float", "float", "int16_t", true, kApart, kDecls);
  add("float2int8_tz", "int8_t", "float", true, "towards zero; the value is in range", kDecls);
  add("float2int16_tz", "int16_t", "float", true, "towards zero; the value is in range", kDecls);
  return rows;
}

}  // namespace uir::codegen::bang
