// SPDX-License-Identifier: Apache-2.0
// Vector functions that move elements.
#include <cstring>
#include <string>

#include "device/ascendc/engine.h"
#include "device/ascendc/lanes.h"

namespace uir::ascendc {

namespace {

bool IsWord(uint32_t type) { return TypeBytes(type) == 2 || TypeBytes(type) == 4; }

void Move(const Operand& dst, int64_t to, const Operand& src, int64_t from, int64_t bytes) {
  std::memcpy(dst.data + to, src.data + from, static_cast<size_t>(bytes));
  std::memcpy(dst.known + to, src.known + from, static_cast<size_t>(bytes));
}

void Finish(Instruction* instruction, const char* function, uint32_t type, int64_t elements) {
  Cost cost = machine.device.Of(function, TypeBytes(type));
  instruction->End(cost.slope * static_cast<double>(elements), cost.start);
}

void NeedTargetApart(const Operand& a, const Operand& b, Instruction* instruction) {
  auto begin = [](const Operand& o) { return static_cast<int64_t>(o.tensor.address) + o.ranges.Begin(); };
  auto end = [](const Operand& o) { return static_cast<int64_t>(o.tensor.address) + o.ranges.End(); };
  instruction->Need(end(a) <= begin(b) || end(b) <= begin(a), "overlap", "source and target share bytes");
}

}  // namespace

void RunBrcb(const UirBrcb& brcb, int line) {
  Instruction instruction("Brcb", kUirV, line);
  auto size = static_cast<int64_t>(TypeBytes(brcb.dst.type));
  instruction.Need(IsWord(brcb.dst.type), "dtype", std::string("not of ") + TypeName(brcb.dst.type));
  CheckRepeat(brcb.repeat, &instruction);
  instruction.Need(brcb.dst_stride.block >= 1 && brcb.dst_stride.block <= 65535, "limit",
                   "dstBlkStride is " + std::to_string(brcb.dst_stride.block) + "; 1 to 65535 are possible");
  if (instruction.faulty() || brcb.repeat == 0) return;
  Operand& src = instruction.Reads(brcb.src, "source");
  Operand& dst = instruction.Writes(brcb.dst, "target");
  src.ranges.Add(0, brcb.repeat * 8 * size);
  auto block = [&](int64_t r, int64_t b) {
    return (r * brcb.dst_stride.repeat + b * brcb.dst_stride.block) * kBlockBytes;
  };
  for (int64_t i = 0; i < brcb.repeat * 8; ++i) dst.ranges.Add(block(i / 8, i % 8), kBlockBytes);
  NeedTargetApart(src, dst, &instruction);
  if (instruction.faulty() || !instruction.Begin(kBlockBytes)) return;
  Finish(&instruction, "Brcb", brcb.dst.type, brcb.repeat * kRepeatBytes / size);
  if (!machine.values) return;
  for (int64_t i = 0; i < brcb.repeat * 8; ++i) {
    for (int64_t e = 0; e < kBlockBytes / size; ++e) Move(dst, block(i / 8, i % 8) + e * size, src, i * size, size);
  }
}

void RunGather(const UirGather& gather, int line) {
  Instruction instruction("Gather", kUirV, line);
  auto size = static_cast<int64_t>(TypeBytes(gather.dst.type));
  instruction.Need(IsWord(gather.dst.type), "dtype", std::string("not of ") + TypeName(gather.dst.type));
  Side sides[2] = {{size, {1, gather.dst_repeat_stride}}, {4, {1, size == 2 ? 16 : 8}}};
  // Offsets have four bytes: with elements of two, a repeat of the target takes two of offsets.
  UirLanes given = gather.lanes;
  Lanes lanes;
  if (given.form == kUirCount) {
    lanes = LanesOf(given, sides, 2, &instruction);
  } else {
    lanes = LanesOf(given, sides, 1, &instruction);
    for (Run& run : lanes.runs) run.at[1] = (run.repeat * lanes.per_repeat + run.lane) * 4;
  }
  if (instruction.faulty() || lanes.runs.empty()) return;
  Operand& offsets = instruction.Reads(gather.offsets, "offsets");
  Operand& src = instruction.Reads(gather.src, "source");
  Operand& dst = instruction.Writes(gather.dst, "target");
  for (const Run& run : lanes.runs) {
    offsets.ranges.Add(run.at[1], run.count * 4);
    dst.ranges.Add(run.at[0], run.count * size);
  }
  if (!instruction.Begin(kBlockBytes)) return;
  Finish(&instruction, "Gather", gather.dst.type, lanes.counted);
  if (!machine.values) return;
  for (const Run& run : lanes.runs) {
    if (!AllKnown(offsets.known + run.at[1], run.count * 4)) {
      instruction.Fault("unwritten", "gathers by offsets that nobody wrote", kUirUb);
      return;
    }
    for (int64_t e = 0; e < run.count; ++e) {
      uint32_t offset;
      std::memcpy(&offset, offsets.data + run.at[1] + e * 4, 4);
      int64_t from = int64_t{gather.base} + offset;
      instruction.Need(from % size == 0, "misaligned",
                       "offset " + std::to_string(from) + " is no multiple of the element's size");
      src.ranges.Add(from, size);
    }
  }
  NeedTargetApart(src, dst, &instruction);
  if (instruction.faulty() || !instruction.Touch(&src)) return;
  for (const Run& run : lanes.runs) {
    for (int64_t e = 0; e < run.count; ++e) {
      uint32_t offset;
      std::memcpy(&offset, offsets.data + run.at[1] + e * 4, 4);
      Move(dst, run.at[0] + e * size, src, int64_t{gather.base} + offset, size);
    }
  }
}

void RunTranspose(const UirTensor& to, const UirTensor& from, int line) {
  Instruction instruction("Transpose", kUirV, line);
  instruction.Need(TypeBytes(to.type) == 2, "dtype", "transposes 16 x 16 elements of two bytes alone");
  Operand& src = instruction.Reads(from, "source");
  Operand& dst = instruction.Writes(to, "target");
  src.ranges.Add(0, 512);
  dst.ranges.Add(0, 512);
  if (to.address != from.address) NeedTargetApart(src, dst, &instruction);
  if (instruction.faulty() || !instruction.Begin(kBlockBytes)) return;
  Finish(&instruction, "Transpose", to.type, 256);
  if (!machine.values) return;
  uint8_t data[512], known[512];
  std::memcpy(data, src.data, 512);
  std::memcpy(known, src.known, 512);
  for (size_t i = 0; i < 16; ++i) {
    for (size_t j = 0; j < 16; ++j) {
      std::memcpy(dst.data + (i * 16 + j) * 2, data + (j * 16 + i) * 2, 2);
      std::memcpy(dst.known + (i * 16 + j) * 2, known + (j * 16 + i) * 2, 2);
    }
  }
}

void RunTransData(const UirTransData& trans, int line) {
  uint32_t type = trans.dst[0].type;
  auto size = static_cast<int64_t>(TypeBytes(type));
  Instruction instruction("TransDataTo5HD", kUirV, line);
  instruction.Need(size <= 4, "dtype", std::string("not of ") + TypeName(type));
  CheckRepeat(trans.repeat, &instruction);
  instruction.Need(trans.dst_repeat_stride >= 0 && trans.dst_repeat_stride <= 65535 && trans.src_repeat_stride >= 0 &&
                       trans.src_repeat_stride <= 65535,
                   "limit", "a repeat stride is beyond 0 to 65535");
  instruction.Need(trans.repeat != 1 || (trans.dst_repeat_stride == 0 && trans.src_repeat_stride == 0), "limit",
                   "with one repeat the device adds the repeat strides to the addresses: they must be 0");
  if (instruction.faulty() || trans.repeat == 0) return;
  // The lists are one operand each: their hull bounds them, their pieces are what is touched.
  UirTensor base = trans.src[0], target = trans.dst[0];
  auto reach = [](UirTensor* tensor, const UirTensor* list) {
    uint64_t first = list[0].address, end = first + list[0].bytes;
    for (int i = 1; i < 16; ++i) {
      first = first < list[i].address ? first : list[i].address;
      end = end > list[i].address + list[i].bytes ? end : list[i].address + list[i].bytes;
    }
    tensor->address = first;
    tensor->bytes = end - first;
  };
  reach(&base, trans.src);
  reach(&target, trans.dst);
  for (int i = 0; i < 16; ++i) {
    instruction.Need(trans.src[i].address % kBlockBytes == 0 && trans.dst[i].address % kBlockBytes == 0, "misaligned",
                     "row " + std::to_string(i) + " is at no multiple of 32 bytes");
  }
  Operand& src = instruction.Reads(base, "source");
  Operand& dst = instruction.Writes(target, "target");
  int64_t columns = size == 1 ? 16 : kBlockBytes / size;
  auto from = [&](int64_t r, int64_t row, int64_t column) {
    int64_t start = static_cast<int64_t>(trans.src[row].address - base.address);
    return start + r * trans.src_repeat_stride * kBlockBytes + (size == 1 && trans.src_high ? 16 : 0) + column * size;
  };
  // Element (row, column) goes to place `row` of target `column`; rows of 16 elements of four bytes take two targets.
  auto to = [&](int64_t r, int64_t row, int64_t column) {
    int64_t list = size == 4 ? column * 2 + row / 8 : column, place = size == 4 ? row % 8 : row;
    int64_t start = static_cast<int64_t>(trans.dst[list].address - target.address);
    return start + r * trans.dst_repeat_stride * kBlockBytes + (size == 1 && trans.dst_high ? 16 : 0) + place * size;
  };
  for (int64_t r = 0; r < trans.repeat; ++r) {
    for (int64_t row = 0; row < 16; ++row) src.ranges.Add(from(r, row, 0), columns * size);
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t row = 0; row < 16; row += 8) dst.ranges.Add(to(r, row, column), 8 * size);
    }
  }
  if (instruction.faulty() || !instruction.Begin(kBlockBytes)) return;
  Finish(&instruction, "TransDataTo5HD", type, trans.repeat * 16 * columns);
  if (!machine.values) return;
  // All of a repeat is read before it is written.
  for (int64_t r = 0; r < trans.repeat; ++r) {
    uint8_t data[16 * 32], known[16 * 32];
    for (int64_t row = 0; row < 16; ++row) {
      std::memcpy(data + row * 32, src.data + from(r, row, 0), static_cast<size_t>(columns * size));
      std::memcpy(known + row * 32, src.known + from(r, row, 0), static_cast<size_t>(columns * size));
    }
    for (int64_t row = 0; row < 16; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        std::memcpy(dst.data + to(r, row, column), data + row * 32 + column * size, static_cast<size_t>(size));
        std::memcpy(dst.known + to(r, row, column), known + row * 32 + column * size, static_cast<size_t>(size));
      }
    }
  }
}

}  // namespace uir::ascendc

extern "C" {

void uir_ascendc_brcb(const UirBrcb* brcb, int line) { uir::ascendc::RunBrcb(*brcb, line); }
void uir_ascendc_gather(const UirGather* gather, int line) { uir::ascendc::RunGather(*gather, line); }
void uir_ascendc_transpose(const UirTensor* dst, const UirTensor* src, int line) {
  uir::ascendc::RunTranspose(*dst, *src, line);
}
void uir_ascendc_trans_data(const UirTransData* trans, int line) { uir::ascendc::RunTransData(*trans, line); }

}  // extern "C"
