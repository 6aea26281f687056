// SPDX-License-Identifier: Apache-2.0
// Copies of rows between global memory and a core, and within a core.
#include <cstring>
#include <string>

#include "base/rounding.h"
#include "device/ascendc/engine.h"
#include "device/ascendc/instruction.h"
#include "device/ascendc/lanes.h"

namespace uir::ascendc {

namespace {

/*! \brief The pipe of a copy, or kUirAll for one that the device does not have. */
uint32_t PipeOf(uint32_t source, uint32_t target) {
  if (source == kUirGm && (target == kUirUb || target == kUirL1)) return kUirMte2;
  if (target == kUirGm && (source == kUirUb || source == kUirL1)) return kUirMte3;
  if (source == kUirUb && target == kUirUb) return kUirV;
  if (source == kUirL1 && (target == kUirBias || target == kUirFixbuf)) return kUirMte1;
  return kUirAll;
}

/*! \brief Limits of the fields of the parameter structures (DataCopyParams, DataCopyExtParams). */
void CheckLimits(const UirCopy& copy, Instruction* instruction) {
  struct {
    const char* name;
    int64_t value, least, most;
  } fields[] = {
      {"blockCount", copy.block_count, 1, 4095},
      {"blockLen", copy.block_length, 1, copy.any_bytes ? 2097151 : 65535},
      {"the gap of the source", copy.src_gap, 0, copy.any_bytes ? int64_t{UINT32_MAX} : 65535},
      {"the gap of the target", copy.dst_gap, 0, copy.any_bytes ? int64_t{UINT32_MAX} : 65535},
  };
  for (const auto& field : fields) {
    if (field.value == -1) continue;
    instruction->Need(field.value >= field.least && field.value <= field.most, "limit", [&] {
      return std::string(field.name) + " is " + std::to_string(field.value) + "; " + std::to_string(field.least) +
             " to " + std::to_string(field.most) + " are possible";
    });
  }
  auto size = static_cast<int64_t>(TypeBytes(copy.dst.type));
  if (copy.any_bytes) {
    instruction->Need(copy.row_bytes % size == 0, "limit", "blockLen is no multiple of the element");
    instruction->Need(copy.left <= kBlockBytes && copy.right <= kBlockBytes, "limit", "pads by more than 32 bytes");
    if (size == 8 && copy.pad) {
      instruction->Need(copy.pad_value == 0, "limit", "pads elements of eight bytes with something else than 0");
    }
  } else {
    instruction->Need(copy.row_bytes > 0, "limit", "copies nothing; a count is 1 or more");
    instruction->Need(copy.row_bytes % kBlockBytes == 0, "limit", [&] {
      return std::to_string(copy.row_bytes) + " bytes are copied; DataCopy moves multiples of 32";
    });
  }
}

/*! \brief The bytes that a row takes in the core: the pads, and the rest of its last block. */
int64_t PaddedRow(const UirCopy& copy) { return RoundUp(copy.left + copy.row_bytes + copy.right, kBlockBytes); }

void AddRows(Operand* operand, const UirCopy& copy, int64_t pitch, int64_t bytes) {
  for (int64_t row = 0; row < copy.rows; ++row) operand->ranges.Add(row * pitch, bytes);
}

/*! \brief The known bits of bytes in global memory, where a byte is known or not. */
void KnownFromGlobal(const Operand& source, int64_t at, uint8_t* known, int64_t bytes) {
  auto offset = static_cast<size_t>(source.data + at - source.allocation->data);
  const engine::ByteSet& written = source.allocation->written;
  if (written.FirstMissing(offset, static_cast<size_t>(bytes)) == offset + static_cast<size_t>(bytes)) {
    std::memset(known, 0xFF, static_cast<size_t>(bytes));
    return;
  }
  for (int64_t i = 0; i < bytes; ++i) known[i] = written.HasAll(offset + static_cast<size_t>(i), 1) ? 0xFF : 0;
}

/*! \brief Bytes before and behind a row in the core. */
void FillPads(const UirCopy& copy, const Operand& target, int64_t row) {
  // Without a value, and in the rest of the block when nothing is to be padded, the device leaves what it likes.
  bool valued = copy.pad && (copy.left || copy.right);
  int64_t begin = row * copy.dst_pitch, padded = PaddedRow(copy);
  auto size = static_cast<int64_t>(TypeBytes(copy.dst.type));
  auto fill = [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      target.data[begin + i] = valued ? static_cast<uint8_t>(copy.pad_value >> 8 * (i % size)) : 0xA5;
    }
    std::memset(target.known + begin + from, valued ? 0xFF : 0, static_cast<size_t>(to - from));
  };
  fill(0, copy.left);
  fill(copy.left + copy.row_bytes, padded);
}

void LoadRows(const UirCopy& copy, const Operand& source, const Operand& target) {
  auto bytes = static_cast<size_t>(copy.row_bytes);
  for (int64_t row = 0; row < copy.rows; ++row) {
    int64_t from = row * copy.src_pitch, to = row * copy.dst_pitch + copy.left;
    std::memcpy(target.data + to, source.data + from, bytes);
    KnownFromGlobal(source, from, target.known + to, copy.row_bytes);
    if (copy.any_bytes) FillPads(copy, target, row);
  }
}

void Store(const UirCopy& copy, const Operand& source, const Operand& target, Instruction* instruction) {
  auto bytes = static_cast<size_t>(copy.row_bytes);
  bool unknown = false;
  for (int64_t row = 0; row < copy.rows; ++row) {
    int64_t from = row * copy.src_pitch, to = row * copy.dst_pitch;
    unknown = unknown || !AllKnown(source.known + from, copy.row_bytes);
    std::memcpy(target.data + to, source.data + from, bytes);
    target.allocation->written.Insert(static_cast<size_t>(target.data + to - target.allocation->data), bytes);
  }
  if (unknown) instruction->Fault("unwritten", "stores bytes that hold no value that somebody wrote", copy.src.memory);
}

void Within(const UirCopy& copy, const Operand& source, const Operand& target) {
  auto bytes = static_cast<size_t>(copy.row_bytes);
  for (int64_t row = 0; row < copy.rows; ++row) {
    int64_t from = row * copy.src_pitch, to = row * copy.dst_pitch;
    std::memmove(target.data + to, source.data + from, bytes);
    std::memmove(target.known + to, source.known + from, bytes);
  }
}

}  // namespace

void RunCopy(const UirCopy& copy, int line) {
  uint32_t pipe = PipeOf(copy.src.memory, copy.dst.memory);
  Instruction instruction(copy.name, pipe, line);
  if (pipe == kUirAll) {
    instruction.Fault("path", std::string("the device has no copy from ") + MemoryName(copy.src.memory) + " to " +
                                  MemoryName(copy.dst.memory));
    return;
  }
  CheckLimits(copy, &instruction);
  if (instruction.faulty()) return;
  const UirTensor& global = copy.src.memory == kUirGm ? copy.src : copy.dst;
  if (!copy.any_bytes && global.memory == kUirGm && global.address % TypeBytes(global.type) != 0) {
    instruction.Fault("misaligned", "the address in global memory is no multiple of the element", kUirGm);
    return;
  }
  Operand& source = instruction.Reads(copy.src, "source");
  Operand& target = instruction.Writes(copy.dst, "target");
  bool load = copy.src.memory == kUirGm, store = copy.dst.memory == kUirGm;
  AddRows(&source, copy, copy.src_pitch, copy.row_bytes);
  AddRows(&target, copy, copy.dst_pitch, load && copy.any_bytes ? PaddedRow(copy) : copy.row_bytes);
  if (!instruction.Begin(kBlockBytes)) return;
  if (load || store) {
    instruction.EndTransfer(load ? source : target, copy.rows, store);
  } else {
    Cost cost = machine.device.Of("DataCopy", TypeBytes(copy.dst.type));
    double elements = static_cast<double>(copy.rows * copy.row_bytes) / static_cast<double>(TypeBytes(copy.dst.type));
    instruction.End(cost.slope * elements, cost.start, copy.rows * copy.row_bytes);
  }
  if (!machine.values) return;
  if (load) {
    LoadRows(copy, source, target);
  } else if (store) {
    Store(copy, source, target, &instruction);
  } else {
    Within(copy, source, target);
  }
}

}  // namespace uir::ascendc

extern "C" void uir_ascendc_copy(const UirCopy* copy, int line) { uir::ascendc::RunCopy(*copy, line); }
