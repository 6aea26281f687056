// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/warpgroup_intrinsics.h"

namespace uir::codegen::cuda {

namespace {

constexpr int kArch = 90;

// tf32 cuts factors that mma.sync gets rounded, and fp8 is summed in fewer bits than fp32 has (DeepSeek-V3 technical
// report, arXiv:2412.19437, section 3.3.2: about 14)
constexpr WgmmaRow kRows[] = {
    {"mma_m16n8k16_f16", 16, "f16", "f32.f16.f16", true, false},
    {"mma_m16n8k16_bf16", 16, "bf16", "f32.bf16.bf16", true, false},
    {"mma_m16n8k8_tf32", 8, "tf32", "f32.tf32.tf32", false, true},
    {"mma_m16n8k32_s8", 32, "s8", "s32.s8.s8", false, false},
    {"mma_m16n8k32_u8", 32, "u8", "s32.u8.u8", false, false},
    {"mma_m16n8k32_e4m3", 32, "e4m3", "f32.e4m3.e4m3", false, true},
    {"mma_m16n8k32_e5m2", 32, "e5m2", "f32.e5m2.e5m2", false, true},
};

bool SumsIntegers(const WgmmaRow& row) { return row.types[0] == 's'; }

/*! \brief "%4, %5, %6": operands of an asm statement. */
std::string Places(int first, int count) {
  std::string out;
  for (int i = first; i < first + count; ++i) out += (i == first ? "%" : ", %") + std::to_string(i);
  return out;
}

Intrinsic Product(const WgmmaRow& row, int columns, bool tiles) {
  const int sums = columns / 2, factor = tiles ? 1 : 4;
  std::string flags, inputs;
  for (int i = 0; i < 4 && !tiles; ++i) inputs += "\"r\"(a[" + std::to_string(i) + "]), ";
  if (tiles) inputs = "\"l\"(a), ";
  inputs += "\"l\"(b)";
  std::string signature;
  if (row.either_way) {
    signature = tiles ? "template <int A_ACROSS, int B_ACROSS>\n" : "template <int B_ACROSS>\n";
    inputs += tiles ? ", \"n\"(A_ACROSS), \"n\"(B_ACROSS)" : ", \"n\"(B_ACROSS)";
    flags = ", 1, 1, " + Places(sums + factor + 1, tiles ? 2 : 1);
  } else if (!SumsIntegers(row)) {
    flags = ", 1, 1";
  }
  std::string outputs, type = SumsIntegers(row) ? "int32_t" : "float", kind = SumsIntegers(row) ? "\"+r\"" : "\"+f\"";
  for (int j = 0; j < columns / 4; j += 2) {
    const std::string at = std::to_string(j), next = std::to_string(j + 1);
    outputs += (j ? ",\n                 " : "") + kind + "(low[" + at + "]), " + kind + "(low[" + next + "]), " +
               kind + "(high[" + at + "]), " + kind + "(high[" + next + "])";
  }
  const std::string name = WgmmaName(row, columns, tiles);
  const std::string a = tiles ? Places(sums, 1) : "{" + Places(sums, 4) + "}";
  signature += "__device__ __forceinline__ void " + name + "(" + type + "* low, " + type + "* high, " +
               (tiles ? "uint64_t a" : "const uint32_t* a") + ", uint64_t b)";
  return {name,
          kArch,
          true,
          {},
          signature +
              " {\n  asm volatile(\"{\\n  .reg .pred p;\\n  setp.ne.b32 p, 1, 0;\\n\"\n"
              "               \"  wgmma.mma_async.sync.aligned.m64n" +
              std::to_string(columns) + "k" + std::to_string(row.k) + "." + row.types + " \"\n               \"{" +
              Places(0, sums) + "}, \"\n               \"" + a + ", " + Places(sums + factor, 1) + ", p" + flags +
              ";\\n}\"\n               : " + outputs + "\n               : " + inputs + ");\n}\n"};
}

//! \brief What surrounds products. Their sums are operands of the fence and of the wait, the factors in registers of
//! the fence, by empty statements right before and after these: a compiler knows nothing of what happens to registers
//! between the two, and would else be free to move across what sets or reads them (CUTLASS: `warpgroup_fence_operand`).
std::vector<Intrinsic> StepIntrinsics() {
  const std::string function = "__device__ __forceinline__ void ";
  std::string hold = "// What sets or reads these registers stays on its side of this.\n";
  for (const auto& [type, constraint] :
       {std::pair("float", "+f"), std::pair("int32_t", "+r"), std::pair("uint32_t", "+r")}) {
    hold += function + "wgmma_hold(" + type + "& x) { asm volatile(\"\" : \"" + constraint + "\"(x)::\"memory\"); }\n";
  }
  hold += "template <typename T, int N>\n" + function +
          "wgmma_hold(T (&parts)[N]) {\n#pragma unroll\n  for (int i = 0; i < N; ++i) wgmma_hold(parts[i]);\n}\n";
  return {
      {"wgmma_hold", kArch, true, {}, hold},
      {"wgmma_fence",
       kArch,
       true,
       {"wgmma_hold"},
       "template <typename... T>\n" + function +
           "wgmma_fence(T&... operands) {\n  (wgmma_hold(operands), ...);\n"
           "  asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n}\n"},
      {"wgmma_commit",
       kArch,
       true,
       {},
       function + "wgmma_commit() {\n  asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n}\n"},
      {"wgmma_wait",
       kArch,
       true,
       {"wgmma_hold"},
       "template <int GROUPS, typename... T>\n" + function +
           "wgmma_wait(T&... operands) {\n"
           "  asm volatile(\"wgmma.wait_group.sync.aligned %0;\" ::\"n\"(GROUPS) : \"memory\");\n"
           "  (wgmma_hold(operands), ...);\n}\n"},
  };
}

}  // namespace

const WgmmaRow* WgmmaRowOf(const std::string& mma) {
  for (const WgmmaRow& row : kRows) {
    if (mma == row.mma) return &row;
  }
  return nullptr;
}

std::string WgmmaName(const WgmmaRow& row, int columns, bool tiles) {
  return "wgmma_m64n" + std::to_string(columns) + "k" + std::to_string(row.k) + "_" + row.name +
         (tiles ? "_tiles" : "");
}

std::vector<Intrinsic> WarpgroupIntrinsics() {
  std::vector<Intrinsic> out = StepIntrinsics();
  out.push_back(
      {"wgmma_tile",
       kArch,
       true,
       {"shared_address"},
       "// A tile of atoms of 8 rows by CHUNKS times 16 bytes: bytes from one atom to the next along the rows "
       "(leading)\n// and across them (stride).\n"
       "template <int CHUNKS>\n"
       "__device__ __forceinline__ uint64_t wgmma_tile(const void* first, int leading, int stride) {\n"
       "  constexpr uint64_t swizzle = CHUNKS == 8 ? 1 : CHUNKS == 4 ? 2 : CHUNKS == 2 ? 3 : 0;\n"
       "  return uint64_t((shared_address(first) & 0x3ffff) >> 4) | uint64_t(leading >> 4) << 16 |\n"
       "         uint64_t(stride >> 4) << 32 | swizzle << 62;\n}\n"});
  for (const WgmmaRow& row : kRows) {
    for (int columns : kWgmmaColumns) {
      for (bool tiles : {false, true}) out.push_back(Product(row, columns, tiles));
    }
  }
  return out;
}

}  // namespace uir::codegen::cuda
