// SPDX-License-Identifier: Apache-2.0
// Products of the cube core, and their way to global memory.
//
// A lies in L0A as rows of fractals of 16 rows x 32 bytes (Zz), B in L0B as rows of fractals of 32 bytes x 16 columns,
// each of which stands column by column (Zn), C in L0C as columns of fractals of 16 x 16 (Nz). A product of one row
// reads A as a plain vector. Products are added up along k, in float or int32.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/rounding.h"
#include "device/ascendc/engine.h"
#include "device/ascendc/instruction.h"
#include "device/ascendc/lanes.h"

namespace uir::ascendc {

namespace {

constexpr int64_t kSide = 16;

/*! \brief The shape of a product in fractals. */
struct Shape {
  int64_t m, n, k;
  int64_t size;       // bytes of an element of A and B
  int64_t per_block;  // elements of them in 32 bytes
  int64_t row_blocks, column_blocks, k_blocks;
  bool vector;

  int64_t A(int64_t i, int64_t l) const {
    if (vector) return l * size;
    return (i / kSide * k_blocks + l / per_block) * kFractalBytes + i % kSide * 32 + l % per_block * size;
  }
  int64_t B(int64_t l, int64_t j) const {
    return (l / per_block * column_blocks + j / kSide) * kFractalBytes + j % kSide * 32 + l % per_block * size;
  }
  int64_t C(int64_t i, int64_t j) const {
    return ((j / kSide * row_blocks + i / kSide) * kSide * kSide + i % kSide * kSide + j % kSide) * 4;
  }
};

Shape ShapeOf(const UirMmad& mmad) {
  Shape s;
  s.m = mmad.m;
  s.n = mmad.n;
  s.k = mmad.k;
  s.size = static_cast<int64_t>(TypeBytes(mmad.a.type));
  s.per_block = 32 / s.size;
  s.row_blocks = CeilDiv(s.m, kSide);
  s.column_blocks = CeilDiv(s.n, kSide);
  s.k_blocks = CeilDiv(s.k, s.per_block);
  if (mmad.align_k && s.size == 4) s.k_blocks = CeilDiv(s.k, 16) * 2;
  s.vector = s.m == 1;
  return s;
}

float Load(const uint8_t* at, uint32_t type) {
  return type == kUirInt8 ? static_cast<int8_t>(*at) : LoadFloat(at, type);
}

/*! \brief C of the kernel's type: float, or int32 for products of int8. */
template <typename T>
void Multiply(const UirMmad& mmad, const Shape& s, const Operand& a, const Operand& b, const Operand& c,
              const Operand* bias) {
  std::vector<T> left(static_cast<size_t>(s.m * s.k)), right(static_cast<size_t>(s.k * s.n)),
      sum(static_cast<size_t>(s.m * s.n), 0);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t l = 0; l < s.k; ++l) {
      left[static_cast<size_t>(i * s.k + l)] = static_cast<T>(Load(a.data + s.A(i, l), mmad.a.type));
    }
  }
  for (int64_t l = 0; l < s.k; ++l) {
    for (int64_t j = 0; j < s.n; ++j) {
      right[static_cast<size_t>(l * s.n + j)] = static_cast<T>(Load(b.data + s.B(l, j), mmad.b.type));
    }
  }
  for (int64_t i = 0; i < s.m; ++i) {
    T* row = sum.data() + i * s.n;
    if (!mmad.from_zero) {
      for (int64_t j = 0; j < s.n; ++j) {
        std::memcpy(row + j, bias ? bias->data + j * 4 : c.data + s.C(i, j), 4);
      }
    }
    for (int64_t l = 0; l < s.k; ++l) {
      T factor = left[static_cast<size_t>(i * s.k + l)];
      const T* other = right.data() + l * s.n;
      for (int64_t j = 0; j < s.n; ++j) row[j] += factor * other[j];
    }
    for (int64_t j = 0; j < s.n; ++j) std::memcpy(c.data + s.C(i, j), row + j, 4);
  }
}

bool KnownInputs(const Shape& s, const UirMmad& mmad, const Operand& a, const Operand& b, const Operand& c,
                 const Operand* bias) {
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t l = 0; l < s.k; ++l) {
      if (!AllKnown(a.known + s.A(i, l), s.size)) return false;
    }
    for (int64_t j = 0; j < s.n && !mmad.from_zero && !bias; ++j) {
      if (!AllKnown(c.known + s.C(i, j), 4)) return false;
    }
  }
  for (int64_t l = 0; l < s.k; ++l) {
    for (int64_t j = 0; j < s.n; ++j) {
      if (!AllKnown(b.known + s.B(l, j), s.size)) return false;
    }
  }
  return !bias || AllKnown(bias->known, s.n * 4);
}

bool Types(const UirMmad& mmad) {
  if (mmad.a.type != mmad.b.type) return false;
  bool floats = mmad.a.type == kUirHalf || mmad.a.type == kUirBfloat16 || mmad.a.type == kUirFloat;
  return floats ? mmad.c.type == kUirFloat : mmad.a.type == kUirInt8 && mmad.c.type == kUirInt32;
}

void NeedAt(const UirTensor& tensor, const char* role, uint32_t memory, uint64_t alignment, Instruction* instruction) {
  instruction->Need(
      tensor.memory == memory, "path",
      std::string("the ") + role + " lies in " + MemoryName(tensor.memory) + ", not in " + MemoryName(memory));
  instruction->Need(tensor.address % alignment == 0, "misaligned",
                    std::string("the ") + role + " needs an alignment of " + std::to_string(alignment) + " bytes");
}

}  // namespace

void RunMmad(const UirMmad& mmad, int line) {
  Instruction instruction("Mmad", kUirM, line);
  for (int64_t extent : {mmad.m, mmad.n, mmad.k}) {
    instruction.Need(extent >= 0 && extent <= 4095, "limit",
                     "an extent is " + std::to_string(extent) + "; 0 to 4095 are possible");
  }
  bool bias_table = mmad.from_bias != 0 && !mmad.from_zero;
  NeedAt(mmad.c, "result", kUirL0c, 1024, &instruction);
  NeedAt(mmad.a, "left factor", kUirL0a, 512, &instruction);
  NeedAt(mmad.b, "right factor", kUirL0b, 512, &instruction);
  if (bias_table) NeedAt(mmad.bias, "bias", kUirBias, 64, &instruction);
  instruction.Need(Types(mmad), "dtype",
                   std::string("no product of ") + TypeName(mmad.a.type) + " and " + TypeName(mmad.b.type) + " to " +
                       TypeName(mmad.c.type));
  instruction.Need(mmad.unit_flag == 0, "mode", "the model knows no unit flags");
  if (instruction.faulty() || !mmad.m || !mmad.n || !mmad.k) return;
  Shape s = ShapeOf(mmad);
  Core& core = *machine.core;
  // Large products on one result wait for each other by themselves.
  if ((s.m / kSide) * (s.n / kSide) >= 10) core.pipes.Barrier(kUirM);
  Operand& a = instruction.Reads(mmad.a, "left factor");
  Operand& b = instruction.Reads(mmad.b, "right factor");
  Operand* bias = bias_table ? &instruction.Reads(mmad.bias, "bias") : nullptr;
  if (bias) bias->ranges.Add(0, s.n * 4);
  Operand* before = !mmad.from_zero && !bias ? &instruction.Reads(mmad.c, "result before") : nullptr;
  Operand& c = instruction.Writes(mmad.c, "result");
  a.ranges.Add(0, s.vector ? s.k * s.size : s.row_blocks * s.k_blocks * kFractalBytes);
  b.ranges.Add(0, CeilDiv(s.k, s.per_block) * s.column_blocks * kFractalBytes);
  int64_t bytes = s.row_blocks * s.column_blocks * kSide * kSide * 4;
  c.ranges.Add(0, bytes);
  if (before) before->ranges.Add(0, bytes);
  if (!instruction.Begin(32)) return;
  // One block of 16 x 16 x 32 bytes a cycle; elements of four bytes take twice as long.
  double operations = 2.0 * static_cast<double>(s.row_blocks * s.column_blocks * kSide * kSide * s.k_blocks * 16);
  if (s.size == 4) operations *= 2;
  double rate = machine.device.cube_operations;
  instruction.End(machine.device.timed && rate > 0 ? operations / rate : 0, machine.device.pipes[kUirM].start);
  if (!machine.values) return;
  bool known = KnownInputs(s, mmad, a, b, c, bias);
  if (!known) instruction.Fault("unwritten", "multiplies elements that nobody wrote", kUirL0a);
  if (mmad.c.type == kUirFloat) {
    Multiply<float>(mmad, s, a, b, c, bias);
  } else {
    Multiply<int32_t>(mmad, s, a, b, c, bias);
  }
  // What lies in the last fractals beyond m and n is nothing.
  SetKnown(c.known, bytes, false);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) SetKnown(c.known + s.C(i, j), 4);
  }
}

void RunFixpipe(const UirFixpipe& fix, int line) {
  Instruction instruction("Fixpipe", kUirFix, line);
  enum { kNoQuant, kToHalf, kToBfloat16 };  // in the order of QuantMode_t
  uint32_t to = fix.dst.type;
  auto size = static_cast<int64_t>(TypeBytes(to));
  NeedAt(fix.src, "source", kUirL0c, 64, &instruction);
  bool plain = fix.quant == kNoQuant && to == fix.src.type;
  bool half = fix.quant == kToHalf && to == kUirHalf && fix.src.type == kUirFloat;
  bool bfloat = fix.quant == kToBfloat16 && to == kUirBfloat16 && fix.src.type == kUirFloat;
  instruction.Need(plain || half || bfloat, "mode",
                   std::string("the model knows no quantisation ") + std::to_string(fix.quant) + " of " +
                       TypeName(fix.src.type) + " to " + TypeName(to));
  instruction.Need(!fix.split, "mode", "the model knows no split of channels");
  instruction.Need(fix.unit_flag == 0, "mode", "the model knows no unit flags");
  instruction.Need(fix.n >= 0 && fix.n <= 4095 && (fix.rows || fix.n % 16 == 0), "limit",
                   "nSize is " + std::to_string(fix.n) + "; it is at most 4095, and a multiple of 16 for NZ");
  instruction.Need(fix.m >= 0 && fix.m <= (fix.rows ? 8192 : 65535), "limit", "mSize is " + std::to_string(fix.m));
  instruction.Need(fix.src_stride >= 0 && fix.src_stride <= 65535, "limit",
                   "srcStride is " + std::to_string(fix.src_stride));
  instruction.Need(fix.dst_stride > 0 || fix.m == 0 || fix.n == 0, "limit", "dstStride is 0");
  instruction.Need(fix.src_matrix >= 0 && fix.src_matrix <= 512 && fix.dst_matrix >= 0 && fix.dst_matrix <= 65535,
                   "limit", "a stride between matrices is beyond its limit");
  if (instruction.faulty() || !fix.m || !fix.n || !fix.matrices) return;
  auto from = [&](int64_t matrix, int64_t i, int64_t j) {
    return (matrix * fix.src_matrix * kSide * kSide + j / kSide * fix.src_stride * kSide + i * kSide + j % kSide) * 4;
  };
  auto into = [&](int64_t matrix, int64_t i, int64_t j) {
    if (fix.rows) return (matrix * fix.dst_matrix + i * fix.dst_stride + j) * size;
    return j / kSide * fix.dst_stride * 32 + (i * kSide + j % kSide) * size;
  };
  Operand& src = instruction.Reads(fix.src, "source");
  Operand& dst = instruction.Writes(fix.dst, "target");
  for (int64_t matrix = 0; matrix < fix.matrices; ++matrix) {
    for (int64_t j = 0; j < fix.n; j += kSide) {
      src.ranges.Add(from(matrix, 0, j), fix.m * kSide * 4);
    }
    for (int64_t i = 0; i < fix.m; ++i) {
      for (int64_t j = 0; j < fix.n; j += kSide) {
        dst.ranges.Add(into(matrix, i, j), std::min(kSide, fix.n - j) * size);
      }
    }
  }
  if (!instruction.Begin(32)) return;
  instruction.EndTransfer(dst, fix.m * fix.matrices, true);
  if (!machine.values) return;
  bool known = true;
  for (int64_t matrix = 0; matrix < fix.matrices; ++matrix) {
    for (int64_t i = 0; i < fix.m; ++i) {
      for (int64_t j = 0; j < fix.n; ++j) {
        const uint8_t* at = src.data + from(matrix, i, j);
        known = known && AllKnown(src.known + from(matrix, i, j), 4);
        uint8_t* place = dst.data + into(matrix, i, j);
        float value;
        int32_t whole;
        std::memcpy(&value, at, 4);
        std::memcpy(&whole, at, 4);
        if (fix.relu) {
          value = value > 0 ? value : 0;
          whole = whole > 0 ? whole : 0;
        }
        if (plain) {
          std::memcpy(place, fix.src.type == kUirFloat ? static_cast<const void*>(&value) : &whole, 4);
        } else {
          uint16_t bits;
          (half ? HalfOfFloat : Bfloat16OfFloat)(&bits, &value, 1);
          std::memcpy(place, &bits, 2);
        }
      }
    }
  }
  for (const Range& range : dst.ranges.list()) {
    dst.allocation->written.Insert(static_cast<size_t>(dst.data + range.begin - dst.allocation->data),
                                   static_cast<size_t>(range.bytes));
  }
  if (!known) instruction.Fault("unwritten", "stores elements of a product that nobody computed", kUirL0c);
}

}  // namespace uir::ascendc

extern "C" {

void uir_ascendc_mmad(const UirMmad* mmad, int line) { uir::ascendc::RunMmad(*mmad, line); }
void uir_ascendc_fixpipe(const UirFixpipe* fixpipe, int line) { uir::ascendc::RunFixpipe(*fixpipe, line); }

}  // extern "C"
