// SPDX-License-Identifier: Apache-2.0
#include "device/bang/wram.h"

#include <string>

namespace uir::bang {

namespace {

/*! \brief Whether `bytes` at an address lie within a range. */
void NeedRoom(const void* address, int64_t bytes, Instruction* instruction) {
  if (machine.Where(address) != kBangWram) return;  // a fault of its own
  int64_t begin = static_cast<const uint8_t*>(address) - machine.sections[kBangWram].begin, part = WramPart();
  if (begin >= 0 && begin + bytes <= part) return;
  instruction->Fault("out-of-bounds",
                     "bytes " + std::to_string(begin) + " to " + std::to_string(begin + bytes) +
                         " of each of the 64 ranges of WRAM, of which the text declares " + std::to_string(part) +
                         ": a copy of n bytes takes n / 64 of each",
                     kBangWram);
}

}  // namespace

UirBangCopy InRanges(UirBangCopy copy, Instruction* instruction) {
  bool into = copy.dst_memory == kBangWram;
  const void* address = into ? copy.dst : copy.src;
  int64_t (&stride)[2] = into ? copy.dst_stride : copy.src_stride;
  int64_t (&other)[2] = into ? copy.src_stride : copy.dst_stride;
  if (copy.dims == 1) {
    int64_t each = machine.device.arch < 300 ? 1 : 8;
    instruction->Need(copy.bytes % (each * kWramRanges) == 0, "misaligned",
                      std::to_string(copy.bytes) + " bytes are no multiple of " + std::to_string(each * kWramRanges) +
                          ": " + std::to_string(each) + " for each of the 64 ranges of WRAM");
    copy.bytes /= kWramRanges;
    copy.dst_segments[0] = copy.src_segments[0] = kWramRanges;
    stride[0] = WramPart();
    other[0] = copy.bytes;
  } else {
    int64_t most = copy.dst_segments[0] * copy.dst_segments[1];
    bool ranges = copy.dims == 2 && stride[0] == WramStride() && most <= kWramRanges;
    instruction->Need(ranges || most == 1, "stride",
                      "segments of WRAM are its ranges: at most 64, " + std::to_string(WramStride()) + " bytes apart");
    stride[0] = WramPart();
  }
  NeedRoom(address, copy.bytes, instruction);
  return copy;
}

void AddRanges(Operand* operand, int64_t bytes, Instruction* instruction) {
  for (int64_t i = 0; i < kWramRanges; ++i) operand->ranges.Add(i * WramPart(), bytes / kWramRanges);
  NeedRoom(operand->data, bytes / kWramRanges, instruction);
}

}  // namespace uir::bang
