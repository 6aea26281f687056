// SPDX-License-Identifier: Apache-2.0
// The table of PTX wrappers.  Instructions, operands and least architectures are those of the PTX ISA.
#include "codegen/cuda/intrinsics.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <algorithm>

#include "codegen/cuda/warpgroup_intrinsics.h"
#include "codegen/error.h"

namespace uir::codegen::cuda {

namespace ffi = tvm::ffi;

namespace {

std::string Wrapper(const std::string& signature, const std::string& body) {
  return "__device__ __forceinline__ " + signature + " {\n" + body + "}\n";
}

Intrinsic CpAsync(int bytes) {
  // .cg leaves the L1 alone, and exists for 16 bytes only
  std::string how = bytes == 16 ? "cg" : "ca", n = std::to_string(bytes);
  return {"cp_async_" + n,
          80,
          false,
          {"shared_address"},
          Wrapper("void cp_async_" + n + "(void* shared, const void* global)",
                  "  asm volatile(\"cp.async." + how + ".shared.global [%0], [%1], " + n +
                      ";\" ::\"r\"(shared_address(shared)), \"l\"(global) : \"memory\");\n")};
}

Intrinsic CpAsyncZfill(int bytes) {
  std::string how = bytes == 16 ? "cg" : "ca", n = std::to_string(bytes);
  return {"cp_async_" + n + "_zfill",
          80,
          false,
          {"shared_address"},
          Wrapper("void cp_async_" + n + "_zfill(void* shared, const void* global, int bytes)",
                  "  asm volatile(\"cp.async." + how + ".shared.global [%0], [%1], " + n +
                      ", %2;\" ::\"r\"(shared_address(shared)), \"l\"(global), \"r\"(bytes) : \"memory\");\n")};
}

Intrinsic LdMatrix(int count, bool transposed) {
  std::string n = std::to_string(count), name = "ldmatrix_x" + n + (transposed ? "_trans" : "");
  std::string places, outputs;
  for (int i = 0; i < count; ++i) {
    places += (i ? ", %" : "%") + std::to_string(i);
    outputs += (i ? ", \"=r\"(r[" : "\"=r\"(r[") + std::to_string(i) + "])";
  }
  return {name,
          75,
          false,
          {"shared_address"},
          Wrapper("void " + name + "(uint32_t* r, const void* row)",
                  "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x" + n + (transposed ? ".trans" : "") + ".shared.b16 {" +
                      places + "}, [%" + n + "];\"\n               : " + outputs +
                      "\n               : \"r\"(shared_address(row))\n               : \"memory\");\n")};
}

//! \brief mma.sync of 16 rows and 8 columns in 32-bit registers: low (rows 0 to 7) and high (rows 8 to 15) += a.b.
//! Lane l has the elements of row l / 4 (and 8 more) and columns 2 * (l % 4), 2 * (l % 4) + 1, STEP registers apart.
Intrinsic Mma(const std::string& name, int arch, const std::string& instruction, const std::string& sum) {
  const std::string c = sum == "float" ? "\"+f\"" : "\"+r\"";
  return {
      name,
      arch,
      false,
      {},
      "template <int STEP = 1>\n" +
          Wrapper("void " + name + "(" + sum + "* low, " + sum + "* high, const uint32_t* a, const uint32_t* b)",
                  "  asm volatile(\"" + instruction +
                      " \"\n               \"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"
                      "               : " +
                      c + "(low[0]), " + c + "(low[STEP]), " + c + "(high[0]), " + c +
                      "(high[STEP])\n               : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), "
                      "\"r\"(b[1]));\n")};
}

std::vector<Intrinsic> Table() {
  std::vector<Intrinsic> out;
  out.push_back({"shared_address",
                 70,
                 false,
                 {},
                 Wrapper("unsigned shared_address(const void* pointer)",
                         "  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));\n")});
  for (int bytes : {4, 8, 16}) out.push_back(CpAsync(bytes));
  for (int bytes : {4, 8, 16}) out.push_back(CpAsyncZfill(bytes));
  out.push_back({"cp_async_commit",
                 80,
                 false,
                 {},
                 Wrapper("void cp_async_commit()", "  asm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n")});
  out.push_back(
      {"cp_async_wait",
       80,
       false,
       {},
       "template <int N>\n" +
           Wrapper("void cp_async_wait()", "  asm volatile(\"cp.async.wait_group %0;\" ::\"n\"(N) : \"memory\");\n")});
  for (int count : {1, 2, 4}) out.push_back(LdMatrix(count, false));
  for (int count : {1, 2, 4}) out.push_back(LdMatrix(count, true));

  const struct {
    const char* name;
    int arch;
    const char* types;
    const char* sum;
  } products[] = {
      {"mma_m16n8k16_f16", 80, "m16n8k16.row.col.f32.f16.f16.f32", "float"},
      {"mma_m16n8k16_bf16", 80, "m16n8k16.row.col.f32.bf16.bf16.f32", "float"},
      {"mma_m16n8k8_tf32", 80, "m16n8k8.row.col.f32.tf32.tf32.f32", "float"},
      {"mma_m16n8k32_s8", 80, "m16n8k32.row.col.s32.s8.s8.s32", "int32_t"},
      {"mma_m16n8k32_u8", 80, "m16n8k32.row.col.s32.u8.u8.s32", "int32_t"},
      {"mma_m16n8k32_e4m3", 89, "m16n8k32.row.col.f32.e4m3.e4m3.f32", "float"},
      {"mma_m16n8k32_e5m2", 89, "m16n8k32.row.col.f32.e5m2.e5m2.f32", "float"},
  };
  for (const auto& row : products) {
    out.push_back(Mma(row.name, row.arch, std::string("mma.sync.aligned.") + row.types, row.sum));
  }
  out.push_back({"mma_m8n8k4_f64",
                 80,
                 false,
                 {},
                 Wrapper("void mma_m8n8k4_f64(double* d, double a, double b)",
                         "  asm volatile(\"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, "
                         "{%0, %1};\"\n               : \"+d\"(d[0]), \"+d\"(d[1])\n               : \"d\"(a), "
                         "\"d\"(b));\n")});

  out.push_back({"to_tf32",
                 80,
                 false,
                 {},
                 Wrapper("uint32_t to_tf32(float x)",
                         "  uint32_t bits;\n  asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(bits) : \"f\"(x));\n"
                         "  return bits;\n")});

  out.push_back({"mbarrier_init",
                 80,
                 false,
                 {"shared_address"},
                 Wrapper("void mbarrier_init(uint64_t* bar, int count)",
                         "  asm volatile(\"mbarrier.init.shared.b64 [%0], %1;\" ::\"r\"(shared_address(bar)), "
                         "\"r\"(count) : \"memory\");\n")});
  out.push_back({"mbarrier_expect_tx",
                 90,
                 false,
                 {"shared_address"},
                 Wrapper("void mbarrier_expect_tx(uint64_t* bar, int bytes)",
                         "  asm volatile(\"mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;\" "
                         "::\"r\"(shared_address(bar)),\n               \"r\"(bytes) : \"memory\");\n")});
  out.push_back({"mbarrier_arrive",
                 80,
                 false,
                 {"shared_address"},
                 Wrapper("void mbarrier_arrive(uint64_t* bar)",
                         "  asm volatile(\"{\\n  .reg .b64 state;\\n  mbarrier.arrive.shared.b64 state, [%0];\\n}\" "
                         "::\"r\"(shared_address(bar))\n               : \"memory\");\n")});
  out.push_back({"mbarrier_wait",
                 90,
                 false,
                 {"shared_address"},
                 Wrapper("void mbarrier_wait(uint64_t* bar, int parity)",
                         "  uint32_t done = 0;\n  while (!done) {\n    asm volatile(\n"
                         "        \"{\\n  .reg .pred p;\\n\"\n"
                         "        \"  mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\\n\"\n"
                         "        \"  selp.u32 %0, 1, 0, p;\\n}\"\n"
                         "        : \"=r\"(done)\n        : \"r\"(shared_address(bar)), \"r\"(parity)\n"
                         "        : \"memory\");\n  }\n")});
  out.push_back({"bulk_copy",
                 90,
                 false,
                 {"shared_address"},
                 Wrapper("void bulk_copy(void* shared, const void* global, int bytes, uint64_t* bar)",
                         "  asm volatile(\n      \"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%0], [%1], %2, [%3];\" ::\"r\"(\n          shared_address(shared)),\n      \"l\"(global), "
                         "\"r\"(bytes), \"r\"(shared_address(bar)) : \"memory\");\n")});
  out.push_back(
      {"fence_async",
       90,
       false,
       {},
       Wrapper("void fence_async()", "  asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");\n")});
  out.push_back({"fence_mbarrier_init",
                 90,
                 false,
                 {},
                 Wrapper("void fence_mbarrier_init()",
                         "  asm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\");\n")});
  out.push_back({"named_barrier",
                 70,
                 false,
                 {},
                 Wrapper("void named_barrier(int id, int threads)",
                         "  asm volatile(\"bar.sync %0, %1;\" ::\"r\"(id), \"r\"(threads) : \"memory\");\n")});
  for (Intrinsic& one : WarpgroupIntrinsics()) out.push_back(std::move(one));
  return out;
}

const Intrinsic& FindIntrinsic(const std::string& name) {
  for (const Intrinsic& one : Intrinsics()) {
    if (one.name == name) return one;
  }
  TVM_FFI_THROW(InternalError) << "there is no PTX wrapper '" << name << "'";
  TVM_FFI_UNREACHABLE();
}

void Collect(const std::string& name, std::set<std::string>* into) {
  if (!into->insert(name).second) return;
  for (const std::string& other : FindIntrinsic(name).calls) Collect(other, into);
}

}  // namespace

Arch Arch::Parse(const std::string& name) {
  Arch out;
  size_t end = name.size();
  if (name.rfind("sm_", 0) == 0 && end > 3) {
    out.specific = name.back() == 'a';
    std::string digits = name.substr(3, end - 3 - (out.specific ? 1 : 0));
    if (!digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
        digits.size() < 5) {
      out.number = std::stoi(digits);
      return out;
    }
  }
  CodegenError("'" + name + "' is no architecture of CUDA.", "figure arch of the hardware model",
               "sm_ and a number, as sm_80 or sm_90a", "", "set the figure arch");
}

std::string Arch::Name() const { return "sm_" + std::to_string(number) + (specific ? "a" : ""); }

const StagedCopies& StagedCopiesOf(const Arch& arch) {
  static const std::vector<StagedCopies> table = {{0, false, false}, {80, true, false}, {90, true, true}};
  return *std::find_if(table.rbegin(), table.rend(), [&](const auto& row) { return arch.number >= row.arch; });
}

const std::vector<Intrinsic>& Intrinsics() {
  static const std::vector<Intrinsic> table = Table();
  return table;
}

bool HasIntrinsic(const std::string& name, const Arch& arch) {
  const Intrinsic& one = FindIntrinsic(name);
  return arch.number >= one.arch && (!one.specific || (arch.specific && arch.number == one.arch));
}

std::string IntrinsicsText(const std::set<std::string>& names) {
  std::set<std::string> all;
  for (const std::string& name : names) Collect(name, &all);
  std::string out;
  for (const Intrinsic& one : Intrinsics()) {
    if (all.count(one.name)) out += one.text;
  }
  return out;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  ffi::reflection::GlobalDef()
      // for tests and `uir doctor`: name, least architecture and text of every wrapper
      .def("uir.codegen.cuda.intrinsics", [] {
        ffi::Array<ffi::Map<ffi::String, ffi::Any>> out;
        for (const Intrinsic& one : Intrinsics()) {
          out.push_back({{"name", ffi::String(one.name)},
                         {"arch", one.arch},
                         {"specific", one.specific},
                         {"text", ffi::String(IntrinsicsText({one.name}))}});
        }
        return out;
      });
}

}  // namespace uir::codegen::cuda
