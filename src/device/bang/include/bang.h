// SPDX-License-Identifier: Apache-2.0
// Stands for the header of this name of the BANG C compiler: the part of it that the printer emits, for g++.
//
// Names, parameters and their order are the vendor's (bang_device_functions_decls.h of BANG 3, and the spellings that
// Cambricon's mlu-ops uses since); each function ends with a defaulted parameter that tells the line of the call. What
// they do is in the model's library (abi.h).
#pragma once

#define BANG_VERSION 300

#include "uir_bang/convert.h"
#include "uir_bang/launch.h"
#include "uir_bang/memory.h"
#include "uir_bang/reduce.h"
#include "uir_bang/types.h"
#include "uir_bang/vector.h"
