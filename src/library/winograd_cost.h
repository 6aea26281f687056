// SPDX-License-Identifier: Apache-2.0
// What a convolution takes of a core by direct sums and by Winograd's F(2x2, 3x3), by an estimate of its instructions
// and of what it reads: which of them it is follows from the machine, not from how long calls took.
#pragma once

#include <cstdint>

#include "library/attrs.h"

namespace uir::library {

/*! What the estimate knows of a core. */
struct CoreRates {
  int lanes;             // floats of a vector
  int64_t second_cache;  // bytes
  double beyond;         // bytes in a cycle from beyond that cache
  double margin;         // by how much Winograd's way must be ahead
};

/*! Bytes of the second cache, as the machine reports it; 512 KiB where it does not. */
int64_t SecondCacheBytes();

/*! Patches of 2x2 results that go through all positions together, for a weight of so many inputs. */
int64_t WinogradBand(int64_t inputs, const CoreRates& core);

/*! Cycles of direct sums over those of Winograd's way, whatever the number of threads. */
double WinogradGain(const Conv2dAttrs& attrs, const CoreRates& core);

}  // namespace uir::library
