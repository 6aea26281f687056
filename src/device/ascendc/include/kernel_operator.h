// SPDX-License-Identifier: Apache-2.0
// Stands for the header of this name of the Ascend C toolkit: the part of it that the printer emits, for g++.
//
// Names, parameters and their order are the toolkit's; each function ends with a defaulted parameter that tells the
// line of the call. What they do is in the model's library (abi.h).
#pragma once

#include "uir_ascendc/compare.h"
#include "uir_ascendc/copy.h"
#include "uir_ascendc/cube.h"
#include "uir_ascendc/functions.h"
#include "uir_ascendc/index.h"
#include "uir_ascendc/layout.h"
#include "uir_ascendc/pipe.h"
#include "uir_ascendc/reduce.h"
#include "uir_ascendc/sync.h"
#include "uir_ascendc/tensor.h"
#include "uir_ascendc/types.h"
#include "uir_ascendc/vector.h"
