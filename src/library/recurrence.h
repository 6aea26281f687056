// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "library/attrs.h"

namespace uir::library {

/*! First elements of the operands, all contiguous float32. */
struct RecurrenceData {
  const float* inputs = nullptr;  // [steps, batch, gates * hidden]: what the inputs and biases add to the gates
  const float* panels = nullptr;  // the weight, packed
  const float* state = nullptr;   // [batch, hidden] before the first step
  const float* cell = nullptr;    // LSTM: [batch, hidden] before the first step
  const float* bias = nullptr;    // GRU: [hidden], added to the product of the state for gate n
  float* rows = nullptr;          // [steps, batch, hidden]: the state after each step, in the order of time
  float* last_cell = nullptr;     // LSTM: [batch, hidden] after the last step
};

/*! Elements of a packed weight: panels of some columns of every gate, [panels, groups, hidden, columns]. */
int64_t PackedElements(const RecurrenceAttrs& attrs);

/*! Pack the weight; columns beyond the hidden ones are 0. */
void PackPanels(const RecurrenceAttrs& attrs, const float* weight, float* panels);

//! All steps, on up to `threads` of the pool, each of which has its panels, in its own cache, and waits for the others
//! once a step.
void RunRecurrence(const RecurrenceAttrs& attrs, const RecurrenceData& data, int threads);

}  // namespace uir::library
