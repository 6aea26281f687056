// SPDX-License-Identifier: Apache-2.0
// mma and ldmatrix over the registers of a warp.
//
// Which lane holds which element is what the PTX ISA says ("Matrix fragments for mma.m16n8k16 with floating point
// type", "... mma.m16n8k8", "... mma.m16n8k32", "... mma.m8n8k4 with .f64", "ldmatrix"): with g = lane / 4 and
// t = lane % 4, registers hold runs of elements of rows g and g + 8 of A, of column g of B, and of rows g, g + 8 and
// columns 2t, 2t + 1 of the accumulator. Products are exact; a sum is made in double and rounded once to the
// accumulator's type for each instruction, which is at least as exact as the device.
#include <cstring>

#include "device/simt/include/uir_simt/abi.h"
#include "device/simt/include/uir_simt/narrow.h"
#include "device/simt/machine.h"

namespace uir::simt {

namespace {

using uir_simt::float_of;

/*! \brief How elements lie in 32-bit registers of A and B of m16n8kK. */
struct Shape {
  int k;
  int per_register;  // elements in one register
  double (*value)(uint32_t reg, int element);
};

double HalfAt(uint32_t reg, int i) { return uir_simt::half_to_float(static_cast<uint16_t>(reg >> 16 * i)); }
double Bfloat16At(uint32_t reg, int i) { return uir_simt::bfloat16_to_float(static_cast<uint16_t>(reg >> 16 * i)); }
// The unit ignores the 13 low bits of a tf32 operand.
double Tf32At(uint32_t reg, int) { return float_of(reg & 0xffffe000u); }
double S8At(uint32_t reg, int i) { return static_cast<int8_t>(reg >> 8 * i); }
double U8At(uint32_t reg, int i) { return static_cast<uint8_t>(reg >> 8 * i); }
double E4m3At(uint32_t reg, int i) { return uir_simt::widen(reg >> 8 * i & 0xff, uir_simt::kE4m3); }
double E5m2At(uint32_t reg, int i) { return uir_simt::widen(reg >> 8 * i & 0xff, uir_simt::kE5m2); }

Shape ShapeOf(int kind) {
  switch (kind) {
    case kUirMmaM16N8K16F16:
      return {16, 2, HalfAt};
    case kUirMmaM16N8K16Bf16:
      return {16, 2, Bfloat16At};
    case kUirMmaM16N8K8Tf32:
      return {8, 1, Tf32At};
    case kUirMmaM16N8K32S8:
      return {32, 4, S8At};
    case kUirMmaM16N8K32U8:
      return {32, 4, U8At};
    case kUirMmaM16N8K32E4m3:
      return {32, 4, E4m3At};
    default:
      return {32, 4, E5m2At};
  }
}

void ComputeM16N8(int kind, Lane* lanes) {
  Shape shape = ShapeOf(kind);
  double a[16][32], b[32][8];
  int per = shape.per_register;
  for (int lane = 0; lane < 32; ++lane) {
    int g = lane / 4, t = lane % 4;
    const auto* ra = static_cast<const uint32_t*>(lanes[lane].arrival.a);
    const auto* rb = static_cast<const uint32_t*>(lanes[lane].arrival.b);
    for (int i = 0; i < 4; ++i) {
      for (int e = 0; e < per; ++e) a[g + i % 2 * 8][i / 2 * 4 * per + t * per + e] = shape.value(ra[i], e);
    }
    for (int i = 0; i < 2; ++i) {
      for (int e = 0; e < per; ++e) b[i * 4 * per + t * per + e][g] = shape.value(rb[i], e);
    }
  }
  bool integer = kind == kUirMmaM16N8K32S8 || kind == kUirMmaM16N8K32U8;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      int row = lane / 4 + i / 2 * 8, col = lane % 4 * 2 + i % 2;
      double sum = 0;
      for (int k = 0; k < shape.k; ++k) sum += a[row][k] * b[k][col];
      if (integer) {
        auto* d = static_cast<int32_t*>(lanes[lane].arrival.d);
        d[i] = static_cast<int32_t>(static_cast<uint32_t>(d[i]) + static_cast<uint32_t>(static_cast<int64_t>(sum)));
      } else {
        auto* d = static_cast<float*>(lanes[lane].arrival.d);
        d[i] = static_cast<float>(static_cast<double>(d[i]) + sum);
      }
    }
  }
  machine.counters[kMmaFlops] += 2 * 16 * 8 * shape.k;
}

void ComputeM8N8K4F64(Lane* lanes) {
  double a[8][4], b[4][8];
  for (int lane = 0; lane < 32; ++lane) {
    a[lane / 4][lane % 4] = *static_cast<const double*>(lanes[lane].arrival.a);
    b[lane % 4][lane / 4] = *static_cast<const double*>(lanes[lane].arrival.b);
  }
  for (int lane = 0; lane < 32; ++lane) {
    auto* d = static_cast<double*>(lanes[lane].arrival.d);
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < 4; ++k) d[i] = __builtin_fma(a[lane / 4][k], b[k][lane % 4 * 2 + i], d[i]);
    }
  }
  machine.counters[kMmaFlops] += 2 * 8 * 8 * 4;
}

}  // namespace

double FactorAt(int kind, uint32_t reg, int element) { return ShapeOf(kind).value(reg, element); }

void ComputeMma(int kind, Lane* lanes) {
  if (kind == kUirMmaM8N8K4F64) {
    ComputeM8N8K4F64(lanes);
  } else {
    ComputeM16N8(kind, lanes);
  }
}

void LoadMatrices(int matrices, bool transposed, Block* block, uint32_t warp) {
  Lane* lanes = &block->lanes[warp * kWarp];
  for (int lane = 0; lane < 32; ++lane) {
    auto* r = static_cast<uint32_t*>(lanes[lane].arrival.d);
    for (int m = 0; m < matrices; ++m) {
      uint16_t pair[2];
      for (int e = 0; e < 2; ++e) {
        int row = transposed ? lane % 4 * 2 + e : lane / 4, col = transposed ? lane / 4 : lane % 4 * 2 + e;
        std::memcpy(&pair[e], static_cast<const uint8_t*>(lanes[8 * m + row].arrival.a) + 2 * col, 2);
      }
      r[m] = pair[0] | uint32_t{pair[1]} << 16;
    }
  }
}

}  // namespace uir::simt
