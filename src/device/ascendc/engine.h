// SPDX-License-Identifier: Apache-2.0
/*!
 * \file engine.h
 * \brief What this model takes from the engine of all models, by its short names.
 */
#ifndef UIR_DEVICE_ASCENDC_ENGINE_H_
#define UIR_DEVICE_ASCENDC_ENGINE_H_

#include "../engine/bandwidth.h"
#include "../engine/known.h"
#include "../engine/numbers.h"
#include "../engine/ranges.h"
#include "../engine/result.h"

namespace uir {
namespace ascendc {

using engine::AllKnown;
using engine::Bandwidth;
using engine::Bfloat16OfFloat;
using engine::FloatOfBfloat16;
using engine::FloatOfHalf;
using engine::HalfOfFloat;
using engine::Moment;
using engine::PipeUse;
using engine::Range;
using engine::Ranges;
using engine::SetKnown;

}  // namespace ascendc
}  // namespace uir

#endif  // UIR_DEVICE_ASCENDC_ENGINE_H_
