// SPDX-License-Identifier: Apache-2.0
// WRAM as it is: 64 ranges, one for each row of the matrix unit.
//
// What a text declares of it has a 64th in each range. An address is a place in the first range, and stands for the
// same place in all: a copy without strides gives each range a 64th of its bytes, in order, so that the next buffer
// begins a 64th of the bytes further on (mlu-ops, kernels/fft: offsets are divided by LT_NUM, 64).  With strides a
// segment goes to one range, which lie a 64th of the device's WRAM apart (kernels/ms_deform_attn: WRAM_LT_STRIDE).
#pragma once

#include "device/bang/instruction.h"

namespace uir::bang {

constexpr int64_t kWramRanges = 64;

/*! \brief Bytes of a range that the text declares, and from a range to the next one by address. */
inline int64_t WramPart() { return static_cast<int64_t>(machine.sections[kBangWram].bytes) / kWramRanges; }
inline int64_t WramStride() { return machine.device.bytes[kBangWram] / kWramRanges; }

/*! \brief A copy as the model keeps WRAM: one segment for each range; reports what no range holds. */
UirBangCopy InRanges(UirBangCopy copy, Instruction* instruction);
/*! \brief The bytes of an operand of `bytes` from an address on: a 64th in each range. */
void AddRanges(Operand* operand, int64_t bytes, Instruction* instruction);

}  // namespace uir::bang
