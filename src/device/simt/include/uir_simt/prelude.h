// SPDX-License-Identifier: Apache-2.0
// Included before every text: the names that stand under `#ifndef UIR_SIMT` in it, and CUDA's own.
#pragma once

#include "asynchronous.h"
#include "keywords.h"
#include "memory.h"
#include "numbers.h"
#include "registers.h"
#include "shared.h"
#include "tensor_core.h"
#include "warp.h"
#include "warpgroup.h"

/*! \brief The same bits as another type. */
template <typename To, typename From>
UIR_SIMT_INLINE To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "same_bits between types of one size");
  To to;
  __builtin_memcpy(static_cast<void*>(&to), &from, sizeof(To));
  return to;
}
