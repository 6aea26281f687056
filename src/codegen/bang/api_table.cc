// SPDX-License-Identifier: Apache-2.0
// What the printer may print of BANG C: kernels, copies, synchronisation, products.
//
// Checked in the vendor's public device header (zhourunyu/llvm-mlu, clang/lib/Headers, BANG 300: cncc 3, architectures
// up to 3xx) and, behind `|`, in its public kernels and their documents (Cambricon/mlu-ops, for CNToolkit 4.1 and
// later: cncc 4, architectures 592 and later).
#include "codegen/bang/api_table.h"

#include "codegen/printer.h"

namespace uir::codegen::bang {
namespace {

// where
const char kGrid[] = "__clang_bang_builtin_vars.h | kernels/*/*.mlu";
const char kTypes[] = "bang_device_types.h, mlu.h | kernels/*/*.mlu";
const char kKernels[] = "| kernels/*/*.mlu";
const char kLaunch[] = "bang_runtime.h | kernels/*/*.mlu";
const char kButterfly[] = "| kernels/fft/fft_optm_device/fft_generic_butterfly.h";
const char kPipes[] = "| kernels/unary_op/unary_op_5pipeline.h, binary_op_5pipeline.h";

// rules
const char kDirections[] =
    "dir: GDRAM, NRAM, WRAM, SRAM on both sides, not WRAM2WRAM; no alignment on 3xx and later but 8 bytes in WRAM and "
    "64 bytes NRAM2NRAM without strides; size above 0";

/*! \brief What kind of text a row was checked in: the header before `|`, documents or kernels behind it. */
std::string EvidenceOf(const std::string& source) {
  std::vector<std::string> kinds;
  size_t bar = source.find('|');
  if (source.substr(0, bar).find(".h") != std::string::npos) kinds.emplace_back("header");
  const std::string public_text = bar == std::string::npos ? "" : source.substr(bar);
  if (public_text.find("docs/") != std::string::npos) kinds.emplace_back("document");
  if (public_text.find("kernels/") != std::string::npos) kinds.emplace_back("public kernel");
  return Join(kinds);
}

}  // namespace

std::vector<Api> ApiRows() {
  std::vector<Api> rows = {
      // --- kernels -----------------------------------------------------------------------------------------------
      {"bang.h", "header", "", "", "", "", "", "bang.h | kernels/*/*.mlu"},
      {"__mlu_entry__", "macro", "", "", "", "", "a kernel", kTypes},
      {"__nram__", "macro", "", "", "", "", "memory of the core", kTypes},
      {"__wram__", "macro", "", "", "", "", "right operands of products", kTypes},
      {"__mlu_shared__", "macro", "", "", "", "", "SRAM of the cluster; not of a Block launch", kTypes},
      {"taskId", "macro", "", "", "", "S", "", kGrid},
      {"coreId", "macro", "", "", "", "S", "0x80 on the cluster's memory core", kGrid},
      {"clusterId", "macro", "", "", "", "S", "", kGrid},
      {"__is_mpu", "plain", "", "", "", "S", "whether this is the cluster's memory core", kUsedDecls},
      {"__is_ipu", "plain", "", "", "", "S", "", kUsedDecls},
      {"half", "type", "", "", "", "", "", kTypes},
      {"bfloat16_t", "type", "", "", "", "", "", kTypes},
      // --- launches ----------------------------------------------------------------------------------------------
      {"cnrtDim3_t", "type", "", "", "", "", "x * y * z tasks; x a multiple of 4 for Union1", kLaunch},
      {"cnrtQueue_t", "type", "", "", "", "", "", kLaunch},
      {"cnrtFunctionType_t", "enum", "cnrtFuncTypeBlock cnrtFuncTypeUnion1", "", "", "", "", kLaunch},
      {"mluFusionOpCode", "enum",
       "FUSION_FMA FUSION_FMS FUSION_FAM FUSION_FSM FUSION_FAA FUSION_FAS FUSION_FSA FUSION_FSS", "", "", "",
       "src0 op src1 op src2; M multiplies, A adds, S subtracts", kTypes},
      // --- copies ------------------------------------------------------------------------------------------------
      {"mluMemcpyDirection_t", "enum",
       "GDRAM2NRAM NRAM2GDRAM GDRAM2SRAM SRAM2GDRAM NRAM2SRAM SRAM2NRAM NRAM2NRAM NRAM2WRAM GDRAM2WRAM SRAM2WRAM "
       "GDRAM2GDRAM",
       "", "", "", "", kTypes},
      {"__memcpy", "plain", "dst:void* src:void* size:int[1,2147483647] dir:mluMemcpyDirection_t", "", "", "IO, MOVE",
       std::string(kDirections) + "; waits for all work before it, done when it returns", kUsedDecls},
      {"__memcpy", "strided",
       "dst:void* src:void* size:int[1,2147483647] dir:mluMemcpyDirection_t dst_stride:int src_stride:int "
       "segnum:int[0,2147483647]",
       "", "", "IO, MOVE", std::string(kDirections) + "; strides in bytes, segnum is segments - 1", kUsedDecls},
      {"__memcpy", "3d",
       "dst:void* src:void* size:int[1,2147483647] dir:mluMemcpyDirection_t dst_stride0:int "
       "dst_segnum1:int[0,65535] dst_stride1:int dst_segnum2:int[0,65535] src_stride0:int "
       "src_segnum1:int[0,65535] src_stride1:int src_segnum2:int[0,65535]",
       "", "", "IO, MOVE", std::string(kDirections) + "; waits for all work before it, done when it returns",
       kUsedDecls},
      {"__memcpy_async", "plain", "dst:void* src:void* size:int[1,2147483647] dir:mluMemcpyDirection_t", "", "",
       "IO, MOVE", kDirections, kUsedDecls},
      {"__memcpy_async", "strided",
       "dst:void* src:void* size:int[1,2147483647] dir:mluMemcpyDirection_t dst_stride:int src_stride:int "
       "segnum:int[0,2147483647]",
       "", "", "IO, MOVE",
       std::string(kDirections) +
           "; strides in bytes, segnum is segments - 1; a stride of 0 repeats the source; no stride is below size else",
       kUsedDecls},
      {"__memcpy_async", "3d",
       "dst:void* src:void* size:int[1,2147483647] dir:mluMemcpyDirection_t dst_stride0:int "
       "dst_segnum1:int[0,2147483647] dst_stride1:int dst_segnum2:int[0,2147483647] src_stride0:int "
       "src_segnum1:int[0,2147483647] src_stride1:int src_segnum2:int[0,2147483647]",
       "", "", "IO, MOVE", std::string(kDirections) + "; both sides have as many segments in all", kUsedDecls},
      // --- synchronisation ---------------------------------------------------------------------------------------
      {"sync;", "statement", "__asm__ __volatile__(\"sync;\\n\\t\");", "", "", "S",
       "all of the core's pipes, where there is no function for it", "bang_device_functions.h", "", "", "3"},
      {"__sync", "plain", "", "", "", "S", "all of the core's pipes", kKernels, "", "", "4"},
      {"__sync_compute", "plain", "", "", "", "S", "COMPUTE alone, no copies", kUsedDecls},
      {"__sync_io", "plain", "", "", "", "S", "copies from and to GDRAM", kPipes, "", "", "4"},
      {"__sync_move", "plain", "", "", "", "S", "copies between memories on chip", kPipes, "", "", "4"},
      {"__sync_io_move_compute", "plain", "", "", "", "S", "all of the core's pipes", kPipes, "", "", "4"},
      {"__sync_cluster", "plain", "", "", "", "S",
       "the cluster's four cores and its memory core; Union launches only; the core's pipes are drained first",
       kUsedDecls},
      {"__sync_all_ipu", "plain", "", "", "", "S", "all cores of the task but memory cores; Union launches only",
       kUsedDecls},
      // --- products ----------------------------------------------------------------------------------------------
      {"__bang_reshape_filter", "plain", "dst:T* src:T* n:int[1,65535] h:int[1,65535] w:int[1,65535] c:int[1,65535]",
       "float; half; int8_t", "", "COMPUTE", "n a multiple of 64, h * w * c * sizeof(T) of 128; dst is not src",
       kUsedDecls},
      {"__bang_matmul", "plain",
       "dst:float* src:T* weight:T* height:int[1,65535] inner:int[1,65535] width:int[1,65535]", "float", "", "COMPUTE",
       "dst[height][width] = src[height][inner] * weight; weight in WRAM, [width][inner] through "
       "__bang_reshape_filter; inner * sizeof(T) a multiple of 64, width of 64; no public text shows how half weights "
       "lie",
       kButterfly, "", "", "4"},
  };
  for (const Api& row : VectorRows()) rows.push_back(row);
  for (const Api& row : CastRows()) rows.push_back(row);
  for (Api& row : rows) row.evidence = EvidenceOf(row.source);
  return rows;
}

}  // namespace uir::codegen::bang
