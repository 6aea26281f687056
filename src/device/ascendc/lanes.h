// SPDX-License-Identifier: Apache-2.0
// Which elements a vector instruction works on, as runs of neighbouring ones.
#pragma once

#include <cstdint>
#include <vector>

#include "device/ascendc/instruction.h"

namespace uir::ascendc {

constexpr int64_t kBlockBytes = 32;
/*! \brief 16 blocks: the smallest piece that the cube loads. */
constexpr int64_t kFractalBytes = 512;
constexpr int64_t kRepeatBytes = 256;
constexpr int64_t kMostRepeats = 255;

/*! \brief One operand of the strided forms: bytes of an element, and the strides in blocks. */
struct Side {
  int64_t size;
  UirStride stride;

  /*! \brief Where an element of a repeat lies, in bytes. */
  int64_t At(int64_t repeat, int64_t lane) const {
    int64_t in_block = kBlockBytes / size;
    return (repeat * stride.repeat + lane / in_block * stride.block) * kBlockBytes + lane % in_block * size;
  }
};

/*! \brief Neighbouring elements of all sides. */
struct Run {
  int64_t repeat;
  int64_t lane;
  int64_t count;
  int64_t at[4];  // of each side, in bytes
};

/*! \brief The elements of an instruction. */
struct Lanes {
  std::vector<Run> runs;
  int64_t repeats{0};
  int64_t per_repeat{0};
  /*! \brief Elements that the time is counted for: all of every repeat. */
  int64_t counted{0};
};

/*! \brief The runs of an instruction with `count` sides; faults of mask and repeat go to the instruction. */
Lanes LanesOf(const UirLanes& lanes, const Side* sides, int count, Instruction* instruction);

/*! \brief What a mask of a form selects in each repeat: the lanes that are set. */
struct Mask {
  uint64_t bits[2];
  bool Has(int64_t lane) const { return bits[lane / 64] >> (lane % 64) & 1; }
  /*! \brief Whether it has all of the first `count` lanes. */
  bool HasFirst(int64_t count) const {
    auto first = [](int64_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; };
    const uint64_t low = first(count), high = count > 64 ? first(count - 64) : 0;
    return (bits[0] & low) == low && (bits[1] & high) == high;
  }
};
Mask MaskOf(const UirLanes& lanes, int64_t per_repeat, Instruction* instruction);
/*! \brief Check the number of repeats. */
void CheckRepeat(int64_t repeat, Instruction* instruction);
/*! \brief Check that a stride fits into the bits that the device has for it. */
void CheckStride(const UirStride& stride, int64_t most_block, int64_t most_repeat, Instruction* instruction);

}  // namespace uir::ascendc
