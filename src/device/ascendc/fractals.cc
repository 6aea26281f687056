// SPDX-License-Identifier: Apache-2.0
// Copies of the cube core: matrices to fractals in L1, and fractals to the operands L0A and L0B.
//
// A fractal has 512 bytes: 16 rows of 32 bytes. A matrix of fractals in L1 is a row of columns of them (NZ).
#include <algorithm>
#include <cstring>
#include <string>

#include "base/rounding.h"
#include "device/ascendc/engine.h"
#include "device/ascendc/instruction.h"
#include "device/ascendc/lanes.h"

namespace uir::ascendc {

namespace {

void NeedRange(const char* name, int64_t value, int64_t least, int64_t most, Instruction* instruction) {
  instruction->Need(value >= least && value <= most, "limit", [&] {
    return std::string(name) + " is " + std::to_string(value) + "; " + std::to_string(least) + " to " +
           std::to_string(most) + " are possible";
  });
}

/*! \brief Bytes of global memory that a kernel wrote, or that it was given. */
void LoadKnown(const Operand& source, int64_t from, uint8_t* known, int64_t bytes) {
  auto offset = static_cast<size_t>(source.data + from - source.allocation->data);
  for (int64_t i = 0; i < bytes; ++i) {
    known[i] = source.allocation->written.HasAll(offset + static_cast<size_t>(i), 1) ? 0xFF : 0;
  }
}

bool AllWritten(const Operand& source, int64_t from, int64_t bytes) {
  auto offset = static_cast<size_t>(source.data + from - source.allocation->data);
  auto end = offset + static_cast<size_t>(bytes);
  return source.allocation->written.FirstMissing(offset, static_cast<size_t>(bytes)) == end;
}

/*! \brief How a type's elements make a square matrix of fractals: fractals, and elements on a side. */
struct Square {
  int64_t fractals;
  int64_t side;
};
Square SquareOf(int64_t size) {
  if (size == 1) return {2, 32};
  if (size == 2) return {1, 16};
  return {2, 16};
}

/*! \brief Where element (row, column) of a square lies: fractals follow each other downwards, or to the right. */
int64_t InSquare(int64_t row, int64_t column, int64_t size, int64_t fractal_bytes) {
  int64_t columns = kBlockBytes / size;  // of a fractal
  int64_t fractal = size == 4 ? column / columns : row / 16;
  int64_t r = size == 4 ? row : row % 16, c = size == 4 ? column % columns : column;
  return fractal * fractal_bytes + r * kBlockBytes + c * size;
}

}  // namespace

void RunNd2Nz(const UirNd2Nz& copy, int line) {
  Instruction instruction("DataCopy", kUirMte2, line);
  auto size = static_cast<int64_t>(TypeBytes(copy.dst.type));
  NeedRange("ndNum", copy.matrices, 0, 4095, &instruction);
  NeedRange("nValue", copy.rows, 0, 16384, &instruction);
  NeedRange("dValue", copy.columns, 0, 65535, &instruction);
  NeedRange("srcNdMatrixStride", copy.src_matrix, 0, 65535, &instruction);
  NeedRange("dstNzMatrixStride", copy.dst_matrix, 0, 65535, &instruction);
  if (copy.matrices == 0 || copy.rows == 0 || copy.columns == 0) return;
  NeedRange("srcDValue", copy.src_row, 1, 65535, &instruction);
  NeedRange("dstNzC0Stride", copy.dst_block, 1, 16384, &instruction);
  NeedRange("dstNzNStride", copy.dst_row, 1, 16384, &instruction);
  instruction.Need(copy.dst.memory == kUirL1, "path", "fractals are laid out on the way to L1 alone");
  if (instruction.faulty()) return;
  int64_t per_block = kBlockBytes / size, blocks = CeilDiv(copy.columns, per_block);
  Operand& src = instruction.Reads(copy.src, "source");
  Operand& dst = instruction.Writes(copy.dst, "target");
  auto from = [&](int64_t matrix, int64_t row) { return (matrix * copy.src_matrix + row * copy.src_row) * size; };
  auto to = [&](int64_t matrix, int64_t row, int64_t block) {
    return matrix * copy.dst_matrix * size + (block * copy.dst_block + row * copy.dst_row) * kBlockBytes;
  };
  for (int64_t matrix = 0; matrix < copy.matrices; ++matrix) {
    for (int64_t row = 0; row < copy.rows; ++row) src.ranges.Add(from(matrix, row), copy.columns * size);
    for (int64_t block = 0; block < blocks; ++block) {
      for (int64_t row = 0; row < copy.rows; ++row) dst.ranges.Add(to(matrix, row, block), kBlockBytes);
    }
  }
  if (!instruction.Begin(kBlockBytes)) return;
  instruction.EndTransfer(src, copy.matrices * copy.rows, false);
  if (!machine.values) return;
  for (int64_t matrix = 0; matrix < copy.matrices; ++matrix) {
    for (int64_t row = 0; row < copy.rows; ++row) {
      bool known = AllWritten(src, from(matrix, row), copy.columns * size);
      for (int64_t block = 0; block < blocks; ++block) {
        int64_t bytes = std::min(per_block, copy.columns - block * per_block) * size;
        int64_t at = from(matrix, row) + block * kBlockBytes, place = to(matrix, row, block);
        // The rest of the last block is filled with zeros.
        std::memset(dst.data + place, 0, kBlockBytes);
        SetKnown(dst.known + place, kBlockBytes);
        std::memcpy(dst.data + place, src.data + at, static_cast<size_t>(bytes));
        if (!known) LoadKnown(src, at, dst.known + place, bytes);
      }
    }
  }
}

void RunLoad(const UirLoad& load, int line) {
  auto size = static_cast<int64_t>(TypeBytes(load.dst.type));
  bool global = load.src.memory == kUirGm;
  Instruction instruction(load.square ? "LoadDataWithTranspose" : "LoadData", global ? kUirMte2 : kUirMte1, line);
  bool operand = load.dst.memory == kUirL0a || load.dst.memory == kUirL0b;
  instruction.Need(operand && (global || load.src.memory == kUirL1), "path", [&] {
    return std::string("no load from ") + MemoryName(load.src.memory) + " to " + MemoryName(load.dst.memory);
  });
  instruction.Need(size <= 4, "dtype", [&] { return std::string("not of ") + TypeName(load.dst.type); });
  instruction.Need(!load.transpose || load.square || (size == 2 && !global), "dtype",
                   "ifTranspose is for elements of two bytes that come from L1");
  instruction.Need(load.backwards == 0, "mode", "the model knows no loads with falling addresses");
  NeedRange("startIndex", load.start, 0, 65535, &instruction);
  NeedRange("repeatTimes", load.repeat, 0, 255, &instruction);
  NeedRange("srcStride", load.src_stride, 0, 65535, &instruction);
  NeedRange("dstGap", load.dst_gap, 0, 65535, &instruction);
  NeedRange("dstFracGap", load.dst_fractal_gap, 0, 65535, &instruction);
  if (instruction.faulty() || load.repeat == 0) return;
  instruction.Need(load.dst.address % kFractalBytes == 0, "misaligned", "the target needs an alignment of 512 bytes");
  Square square = load.square ? SquareOf(size) : Square{1, 16};
  int64_t unit = square.fractals * kFractalBytes, fractal_step = (load.dst_fractal_gap + 1) * kFractalBytes;
  auto from = [&](int64_t i) { return (load.start + i * load.src_stride) * unit; };
  auto to = [&](int64_t i, int64_t fractal) { return i * (load.dst_gap + 1) * kFractalBytes + fractal * fractal_step; };
  Operand& src = instruction.Reads(load.src, "source");
  Operand& dst = instruction.Writes(load.dst, "target");
  for (int64_t i = 0; i < load.repeat; ++i) {
    src.ranges.Add(from(i), unit);
    for (int64_t f = 0; f < square.fractals; ++f) dst.ranges.Add(to(i, f), kFractalBytes);
  }
  if (instruction.faulty() || !instruction.Begin(kBlockBytes)) return;
  if (global) {
    instruction.EndTransfer(src, load.repeat, false);
  } else {
    const PipeCost& cost = machine.device.pipes[kUirMte1];
    double bytes = static_cast<double>(load.repeat * unit);
    instruction.End(cost.bytes_per_cycle > 0 ? bytes / cost.bytes_per_cycle : 0, cost.start, load.repeat * unit);
  }
  if (!machine.values) return;
  for (int64_t i = 0; i < load.repeat; ++i) {
    uint8_t global_known[kFractalBytes];
    const uint8_t* known = global ? global_known : src.known + from(i);
    if (global) LoadKnown(src, from(i), global_known, kFractalBytes);
    if (!load.transpose) {
      std::memcpy(dst.data + to(i, 0), src.data + from(i), kFractalBytes);
      std::memcpy(dst.known + to(i, 0), known, kFractalBytes);
      continue;
    }
    for (int64_t row = 0; row < square.side; ++row) {
      for (int64_t column = 0; column < square.side; ++column) {
        int64_t at = InSquare(column, row, size, kFractalBytes),
                place = to(i, 0) + InSquare(row, column, size, fractal_step);
        std::memcpy(dst.data + place, src.data + from(i) + at, static_cast<size_t>(size));
        std::memcpy(dst.known + place, known + at, static_cast<size_t>(size));
      }
    }
  }
}

}  // namespace uir::ascendc

extern "C" {

void uir_ascendc_nd2nz(const UirNd2Nz* copy, int line) { uir::ascendc::RunNd2Nz(*copy, line); }
void uir_ascendc_load(const UirLoad* load, int line) { uir::ascendc::RunLoad(*load, line); }

}  // extern "C"
