// SPDX-License-Identifier: Apache-2.0
// Stands for the toolkit's header of this name; everything is in the model's prelude.
#include "uir_simt/prelude.h"
